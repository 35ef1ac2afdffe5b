"""gapless queue: what waits and why, straight from the database."""

import sqlite3
from pathlib import Path

import pytest

from hooks import envelope, spool
from tests.cli.command_line import Command


def test_the_states_add_up_to_every_message(command: Command, memory: Path) -> None:
    states = command(memory, "queue", "status", "--json").json["states"]
    with sqlite3.connect(memory / "gapless.db") as connection:
        assert sum(states.values()) == connection.execute("SELECT count(*) FROM pending_messages").fetchone()[0]
    connection.close()
    assert states["done"] > 0
    assert states["pending"] == states["processing"] == states["failed"] == 0


def test_list_and_show_name_the_messages(command: Command, memory: Path) -> None:
    listed = command(memory, "queue", "list", "--state", "done", "--limit", "3", "--json").json
    assert listed["total"] > len(listed["results"]) == 3
    assert {row["state"] for row in listed["results"]} == {"done"}
    shown = command(memory, "queue", "show", listed["results"][0]["id"], "--json").json
    assert shown["payload"]["hook_event_name"] == shown["hook_event"]
    assert command(memory, "queue", "list", "--project", "nobody", "--json").json["total"] == 0


def test_a_state_that_does_not_exist_is_wrong_usage(command: Command, memory: Path) -> None:
    outcome = command(memory, "queue", "list", "--state", "lost")
    assert outcome.code == 2
    assert "processing" in outcome.stderr


def test_a_message_that_does_not_exist_is_a_failure(command: Command, memory: Path) -> None:
    outcome = command(memory, "queue", "show", 999_999)
    assert outcome.code == 1
    assert "999999" in outcome.stderr


def test_a_dry_run_of_a_replay_changes_nothing(command: Command, memory: Path) -> None:
    before = command(memory, "queue", "status", "--json").json["states"]
    replay = command(memory, "queue", "replay", "--state", "done", "--dry-run", "--json").json
    assert replay["dry_run"]
    assert replay["messages"] == len(replay["ids"]) == before["done"]
    assert command(memory, "queue", "status", "--json").json["states"] == before


def test_a_replay_puts_messages_back(command: Command, memory: Path) -> None:
    replay = command(memory, "queue", "replay", "--since", "2001-01-01", "--project", "boathouse", "--json").json
    assert command(memory, "queue", "status", "--json").json["states"]["pending"] == replay["messages"] > 0


def test_a_replay_of_nothing_in_particular_is_wrong_usage(command: Command, memory: Path) -> None:
    assert command(memory, "queue", "replay").code == 2
    assert command(memory, "queue", "replay", "--since", "soon").code == 2


def test_waiting_ends_at_once_when_nothing_waits(command: Command, memory: Path) -> None:
    outcome = command(memory, "queue", "wait", "--timeout", "0", "--json")
    assert (outcome.code, outcome.json) == (0, {"drained": True, "reason": None})


def test_waiting_fails_with_the_reason_when_no_worker_runs(command: Command, memory: Path) -> None:
    command(memory, "queue", "replay", "--state", "done")
    outcome = command(memory, "queue", "wait", "--timeout", "0.3", "--json")
    assert outcome.code == 1
    assert "no worker runs" in outcome.json["reason"]
    assert outcome.json["reason"] in outcome.stderr


def test_waiting_counts_the_spool(command: Command, memory: Path) -> None:
    event = envelope.Envelope(envelope.stamp(client="claude-code", captured_ms=1), b"{}")
    spool.write(str(memory), event)
    assert command(memory, "queue", "wait", "--timeout", "0.3").code == 1


def test_waiting_ends_at_once_when_a_person_has_paused(command: Command, memory: Path) -> None:
    command(memory, "queue", "replay", "--state", "done")
    assert command(memory, "queue", "pause").code == 0
    outcome = command(memory, "queue", "wait", "--timeout", "60")
    assert outcome.code == 1
    assert "gapless queue resume" in outcome.stderr
    assert command(memory, "queue", "resume").code == 0
    assert command(memory, "queue", "status", "--json").json["paused"] is None


@pytest.mark.parametrize("subcommand", ["status", "list", "flush"])
def test_tables_are_for_people_and_say_the_same(command: Command, memory: Path, subcommand: str) -> None:
    outcome = command(memory, "queue", subcommand)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout
