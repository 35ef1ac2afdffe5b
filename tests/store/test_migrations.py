"""Bringing a database file to this code's schema: once each, checked against the real tables, refused when newer."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from migrations import runner
from service.core import Core, prepare_database
from service.errors import SchemaError
from service.settings import Configuration, load
from tests.store.desk import Desk

ROOT = Path(__file__).parents[2]


def edit(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / "gapless.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def columns(home: Path, table: str) -> set[str]:
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def open_and_close(configuration: Configuration) -> None:
    core = Core.open(configuration)
    asyncio.run(core.close())


def test_a_new_folder_gets_every_migration_once_with_its_checksum(tmp_path: Path) -> None:
    configuration = load(home=tmp_path / "new", environment={})
    for _ in range(2):
        open_and_close(configuration)
    with closing(sqlite3.connect(configuration.database)) as connection:
        ledger = connection.execute("SELECT number, checksum FROM schema_migrations").fetchall()
    assert ledger == [(migration.number, migration.checksum) for migration in runner.shipped()]
    assert not list((configuration.home / "backups").iterdir()), "there was nothing to back up"


def test_a_database_newer_than_the_code_is_refused_in_words(home: Path, configuration: Configuration) -> None:
    edit(home, "INSERT INTO schema_migrations VALUES (9999, 'of_next_year', 'x', 1)")
    with pytest.raises(SchemaError, match=r"newer.*9999.*upgrade"):
        Core.open(configuration)


def test_an_altered_checksum_is_refused_and_nothing_is_changed(home: Path, configuration: Configuration) -> None:
    edit(home, "UPDATE schema_migrations SET checksum = 'other'", "DROP TABLE outbox")
    with pytest.raises(SchemaError, match="differs"):
        Core.open(configuration)
    assert columns(home, "outbox") == set()


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("pending_messages", "error"),
        ("pending_messages", "attempts"),
        ("pending_messages", "tool_name"),
        ("pending_messages", "payload_bytes"),
        ("sessions", "unsummarised"),
        ("sessions", "cwd"),
        ("observations", "repeats"),
        ("observations", "metadata"),
        ("user_prompts", "client_prompt_id"),
        ("session_summaries", "discovery_tokens"),
    ],
)
async def test_a_missing_column_is_added_and_events_are_stored(
    home: Path, configuration: Configuration, hooks_payload: object, table: str, column: str
) -> None:
    edit(home, f"ALTER TABLE {table} DROP COLUMN {column}")
    assert column not in columns(home, table)
    core = Core.open(configuration)
    desk = Desk(core, hooks_payload)  # type: ignore[arg-type]
    try:
        assert column in columns(home, table)
        await desk.prompt("go")
        assert (await desk.tool(at_ms=1)).status == "queued"
        await desk.claimed()
    finally:
        await core.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE outbox",
        "DROP TABLE not_queued",
        "DROP TABLE private_turns",
        "DROP TABLE observation_feedback",
        "DROP INDEX sessions_due",
        "DROP TRIGGER pending_messages_drop_payload",
    ],
)
def test_a_missing_table_index_or_trigger_is_made_again(
    home: Path, configuration: Configuration, statement: str
) -> None:
    def layout() -> set[str]:
        with closing(sqlite3.connect(home / "gapless.db")) as connection:
            return {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}

    whole = layout()
    edit(home, statement)
    assert layout() != whole
    open_and_close(configuration)
    assert layout() >= whole


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    home: Path, configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = runner.Migration(number=999, name="bad", sql="CREATE TABLE half (a); INSERT INTO nowhere VALUES (1);")
    shipped = runner.shipped()
    monkeypatch.setattr(runner, "shipped", lambda: [*shipped, bad])
    with pytest.raises(SchemaError, match="bad"):
        Core.open(configuration)
    assert columns(home, "half") == set()


def test_an_upgrade_makes_a_backup_with_the_data_before_it_changes_anything(
    home: Path, configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(home, "INSERT INTO projects (name, created_at_epoch) VALUES ('kept', 1)")
    shipped = runner.shipped()
    upgrade = runner.Migration(
        number=999, name="more", sql="DELETE FROM projects; CREATE TABLE more (a INTEGER) STRICT;"
    )
    monkeypatch.setattr(runner, "shipped", lambda: [*shipped, upgrade])
    open_and_close(configuration)
    (backup,) = (home / "backups").glob("*.db")
    assert backup.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("SELECT name FROM projects").fetchall() == [("kept",)]
        assert connection.execute("SELECT count(*) FROM schema_migrations").fetchone() == (len(shipped),)
    assert columns(home, "more") == {"a"}


@pytest.mark.slow
def test_processes_that_start_together_on_a_new_folder_all_come_up(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; from service.core import Core; "
        "from service.settings import load; sys.stdin.readline(); "
        "core = Core.open(load(home=Path(sys.argv[1]), environment={})); asyncio.run(core.close())"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "new")],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    results = [child.communicate(timeout=60) for child in children]
    assert [child.returncode for child in children] == [0] * 4, results


def test_preparing_a_ready_database_changes_no_byte(home: Path, configuration: Configuration) -> None:
    def prepare() -> bytes:
        prepare_database(home / "gapless.db", settings=configuration.settings, backups=home / "backups")
        return (home / "gapless.db").read_bytes()

    assert prepare() == prepare()
