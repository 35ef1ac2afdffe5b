"""The text index: kept by triggers, rebuilt from its tables when it is damaged, done without where there is no FTS5."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from service import fulltext
from service.core import Core, prepare_database
from service.models import Batch, Compressed, ObservationDraft, SummaryDraft
from service.settings import Configuration, load
from tests.store.desk import Desk

INDEXES = [f"{table}_fts" for table in fulltext.INDEXED]


def one_of_each(batch: Batch) -> Compressed:
    ids = tuple(m.message_id for m in batch.messages)
    return Compressed(
        observations=(ObservationDraft(type="change", title="needle in the cart", message_ids=ids),),
        summary=SummaryDraft(message_ids=ids, completed="found the needle"),
    )


@pytest.fixture
async def filled(desk: Desk, home: Path) -> Path:
    """A data folder with two sessions, each with a prompt, an observation and a summary that say needle; closed."""
    for session_id in ("s1", "s2"):
        await desk.prompt("find the needle", session_id=session_id)
        await desk.tool(session_id=session_id, at_ms=1)
        await desk.stop(session_id=session_id, at_ms=2)
    await desk.work_off(one_of_each)
    await desk.core.close()
    desk.core.close = _nothing  # type: ignore[method-assign]
    return home


async def _nothing() -> None:
    """The fixture closed the core already."""


def found(home: Path) -> list[list[int]]:
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        queries = (f"SELECT rowid FROM {index} WHERE {index} MATCH 'needle' ORDER BY rowid" for index in INDEXES)
        return [[row[0] for row in connection.execute(query)] for query in queries]


def damage(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / "gapless.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for index in INDEXES:
            for statement in statements:
                connection.execute(statement.format(index=index, table=index.removesuffix("_fts")))


DAMAGES = {
    "index dropped": ("DROP TABLE {index}",),
    "data dropped": ("DROP TABLE {index}_data",),
    "idx dropped": ("DROP TABLE {index}_idx",),
    "docsize dropped": ("DROP TABLE {index}_docsize",),
    "config dropped": ("DROP TABLE {index}_config",),
    "data emptied": ("DELETE FROM {index}_data",),
    "leaves gone": ("DELETE FROM {index}_data WHERE id > 10",),
    "leaves zeroed": ("UPDATE {index}_data SET block = zeroblob(length(block)) WHERE id > 10",),
    "leaves cut": ("UPDATE {index}_data SET block = x'00' WHERE id > 10",),
    "leaves garbage": ("UPDATE {index}_data SET block = randomblob(length(block)) WHERE id > 10",),
    "structure garbage": ("UPDATE {index}_data SET block = x'ffffffffff' WHERE id = 10",),
    "sizes gone": ("DELETE FROM {index}_docsize",),
    "emptied by command": ("INSERT INTO {index} ({index}) VALUES ('delete-all')",),
    "trigger gone": ("DROP TRIGGER {index}_insert",),
    "a write missed": ("DROP TRIGGER {index}_insert", "DELETE FROM {table} WHERE id = 2"),
    "trigger of another shape": (
        "DROP TRIGGER {index}_insert",
        "CREATE TRIGGER {index}_insert AFTER INSERT ON {table} BEGIN SELECT 1; END",
    ),
}


@pytest.mark.parametrize("statements", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_index_is_rebuilt_at_start_and_finds_the_same(
    filled: Path, configuration: Configuration, statements: tuple[str, ...]
) -> None:
    before = found(filled)
    damage(filled, *statements)
    await Core.open(configuration).close()
    with closing(sqlite3.connect(filled / "gapless.db", isolation_level=None)) as connection:
        remaining = [
            [row[0] for row in connection.execute(f"SELECT id FROM {table} ORDER BY id")] for table in fulltext.INDEXED
        ]
        assert [fulltext.check(connection, table) for table in fulltext.INDEXED] == [None] * 3
    assert found(filled) == remaining
    assert before == [[1, 2]] * 3


async def test_damage_that_only_a_full_check_sees_is_repaired_by_it(filled: Path) -> None:
    damage(filled, "UPDATE {index}_data SET block = x'ff' WHERE id = 1")
    with closing(sqlite3.connect(filled / "gapless.db", isolation_level=None)) as connection:
        assert None not in [fulltext.check(connection, table) for table in fulltext.INDEXED]
        fulltext.repair(connection)
        assert [fulltext.check(connection, table) for table in fulltext.INDEXED] == [None] * 3
    assert found(filled) == [[1, 2]] * 3


async def test_a_sound_index_is_left_alone_at_start(filled: Path) -> None:
    with closing(sqlite3.connect(filled / "gapless.db", isolation_level=None)) as connection:
        assert fulltext.ensure(connection, wanted=True) == []


@pytest.mark.parametrize(
    "project", ["", "🚀", "---", "naïve", "日本", "app_2", "İstanbul", "e\u0301", "ﬁne", "a.b/c d"]
)
async def test_no_name_of_a_project_makes_a_sound_index_look_damaged(desk: Desk, project: str) -> None:
    await desk.post(desk.payload(), project=project)
    await desk.work_off(one_of_each)
    with closing(sqlite3.connect(desk.core.database.path, isolation_level=None)) as connection:
        assert fulltext.ensure(connection, wanted=True) == []


async def test_edits_and_deletes_reach_the_index(filled: Path) -> None:
    damage(filled, "UPDATE {table} SET search_extra = 'haystack' WHERE id = 1", "DELETE FROM {table} WHERE id = 2")
    assert found(filled) == [[1]] * 3
    with closing(sqlite3.connect(filled / "gapless.db", isolation_level=None)) as connection:
        for index in INDEXES:
            assert connection.execute(f"SELECT rowid FROM {index} WHERE {index} MATCH 'haystack'").fetchall() == [(1,)]


async def test_without_fts5_writing_works_and_the_index_catches_up_when_it_is_back(
    desk: Desk, home: Path, configuration: Configuration
) -> None:
    off = load(home=home, environment={"GAPLESS_FTS": "off"})
    without = Core.open(off)
    assert not without.has_fulltext
    blind = Desk(without, desk.payload)
    await blind.prompt("find the needle")
    await blind.tool(at_ms=1)
    await blind.stop(at_ms=2)
    await blind.work_off(one_of_each)
    await without.close()
    again = Core.open(configuration)
    assert again.has_fulltext
    await again.close()
    assert found(home) == [[1]] * 3


def test_an_index_that_is_behind_is_found_out_even_if_the_database_is_only_prepared(home: Path) -> None:
    with closing(sqlite3.connect(home / "gapless.db", isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER user_prompts_fts_update")
    settings = load(home=home, environment={}).settings
    assert prepare_database(home / "gapless.db", settings=settings, backups=home / "backups")
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'user_prompts_fts_update'").fetchone()
