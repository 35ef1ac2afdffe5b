"""Bounded work at size: rare words first, and an old exact match is still found."""

import pytest

from service.core import Core
from service.database import Tx
from service.searching.matching import RANKED_ROWS
from tests.search.conftest import Memory

MANY = 3 * RANKED_ROWS
EVERYDAY = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
INSERT INTO observations (project, type, title, narrative, content_hash, created_at_epoch, stored_at_epoch)
SELECT 'shop', 'change', 'note ' || i,
    CASE i % 3 WHEN 0 THEN 'everyday word' WHEN 1 THEN 'word about everyday things'
        ELSE 'everyday word about things' END,
    'hash', :at + i, :at + i FROM n
"""

VARIED = "kettle ladder marble needle orchard pepper quarry ribbon saddle timber valley window".split()  # noqa: SIM905
VARIED_ROW = """
INSERT INTO observations (project, type, title, narrative, content_hash, created_at_epoch, stored_at_epoch)
VALUES ('shop', 'change', 'note', :narrative, 'hash', :at, :at)
"""


@pytest.fixture
async def crowded(core: Core) -> Memory:
    """Thousands of rows that share their words, all younger than the rows a test wants to find."""
    memory = Memory(core)
    await memory.observation("rare treasure", "buried long ago")
    await memory.observation("everyday exact phrase", "an everyday word, and things about it")

    def fill(tx: Tx) -> None:
        tx.run(EVERYDAY, {"many": MANY, "at": 1_760_000_100_000})

    await core.database.write(fill)
    return memory


@pytest.fixture
async def varied(core: Core) -> Memory:
    """Thousands of rows that hold three of twelve everyday words each, some with a rare word, and an old row that holds
    seven of them, in another project too."""
    memory = Memory(core)
    await memory.observation("a note", " ".join(VARIED[:7]))
    await memory.observation("a note", " ".join(VARIED[:7]), project="barn", session_id="s2")

    def fill(tx: Tx) -> None:
        for number in range(MANY):
            words = [VARIED[number % 12], VARIED[(5 * number + number // 12) % 12], VARIED[(7 * number + 3) % 12]]
            narrative = " ".join([*words, "and then it went home", "zebra" if number % 5 == 0 else ""])
            tx.run(VARIED_ROW, {"narrative": narrative, "at": 1_760_000_100_000 + number})

    await core.database.write(fill)
    return memory


@pytest.mark.parametrize("wrong", ["", "zebra", "unheard", VARIED[11]])
async def test_an_old_row_with_most_of_the_everyday_words_comes_first_whatever_else_is_asked(
    varied: Memory, wrong: str
) -> None:
    question = f"{' '.join(VARIED[:3])} {wrong} {' '.join(VARIED[3:7])}"
    assert (await varied.ids(question, project="shop"))[0] == 1
    assert (await varied.ids(question, project="barn"))[0] == 2
    assert set((await varied.ids(question))[:2]) == {1, 2}


async def test_a_row_that_lacks_two_of_the_everyday_words_comes_first(varied: Memory) -> None:
    assert (await varied.ids(" ".join([*VARIED[:6], *VARIED[10:12]]), project="shop"))[0] == 1


async def test_a_rare_word_is_found_among_everyday_ones(crowded: Memory) -> None:
    assert (await crowded.ids("everyday treasure word about things"))[0] == 1


async def test_an_old_row_that_holds_every_everyday_word_and_one_more_is_found(crowded: Memory) -> None:
    assert (await crowded.ids("an exact everyday word about things"))[0] == 2


async def test_the_only_row_with_an_everyday_word_in_its_title_comes_first(crowded: Memory) -> None:
    assert (await crowded.ids("everyday"))[0] == 2


async def test_words_that_stand_everywhere_still_find_something(crowded: Memory) -> None:
    for query in ("everyday", "everyday word", "everyday OR word", "every*", "note", "note everyday word about things"):
        answer = await crowded.find(query)
        assert len(answer.results) == 20, query
        assert answer.total >= 50, query


async def test_what_is_excluded_stays_out_among_rows_too_many_to_rank(crowded: Memory) -> None:
    answer = await crowded.find("everyday NOT things", limit=100)
    assert answer.total >= 100
    assert all(hit.id % 3 == 2 or hit.id == 1 for hit in answer.results if hit.id > 2)


async def test_paging_goes_on_past_the_ranked_rows(crowded: Memory) -> None:
    pages = [await crowded.ids("everyday word", limit=100, offset=offset) for offset in range(0, 1000, 100)]
    ids = [row_id for page in pages for row_id in page]
    assert len(ids) == len(set(ids)) == 1000


async def test_without_text_the_count_is_exact(crowded: Memory) -> None:
    assert (await crowded.find("", project="shop")).total == MANY + 2
