"""What happened around a moment: every kind of anchor, merged by time, within a project."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from service import records
from service.clock import iso, now_ms
from service.errors import InvalidInput, NotFound
from service.timeline import Timeline, TimelineEntry, TimelineQuery, timeline
from tests.memories.stated import T0, Stated
from tests.search.conftest import Memory

Around = Callable[..., Awaitable[Timeline]]


@pytest.fixture
def memory(stated: Stated) -> Memory:
    return Memory(stated.core)


@pytest.fixture
def around(stated: Stated) -> Around:
    async def ask(anchor: str | None = None, **given: Any) -> Timeline:
        return await timeline(stated.core.database, TimelineQuery(anchor=anchor, **given), now=now_ms())

    return ask


@pytest.fixture
async def day(memory: Memory) -> None:
    """A second apart: a prompt, two observations, a summary; the same in another session; one of another project."""
    for session in ("s1", "s2"):
        await memory.prompt(f"ask {session}", session_id=session)
        await memory.observation(f"first {session}", session_id=session)
        await memory.observation(f"second {session}", session_id=session)
        await memory.summary(f"sum {session}", session_id=session)
    await memory.observation("elsewhere", session_id="m1", project="mill")


def shown(found: Timeline) -> list[str]:
    return [("> " if entry.is_anchor else "") + entry.title for entry in found.results]


ALL = ["ask s1", "first s1", "second s1", "sum s1", "ask s2", "first s2", "second s2", "sum s2"]


@pytest.mark.parametrize(
    ("anchor", "title"),
    [("2", "second s1"), ("S1", "sum s1"), ("s1", "sum s1"), ("P2", "ask s2"), ("p1", "ask s1"), ("s2", "sum s2")],
)
async def test_a_record_of_any_kind_is_an_anchor(day: None, around: Around, anchor: str, title: str) -> None:
    found = await around(anchor)
    assert shown(found) == [f"> {each}" if each == title else each for each in ALL]


async def test_a_session_is_an_anchor_by_its_first_record(day: None, memory: Memory, around: Around) -> None:
    await memory.prompt("ask more", session_id="0b5c-session")
    await memory.observation("do more", session_id="0b5c-session")
    found = await around("0b5c-session", depth_before=1)
    assert shown(found) == ["sum s2", "> ask more", "do more"]


async def test_depths_count_on_either_side_and_may_be_nothing(day: None, around: Around) -> None:
    assert shown(await around("2", depth_before=1, depth_after=2)) == ["first s1", "> second s1", "sum s1", "ask s2"]
    assert shown(await around("2", depth_before=0, depth_after=0)) == ["> second s1"]


async def test_a_time_stands_between_records(day: None, memory: Memory, around: Around) -> None:
    (at,) = await memory.core.database.write(
        lambda tx: tx.all("SELECT created_at_epoch AS at FROM observations WHERE title = 'second s1'")
    )
    for spelled in (iso(at["at"]), str(at["at"]), iso(at["at"]).replace("Z", " 00:00")):
        found = await around(spelled, depth_before=1, depth_after=1, project="shop")
        assert shown(found) == ["first s1", "second s1"]
        assert found.anchor is not None
        assert (found.anchor.kind, found.anchor.id, found.anchor.created_at_epoch) == ("time", None, at["at"])
    later = await around(iso(at["at"] + 1), depth_before=1, depth_after=1, project="shop")
    assert shown(later) == ["second s1", "sum s1"]
    assert shown(await around("1999-01-01", depth_after=1)) == ["ask s1"]


async def test_a_query_stands_at_its_best_hit_or_finds_nothing(day: None, around: Around) -> None:
    assert shown(await around(query="first s2", depth_before=1, depth_after=1)) == ["ask s2", "> first s2", "second s2"]
    assert shown(await around(query="sum", depth_before=0, depth_after=0, project="shop"))[0].startswith("> sum")
    nothing = await around(query="volcano")
    assert (nothing.anchor, nothing.results) == (None, ())


async def test_a_record_is_shown_in_its_own_project_unless_all_are_asked_for(day: None, around: Around) -> None:
    assert "elsewhere" not in shown(await around("4"))
    assert "elsewhere" in shown(await around("4", all_projects=True))
    assert shown(await around("5")) == ["> elsewhere"]
    assert "elsewhere" in shown(await around("2100-01-01"))
    assert shown(await around("2100-01-01", own_project="mill")) == ["elsewhere"]
    assert shown(await around(query="first", own_project="mill")) == []


async def test_a_record_of_another_project_is_not_there(day: None, around: Around) -> None:
    with pytest.raises(NotFound, match="is in the project 'mill'"):
        await around("5", project="shop")


@pytest.mark.parametrize("anchor", ["99", "S99", "P99", "no-such-session", "12345678901", "9" * 30, "S", "2026-13-01"])
async def test_an_anchor_that_is_not_there_is_told_what_anchors_are(day: None, around: Around, anchor: str) -> None:
    with pytest.raises(NotFound, match="an anchor is"):
        await around(anchor)


async def test_either_an_anchor_or_a_query_is_needed(around: Around) -> None:
    for given in ({}, {"anchor": "1", "query": "x"}, {"anchor": " "}):
        with pytest.raises(InvalidInput):
            await around(**given)


async def test_records_of_one_time_go_by_kind_and_id_and_none_is_lost(memory: Memory, around: Around) -> None:
    for number in range(4):
        await memory.summary(f"sum {number}", at=T0)
        await memory.observation(f"note {number}", at=T0)
        await memory.prompt(f"ask {number}", at=T0)
    every = [f"{kind} {number}" for kind in ("ask", "note", "sum") for number in range(4)]
    for anchor, place in (("P2", 1), ("2", 5), ("S4", 11), ("P1", 0)):
        for depth in (0, 2, 20):
            found = await around(anchor, depth_before=depth, depth_after=depth)
            assert [entry.title for entry in found.results] == every[max(place - depth, 0) : place + depth + 1]


async def test_an_expired_memory_is_no_neighbour(day: None, stated: Stated, around: Around) -> None:
    await stated.remember("gone", created_at_epoch=T0, expires_at_epoch=T0)
    assert "gone" not in shown(await around("1999-01-01", project="shop"))


async def test_walking_from_record_to_record_meets_each_once(memory: Memory, around: Around) -> None:
    rng = random.Random(7)
    for number in range(60):
        make: Any = rng.choice([memory.observation, memory.summary, memory.prompt])
        await make(f"row {number}", at=T0 + rng.randrange(20))
    walked, step = list[TimelineEntry](), (await around("1999-01-01", depth_after=1)).results
    while step:
        walked.append(step[-1])
        anchor = str(records.spelled((step[-1].kind, step[-1].id)))
        step = (await around(anchor, depth_before=0, depth_after=1)).results[1:]
    assert len({(entry.kind, entry.id) for entry in walked}) == len(walked) == 60
    assert [entry.created_at_epoch for entry in walked] == sorted(entry.created_at_epoch for entry in walked)
