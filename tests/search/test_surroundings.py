"""What stands around a record in its session helps to find it; dates in a query are dates."""

from datetime import datetime

import pytest

from service.searching.moments import Moment, moments
from service.searching.surroundings import beside, gains
from tests.search.conftest import Memory


async def fill(memory: Memory) -> None:
    for n in range(20):
        await memory.observation(f"filler {n}", "about other matters", session_id=f"filler-{n}")


async def test_the_answer_that_follows_a_question_is_found_by_the_question_s_words(memory: Memory) -> None:
    far = await memory.observation("note", "the harvester was sold", session_id="far")
    await memory.observation("asked", "which belt does the combine need?", session_id="talk")
    answer = await memory.observation("said", "the harvester takes a B62", session_id="talk")
    await fill(memory)
    ids = await memory.ids("belt of the combine harvester")
    assert ids.index(answer) < ids.index(far)


async def test_other_sessions_are_not_around(memory: Memory) -> None:
    older = await memory.observation("note", "the harvester was sold", session_id="far")
    await memory.observation("asked", "which belt does the combine need?", session_id="talk")
    newer = await memory.observation("note", "the harvester was bought", session_id="other")
    await fill(memory)
    answer = await memory.find("belt of the combine harvester", age="off")
    scores = {hit.id: hit.score for hit in answer.results}
    assert scores[older] == scores[newer]


async def test_what_holds_no_word_is_not_found_for_its_neighbours(memory: Memory) -> None:
    await memory.observation("asked", "which belt?", session_id="talk")
    silent = await memory.observation("said", "I don't know", session_id="talk")
    assert silent not in await memory.ids("belt")


def test_a_word_counts_where_it_stands_best() -> None:
    near = beside([(1, [2, 3]), (2, [3]), (3, [])])
    assert gains([{1: 10.0}], near) == {2: 5.0, 3: 3.0}
    assert gains([{1: 10.0, 2: 10.0}], near) == {1: 1.5, 2: 1.5, 3: 5.0}
    assert gains([{1: 10.0}, {2: 4.0}], near) == {1: 2.0, 2: 5.0, 3: 5.0}


DATES = [
    ("what was decided on 25 May, 2026", [(2026, 5, 25)]),
    ("on May 25th 2026 and 8th December, 2025", [(2026, 5, 25), (2025, 12, 8)]),
    ("the 1st of March", [(None, 3, 1)]),
    ("in June", [(None, 6, None)]),
    ("MARCH 2024", [(2024, 3, None)]),
    ("sept 2023", [(2023, 9, None)]),
    ("2026-05-03 or 2026-06", [(2026, 5, 3), (2026, 6, None)]),
    ("25TH MAY 2026", [(2026, 5, 25)]),
    ("May 2026 and May 2026", [(2026, 5, None)]),
    ("it may fail in step 2 may it", []),
    ("March on, Dec", []),
    ("migrate 0001-2026-99", []),
    ("june bug", []),
]


@pytest.mark.parametrize(("text", "dates"), DATES)
def test_dates_are_read_as_people_write_them(text: str, dates: list[tuple[int | None, int, int | None]]) -> None:
    assert moments(text) == [Moment(year=year, month=month, day=day) for year, month, day in dates]


async def test_what_was_stored_on_a_day_that_the_query_names_comes_first(memory: Memory) -> None:
    def noon(day: str) -> int:
        return round(datetime.fromisoformat(f"{day}T12:00:00").timestamp() * 1000)

    days = ("2026-05-24", "2026-05-25", "2026-06-25", "2025-05-25")
    ids = {day: await memory.observation(f"harvester {n}", session_id=day, at=noon(day)) for n, day in enumerate(days)}
    await fill(memory)
    assert (await memory.ids("the harvester on 25 May 2026"))[0] == ids["2026-05-25"]
    assert set((await memory.ids("the harvester on 25 May"))[:2]) == {ids["2026-05-25"], ids["2025-05-25"]}
    assert set(await memory.ids("the harvester in June")) == set(ids.values())
    assert (await memory.ids("the harvester in June"))[0] == ids["2026-06-25"]


@pytest.mark.parametrize("at", [-(2**62), 2**61])
async def test_a_time_that_is_no_date_harms_no_search_by_date(memory: Memory, at: int) -> None:
    wanted = await memory.observation("harvester", at=at)
    assert await memory.ids("harvester in June 2026") == [wanted]


async def test_age_can_be_left_out_of_the_ranking(memory: Memory) -> None:
    year_ms = 365 * 86_400_000
    old = await memory.observation("harvester", "belt", at=1_700_000_000_000, session_id="s1")
    new = await memory.observation("harvester", "pump", at=1_700_000_000_000 + year_ms, session_id="s2")
    await fill(memory)
    aged = {hit.id: hit.score for hit in (await memory.find("harvester")).results}
    ageless = {hit.id: hit.score for hit in (await memory.find("harvester", age="off")).results}
    assert aged[old] < aged[new]
    assert ageless[old] == ageless[new]
