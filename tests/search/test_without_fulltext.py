"""Search goes on when the text index is missing, damaged or slow, and says so."""

import sqlite3

import pytest

from service.database import Tx
from service.search import search
from service.searching.request import SearchQuery
from tests.search.conftest import Memory


async def test_without_fts5_rows_with_more_of_the_words_come_first(plain_memory: Memory) -> None:
    some = await plain_memory.observation("upload", "the worker")
    whole = await plain_memory.observation("note", "the upload worker backs off")
    title = await plain_memory.observation("upload worker", "backs off")
    await plain_memory.observation("unrelated")
    answer = await plain_memory.find("uploads worker backing")
    assert [hit.id for hit in answer.results] == [title, whole, some]
    assert (answer.mode, answer.total) == ("keyword", 3)
    assert (answer.degraded or "").startswith("no_fts5")


@pytest.mark.parametrize(("query", "text"), [("50%", "at 50% load"), ("数据库", "修复数据库连接"), ("a_b", "a_b here")])
async def test_without_fts5_the_text_is_taken_literally(plain_memory: Memory, query: str, text: str) -> None:
    await plain_memory.observation("zzz", "5 and 0, axb")
    wanted = await plain_memory.observation("note", text)
    assert wanted in await plain_memory.ids(query)


async def test_without_fts5_all_filters_hold(plain_memory: Memory) -> None:
    own = await plain_memory.observation("note", project="p1", files_modified=["a/b.go"], concepts=["c"], type="bugfix")
    await plain_memory.observation("note", project="p2", session_id="s2", files_modified=["a/b.go"])
    for given in ({"project": "p1"}, {"concepts": "c"}, {"obs_type": "bugfix"}, {"project": "p1", "files": "b.go"}):
        assert await plain_memory.ids("note", **given) == [own]
        assert await plain_memory.ids("", **given) == [own]


async def test_a_damaged_index_is_answered_from_the_rows(memory: Memory) -> None:
    wanted = await memory.observation("upload worker")
    path = memory.core.database.path

    def damage() -> None:
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM observations_fts_data WHERE id > 10")
        connection.commit()
        connection.close()

    damage()
    answer = await memory.find("upload")
    assert [hit.id for hit in answer.results] == [wanted]
    assert "doctor" in (answer.degraded or "")


async def test_a_search_that_takes_too_long_is_stopped_and_its_reader_works_again(plain_memory: Memory) -> None:
    def fill(tx: Tx) -> None:
        tx.run("INSERT INTO projects (name, created_at_epoch) VALUES ('shop', 1)")
        tx.run(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) INSERT INTO observations "
            "(project, type, title, narrative, content_hash, created_at_epoch, stored_at_epoch) "
            "SELECT 'shop', 'change', 'note ' || i, hex(zeroblob(500)), 'hash', i, i FROM n"
        )

    await plain_memory.core.database.write(fill)
    stopped = await search(plain_memory.core.database, SearchQuery(query="zzqx"), deadline_s=0.0005)
    assert (stopped.degraded or "").startswith("deadline")
    again = await search(plain_memory.core.database, SearchQuery(query="note", limit=1), deadline_s=60)
    assert again.total == 30_000
