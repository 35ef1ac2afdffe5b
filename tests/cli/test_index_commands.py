"""What a person sees of the vector index at the command line, and how waiting for it ends."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command_line import Command, run_process

Change = Callable[[str], None]

BEHIND = "UPDATE watermarks SET seq = 0"
BROKEN = "UPDATE watermarks SET failures = 5, error = 'the disk is full', failing_epoch = 1, retry_at_epoch = 2"
HICCUP = "UPDATE watermarks SET failures = 1, error = 'it starts', failing_epoch = 1, retry_at_epoch = 2"
GIVEN_UP = "INSERT INTO gaps VALUES ('observation', 1, 10, 'no text', NULL, 1)"
NOT_DUE = "INSERT INTO gaps VALUES ('observation', 1, 1, 'no text', 99999999999999, 1)"
DUE = "INSERT INTO gaps VALUES ('observation', 1, 1, 'no text', 1, 1)"


@pytest.fixture
def change(memory: Path) -> Change:
    """Change the database of `memory` behind everybody's back."""
    (memory / "gapless.db").chmod(0o600)

    def run(sql: str) -> None:
        with closing(sqlite3.connect(memory / "gapless.db")) as connection:
            assert connection.execute(sql).rowcount == 1
            connection.commit()

    return run


@pytest.mark.parametrize("state", [BEHIND, DUE])
def test_waiting_for_an_index_that_nobody_makes_ends_with_what_to_do(
    command: Command, memory: Path, change: Change, state: str
) -> None:
    change(state)
    outcome = command(memory, "queue", "wait", "--timeout", "0.2", "--json")
    assert (outcome.code, outcome.json["drained"]) == (1, False)
    assert "wait for the vector index" in outcome.json["reason"]
    assert "gapless up" in outcome.json["reason"]


@pytest.mark.parametrize("state", [GIVEN_UP, NOT_DUE, HICCUP])
def test_records_that_are_not_to_be_tried_now_hold_nobody_up(
    command: Command, memory: Path, change: Change, state: str
) -> None:
    change(state)
    assert command(memory, "queue", "wait", "--timeout", "0.2").code == 0


def test_waiting_for_a_broken_index_ends_at_once_with_its_words(command: Command, memory: Path, change: Change) -> None:
    change(BEHIND)
    change(BROKEN)
    outcome = command(memory, "queue", "wait", "--timeout", "60")
    assert outcome.code == 1
    assert "the disk is full" in outcome.stderr


def test_without_an_index_nobody_waits_for_it(command: Command, memory: Path, change: Change) -> None:
    change(BEHIND)
    change(BROKEN)
    (memory / "settings.toml").write_text('CHROMA = "off"\n')
    assert command(memory, "queue", "wait", "--timeout", "0.2").code == 0
    assert "CHROMA=off" in command(memory, "queue", "status").stdout
    assert command(memory, "status", "--json").json["queue"]["index"]["in_use"] is False


def test_status_says_what_is_wrong_with_the_index(command: Command, memory: Path, change: Change) -> None:
    change(BROKEN)
    change(GIVEN_UP)
    problems = " ".join(command(memory, "status", "--json").json["problems"])
    assert "failed 5 times" in problems
    assert "the disk is full" in problems
    assert "1 records could not be indexed" in problems
    assert "1 gaps, 1 of them given up" in command(memory, "status").stdout


def test_doctor_shows_records_that_were_given_up_and_has_them_tried_again(
    command: Command, memory: Path, change: Change
) -> None:
    change(GIVEN_UP)
    outcome = command(memory, "doctor")
    assert outcome.code == 1
    assert "observation 1: no text" in outcome.stdout
    assert command(memory, "doctor", "--fix").code == 0
    index = command(memory, "queue", "status", "--json").json["index"]
    assert (index["given_up"], index["lag"]) == (0, 1)


@pytest.mark.slow
def test_after_waiting_what_was_remembered_is_in_the_index(own_port: Path) -> None:
    (own_port / "settings.toml").write_text("PORT = 0\n")
    assert run_process(own_port, "up").code == 0
    assert run_process(own_port, "remember", "the cart forgot its prices").code == 0
    waited = run_process(own_port, "queue", "wait", "--timeout", "50")
    assert (waited.code, waited.stderr) == (0, "")
    with closing(sqlite3.connect(own_port / "gapless.db")) as connection:
        assert connection.execute("SELECT count(*) FROM embeddings").fetchone()[0] == 1
    assert any((own_port / "chroma").iterdir())


def test_doctor_says_since_when_the_index_is_broken_and_why(command: Command, memory: Path, change: Change) -> None:
    change(BROKEN)
    outcome = command(memory, "doctor", "--json")
    (finding,) = [each for each in outcome.json["findings"] if each["check"] == "vector index"]
    assert (outcome.code, finding["ok"]) == (1, False)
    assert "the disk is full" in finding["message"]


def test_doctor_does_not_vouch_for_an_index_that_is_not_in_use(command: Command, memory: Path, change: Change) -> None:
    change(BROKEN)
    (memory / "settings.toml").write_text('CHROMA = "off"\n')
    outcome = command(memory, "doctor", "--json")
    (finding,) = [each for each in outcome.json["findings"] if each["check"] == "vector index"]
    assert finding["ok"] is True
    assert "not in use" in finding["message"]
