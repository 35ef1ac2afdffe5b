"""`gapless backup` and `gapless restore`: what was remembered comes back, and nothing is replaced unseen."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command_line import Command, run_process


def titles(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [row[0] for row in connection.execute("SELECT title FROM observations ORDER BY id")]


def test_a_restored_backup_remembers_what_was_forgotten_since_and_the_replaced_database_is_kept(
    command: Command, memory: Path
) -> None:
    before = titles(memory / "gapless.db")
    made = command(memory, "backup", "--json").json
    command(memory, "forget", "--project", "boathouse", "--yes")
    assert titles(memory / "gapless.db") != before
    told = command(memory, "restore", made["path"], "--json").json
    assert titles(memory / "gapless.db") == before
    assert titles(Path(told["replaced"])) == []


def test_a_backup_is_for_its_owner_alone_and_is_one_whole_file(command: Command, memory: Path) -> None:
    path = Path(command(memory, "backup", "--json").json["path"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_restoring_leaves_nothing_beside_the_backup(command: Command, memory: Path) -> None:
    made = Path(command(memory, "backup", "--json").json["path"])
    assert command(memory, "restore", made).code == 0
    assert list(made.parent.glob(f"{made.name}*")) == [made]


def test_two_backups_of_one_second_are_two_files(command: Command, memory: Path) -> None:
    made = {command(memory, "backup", "--json").json["path"] for _ in range(3)}
    assert len(made) == 3


def test_restoring_makes_the_vector_index_anew(command: Command, memory: Path) -> None:
    with closing(sqlite3.connect(memory / "gapless.db", isolation_level=None)) as connection:
        connection.execute(
            "INSERT OR REPLACE INTO watermarks (name, seq, index_id) VALUES ('vectors', 9, 'of another time')"
        )
    path = command(memory, "backup", "--json").json["path"]
    command(memory, "restore", path)
    with closing(sqlite3.connect(memory / "gapless.db")) as connection:
        assert connection.execute("SELECT count(*) FROM watermarks").fetchone() == (0,)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"no database", "not a database"), (b"", "no database of Gapless"), (None, "no file")],
)
def test_what_is_no_backup_is_refused_and_changes_nothing(
    command: Command, memory: Path, tmp_path: Path, content: bytes | None, words: str
) -> None:
    before = titles(memory / "gapless.db")
    file = tmp_path / "file.db"
    if content is not None:
        file.write_bytes(content)
    refused = command(memory, "restore", file)
    assert refused.code == 1
    assert words in refused.stderr
    assert titles(memory / "gapless.db") == before
    assert not list(memory.glob("*.part*"))


def test_a_backup_of_a_newer_version_is_refused(command: Command, memory: Path) -> None:
    path = Path(command(memory, "backup", "--json").json["path"])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (9999, 'of_next_year', 'x', 1)")
    refused = command(memory, "restore", path)
    assert refused.code == 1
    assert "newer" in refused.stderr


def test_a_damaged_database_is_replaced_by_its_backup(command: Command, memory: Path) -> None:
    before = titles(memory / "gapless.db")
    path = command(memory, "backup", "--json").json["path"]
    for ending in ("-wal", "-shm"):
        Path(f"{memory}/gapless.db{ending}").unlink(missing_ok=True)
    (memory / "gapless.db").write_bytes(b"\0" * 8192)
    assert command(memory, "restore", path).code == 0
    assert titles(memory / "gapless.db") == before


@pytest.mark.slow
def test_while_the_service_runs_a_backup_can_be_made_but_not_restored(command: Command, own_port: Path) -> None:
    assert run_process(own_port, "up").code == 0
    made = command(own_port, "backup", "--json")
    refused = command(own_port, "restore", made.json["path"])
    assert refused.code == 1
    assert "gapless down" in refused.stderr
