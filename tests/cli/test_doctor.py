"""doctor finds what is broken, says what to do, and repairs what is safe to repair."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hooks import envelope, spool
from service.cli import doctor
from tests.cli.command_line import Command


def findings(outcome: Any) -> dict[str, dict[str, Any]]:
    return {finding["check"]: finding for finding in outcome.json["findings"]}


def test_a_sound_folder_is_healthy(command: Command, memory: Path) -> None:
    (memory / "gapless.db").chmod(0o600)
    outcome = command(memory, "doctor", "--json")
    assert (outcome.code, outcome.json["healthy"]) == (0, True)


def test_a_folder_that_is_not_there_yet_is_healthy(command: Command, tmp_path: Path) -> None:
    assert command(tmp_path / "none", "doctor").code == 0
    assert not (tmp_path / "none").exists()


def test_files_that_others_can_read_are_found_and_closed(command: Command, memory: Path) -> None:
    (memory / "token").write_text("secret")
    (memory / "token").chmod(0o644)
    outcome = command(memory, "doctor", "--json")
    assert outcome.code == 1
    assert str(memory / "token") in findings(outcome)["data folder"]["message"]
    assert command(memory, "doctor", "--fix").code == 0
    assert (memory / "token").stat().st_mode & 0o777 == 0o600
    assert command(memory, "doctor").code == 0


def test_a_text_index_that_lost_rows_is_found_and_rebuilt(command: Command, memory: Path) -> None:
    (memory / "gapless.db").chmod(0o600)
    with closing(sqlite3.connect(memory / "gapless.db")) as connection:
        connection.execute("INSERT INTO observations_fts (observations_fts) VALUES ('delete-all')")
        connection.commit()
    outcome = command(memory, "doctor", "--json")
    assert outcome.code == 1
    assert not findings(outcome)["text index of observations"]["ok"]
    assert command(memory, "doctor", "--fix").code == 0
    assert command(memory, "doctor").code == 0
    assert command(memory, "search", "booking", "--all-projects", "--json").json["total"] > 0


def test_of_a_large_database_only_a_deep_check_reads_all(
    command: Command, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (memory / "gapless.db").chmod(0o600)
    with closing(sqlite3.connect(memory / "gapless.db")) as connection, connection:
        connection.execute("DROP TRIGGER observations_fts_update")
        connection.execute("UPDATE observations SET title = 'the index does not know this' WHERE id = 1")
    monkeypatch.setattr(doctor, "READ_WHOLE_BYTES", 0)
    quick, deep = command(memory, "doctor", "--json"), command(memory, "doctor", "--deep", "--json")
    assert quick.code == 0
    assert "--deep" in findings(quick)["database"]["message"]
    assert not findings(deep)["text index of observations"]["ok"]


def test_a_database_that_is_none_is_found_and_left_alone(command: Command, tmp_path: Path) -> None:
    home = tmp_path / "broken"
    home.mkdir(mode=0o700)
    (home / "gapless.db").write_bytes(b"this is no database, and never was one" * 100)
    (home / "gapless.db").chmod(0o600)
    outcome = command(home, "doctor", "--fix", "--json")
    assert outcome.code == 1
    assert "backups" in findings(outcome)["database"]["advice"]
    assert (home / "gapless.db").read_bytes().startswith(b"this is no database")


def test_rejected_events_are_counted_by_reason(command: Command, memory: Path) -> None:
    for moment in range(3):
        event = envelope.Envelope(envelope.stamp(client="claude-code", captured_ms=moment), b"")
        spool.write_rejected(str(memory), event, reason="empty")
    outcome = command(memory, "doctor", "--json")
    assert outcome.code == 1
    assert "3 empty" in findings(outcome)["rejected events"]["message"]
    assert any("doctor" in problem for problem in command(memory, "status", "--json").json["problems"])


def test_a_stopped_service_is_no_illness(command: Command, memory: Path) -> None:
    (memory / "gapless.db").chmod(0o600)
    outcome = command(memory, "doctor", "--json")
    assert findings(outcome)["service"]["ok"]
    assert "gapless up" in findings(outcome)["service"]["advice"]
