"""The same content within the window is stored once; a replay replaces and never doubles."""

import hashlib
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from service import inspection
from service.clock import now_ms
from service.errors import InvalidInput
from service.inspection import Selection
from service.models import Batch, Compressed, ObservationDraft, SummaryDraft
from service.observations import content_hash
from tests.store.desk import Desk


def says(title: str, narrative: str = "", **fields: object) -> Callable[[Batch], Compressed]:
    """An answer of one observation from all messages of the batch."""

    def answer(batch: Batch) -> Compressed:
        ids = tuple(m.message_id for m in batch.messages)
        draft = ObservationDraft(type="change", title=title, narrative=narrative, message_ids=ids, **fields)  # type: ignore[arg-type]
        return Compressed(observations=(draft,))

    return answer


def one_each(batch: Batch) -> Compressed:
    """An observation a message, named by what its command printed, and a summary where one is due."""
    tools = [m for m in batch.messages if m.tool_name]
    drafts = tuple(
        ObservationDraft(type="change", title=m.payload["tool_response"]["stdout"], message_ids=(m.message_id,))
        for m in tools
    )
    ids = tuple(m.message_id for m in batch.messages)
    return Compressed(
        observations=drafts, summary=SummaryDraft(message_ids=ids, completed="done") if batch.wants_summary else None
    )


async def replay(desk: Desk, *, dry_run: bool = False, **selection: object) -> list[int]:
    chosen = Selection(**selection)  # type: ignore[arg-type]
    return await desk.core.database.write(lambda tx: inspection.replay(tx, chosen, dry_run=dry_run, now=now_ms()))


async def contents(desk: Desk) -> list[tuple[object, ...]]:
    return await desk.rows(
        "SELECT session_id, title, narrative, source_message_ids, created_at_epoch FROM observations "
        "UNION ALL SELECT session_id, request, completed, source_message_ids, created_at_epoch FROM session_summaries "
        "ORDER BY 1, 2, 3, 4"
    )


async def test_at_thirty_seconds_it_is_a_duplicate_and_after_it_is_not(desk: Desk) -> None:
    for at_ms in (0, 30_000, 60_000, 90_001):
        await desk.tool(at_ms=at_ms)
        await desk.work_off(says("same"))
    rows = await desk.rows("SELECT repeats, created_at_epoch - 1700000000000 FROM observations ORDER BY id")
    assert rows == [(2, 60_000), (0, 90_001)], "a repeat moves the time"


async def test_a_repeat_remembers_the_events_it_came_from(desk: Desk) -> None:
    for at_ms in (0, 10):
        await desk.tool(at_ms=at_ms)
        await desk.work_off(says("same"))
    assert await desk.rows("SELECT source_message_ids, repeats FROM observations") == [("[1,2]", 1)]


async def test_a_late_event_is_compared_with_what_was_near_it_in_time(desk: Desk) -> None:
    for at_ms in (0, 100_000, 10_000, -31_000):
        await desk.tool(at_ms=at_ms)
        await desk.work_off(says("same"))
    rows = await desk.rows("SELECT created_at_epoch - 1700000000000, repeats FROM observations ORDER BY 1")
    assert rows == [(-31_000, 0), (10_000, 1), (100_000, 0)]


async def test_two_blocks_of_one_answer_that_say_the_same_are_one_observation(desk: Desk) -> None:
    await desk.tool()

    def answer(batch: Batch) -> Compressed:
        ids = (batch.messages[0].message_id,)
        words = ("Fixed the Café login", "fixed  the\tCAFÉ login ")
        forms = (unicodedata.normalize("NFC", words[0]), unicodedata.normalize("NFD", words[1]))
        return Compressed(
            observations=tuple(ObservationDraft(type="change", title=form, message_ids=ids) for form in forms)
        )

    await desk.work_off(answer)
    assert await desk.value("SELECT count(*) FROM observations") == 1


async def test_the_same_words_in_another_session_or_field_are_another_memory(desk: Desk) -> None:
    await desk.tool()
    await desk.work_off(says("a", "b"))
    await desk.tool(session_id="s2")
    await desk.work_off(says("a", "b"))
    await desk.tool(at_ms=1)
    await desk.work_off(says("a b"))
    assert await desk.value("SELECT count(*) FROM observations") == 3


def test_the_hash_is_the_written_down_one() -> None:
    expected = hashlib.sha256(b"s1\0add a cart\0it works").hexdigest()[:16]
    assert content_hash("s1", "  Add \n a\u00a0CART", "It\tworks ") == expected
    assert content_hash(None, "t", "") == content_hash("", "t", "")


async def test_an_observation_takes_time_and_project_of_its_newest_source(desk: Desk) -> None:
    await desk.tool(at_ms=0, cwd="/nowhere/shop")
    await desk.tool(at_ms=5_000, cwd="/nowhere/store")
    await desk.stop(at_ms=9_000)
    await desk.work_off(
        lambda b: Compressed(
            observations=(
                ObservationDraft(type="change", title="both", message_ids=(1, 2)),
                ObservationDraft(type="change", title="first", message_ids=(1,)),
            )
        )
    )
    rows = await desk.rows("SELECT title, project, created_at_epoch - 1700000000000 FROM observations ORDER BY title")
    assert rows == [("both", "store", 5_000), ("first", "shop", 0)]


@pytest.mark.parametrize("selection", [{"session": "s1"}, {"state": "done"}, {"project": "shop"}, {"since": 1}])
async def test_a_replay_of_everything_ends_with_the_same_memories(desk: Desk, selection: dict[str, Any]) -> None:
    for number in range(4):
        await desk.tool(at_ms=number * 40_000)
    await desk.stop(at_ms=200_000)
    await desk.work_off(one_each)
    before = await contents(desk)
    for _ in range(2):
        assert len(await replay(desk, **selection)) == 5
        assert await desk.states() == {"pending": 5}
        await desk.work_off(one_each)
        assert await contents(desk) == before


async def test_a_replay_within_the_window_of_its_own_first_result_is_stored_again(desk: Desk) -> None:
    await desk.tool()
    await desk.work_off(says("same"))
    await replay(desk, ids=(1,))
    await desk.work_off(says("same"))
    assert await desk.rows("SELECT title, repeats FROM observations") == [("same", 0)]


async def test_a_replay_of_one_event_leaves_its_neighbours_memories_alone(desk: Desk) -> None:
    for number in range(3):
        await desk.tool(at_ms=number * 40_000)
    await desk.work_off(one_each)
    assert await replay(desk, ids=(2,)) == [2]
    await desk.work_off(says("told anew"))
    assert [row[0] for row in await desk.rows("SELECT title FROM observations ORDER BY created_at_epoch")] == [
        "built 1",
        "told anew",
        "built 3",
    ]


async def test_events_that_made_a_memory_together_come_back_together(desk: Desk) -> None:
    for number in range(3):
        await desk.tool(at_ms=number)
    await desk.work_off(says("all three"))
    assert await replay(desk, ids=(2,)) == [1, 2, 3]


async def test_a_replay_that_says_nothing_removes_what_was_said_before(desk: Desk) -> None:
    await desk.tool()
    await desk.work_off(says("wrong"))
    await replay(desk, ids=(1,))
    await desk.work_off(lambda _: Compressed())
    assert await contents(desk) == []
    assert await desk.rows("SELECT state, reason FROM pending_messages") == [("skipped", "nothing_to_record")]


async def test_until_the_replay_is_worked_the_old_memories_stand(desk: Desk) -> None:
    await desk.tool()
    await desk.work_off(says("old"))
    await replay(desk, ids=(1,))
    assert [row[1] for row in await contents(desk)] == ["old"]


async def test_a_dry_run_changes_nothing_and_names_the_same_messages(desk: Desk) -> None:
    await desk.tool()
    await desk.work_off(says("old"))
    assert await replay(desk, dry_run=True, session="s1") == [1]
    assert await desk.states() == {"done": 1}


async def test_replay_needs_to_be_told_what(desk: Desk) -> None:
    with pytest.raises(InvalidInput):
        await replay(desk)


async def test_replay_does_not_touch_what_waits_or_is_in_work_or_private(desk: Desk) -> None:
    await desk.tool(session_id="working")
    await desk.claimed()
    await desk.tool(session_id="hidden", at_ms=20)
    await desk.prompt("<private>x</private>", session_id="hidden", at_ms=10)
    await desk.tool(session_id="waiting")
    assert await replay(desk, since=1) == []


async def test_a_replay_after_a_repeat_was_merged_keeps_the_counts_right(desk: Desk) -> None:
    for at_ms in (0, 10):
        await desk.tool(at_ms=at_ms)
        await desk.work_off(says("same"))
    assert await replay(desk, ids=(2,)) == [1, 2]
    await desk.work_off(says("same"))
    assert await desk.rows("SELECT source_message_ids FROM observations") == [("[1,2]",)]
