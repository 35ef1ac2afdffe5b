"""One event, one message: identity comes from the client's ids, else from the delivery, else from the payload."""

import asyncio
from typing import Any

import pytest

from hooks import secrets
from service.core import Core
from service.models import Compressed
from tests.store.desk import Desk

NO_IDS = {"hook_event_name": "PostToolUse", "session_id": "s1", "cwd": "/x", "tool_name": "Bash"}


async def test_the_same_event_eight_times_at_once_and_again_later_is_one_message(desk: Desk) -> None:
    event = desk.payload()
    receipts = await asyncio.gather(*(desk.post(event) for _ in range(8)))
    receipts.append(await desk.post(event, at_ms=3_600_000))
    assert sorted(r.status for r in receipts) == ["duplicate"] * 8 + ["queued"]
    assert len({r.message_id for r in receipts}) == 1
    assert len({r.event_key for r in receipts}) == 1
    assert await desk.states() == {"pending": 1}


async def test_the_same_event_is_a_duplicate_after_a_restart_and_after_it_was_worked(desk: Desk) -> None:
    event = desk.payload()
    first = await desk.post(event)
    await desk.work_off(lambda _: Compressed())
    reopened = Core.open(desk.core.configuration)
    try:
        again = await Desk(reopened, desk.payload).post(event)
    finally:
        await reopened.close()
    assert (again.status, again.message_id) == ("duplicate", first.message_id)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"session_id": "a/b", "tool_use_id": "c"}, {"session_id": "a", "tool_use_id": "b/c"}),
        ({"session_id": "a%2Fb", "tool_use_id": "c"}, {"session_id": "a/b", "tool_use_id": "c"}),
        ({"tool_use_id": "t1"}, {"tool_use_id": "t1", "hook_event_name": "PostToolUseFailure"}),
        ({"tool_use_id": "t1", "session_id": "s1"}, {"tool_use_id": "t1", "session_id": "s2"}),
    ],
    ids=["slashes", "escapes", "event name", "session"],
)
async def test_different_ids_never_make_the_same_key(desk: Desk, one: dict[str, Any], other: dict[str, Any]) -> None:
    receipts = [await desk.tool(**one), await desk.tool(**other)]
    assert [r.status for r in receipts] == ["queued", "queued"]


async def test_an_id_that_ends_like_a_payload_hash_is_still_an_id(desk: Desk) -> None:
    first = await desk.tool(tool_use_id="toolu_1:")
    again = await desk.tool(tool_use_id="toolu_1:", at_ms=31_000)
    assert (again.status, again.message_id) == ("duplicate", first.message_id)


async def test_a_stop_is_told_from_another_by_prompt_agent_and_words(desk: Desk) -> None:
    stop: dict[str, Any] = {"prompt_id": "p1", "last_assistant_message": "done"}
    await desk.tool(tool_use_id="t1")
    first = await desk.stop(**stop)
    await desk.tool(tool_use_id="t2", at_ms=1)
    assert (await desk.stop(**stop, at_ms=60_000)).status == "duplicate"
    second = await desk.stop(**{**stop, "last_assistant_message": "done as well"}, at_ms=2)
    assert first.message_id != second.message_id
    subagents = [await desk.stop(event="SubagentStop", agent_id=agent, **stop, at_ms=3) for agent in ("a1", "a2", "a1")]
    assert [r.status for r in subagents] == ["queued", "queued", "duplicate"]


async def test_a_stop_posted_raw_and_spooled_redacted_is_one_event(desk: Desk) -> None:
    await desk.tool()
    words = "set the password: AKIAIOSFODNN7EXAMPLE works"
    raw = await desk.stop(prompt_id="p1", last_assistant_message=words)
    await desk.tool(tool_use_id="later")
    spooled = await desk.stop(prompt_id="p1", last_assistant_message=secrets.redact_text(words))
    assert secrets.redact_text(words) != words
    assert (spooled.status, spooled.message_id) == ("duplicate", raw.message_id)


async def test_a_prompt_posted_twice_is_one_prompt_and_has_no_message(desk: Desk) -> None:
    first = await desk.prompt("add a cart", prompt_id="p1")
    again = await desk.prompt("add a cart", prompt_id="p1", at_ms=90_000)
    assert (first.status, first.message_id) == ("recorded", None)
    assert (again.status, again.message_id) == ("duplicate", None)
    assert await desk.rows("SELECT prompt_number, text FROM user_prompts") == [(1, "add a cart")]


async def test_three_prompts_within_ten_seconds_are_three(desk: Desk) -> None:
    for number in range(3):
        await desk.prompt(f"step {number}", at_ms=number * 3_000)
    assert await desk.rows("SELECT prompt_number, text FROM user_prompts ORDER BY id") == [
        (1, "step 0"),
        (2, "step 1"),
        (3, "step 2"),
    ]


async def test_without_the_clients_ids_the_delivery_tells_events_apart(desk: Desk) -> None:
    receipts = [await desk.post(NO_IDS, delivery=delivery) for delivery in ("d1", "d1", "d2")]
    assert [r.status for r in receipts] == ["queued", "duplicate", "queued"]


async def test_without_any_id_the_same_payload_counts_again_after_thirty_seconds(desk: Desk) -> None:
    statuses = [(await desk.post(NO_IDS, at_ms=ms)).status for ms in (0, 29_999, 30_000, 30_001)]
    assert statuses == ["queued", "duplicate", "duplicate", "queued"]


async def test_a_late_copy_of_an_event_without_ids_finds_its_own_time(desk: Desk) -> None:
    first = await desk.post(NO_IDS, at_ms=0)
    await desk.post(NO_IDS, at_ms=100_000)
    again = await desk.post(NO_IDS, at_ms=0)
    earlier = await desk.post(NO_IDS, at_ms=-60_000)
    assert (again.status, again.message_id) == ("duplicate", first.message_id)
    assert earlier.status == "queued"


async def test_prompts_without_ids_follow_the_same_rule(desk: Desk) -> None:
    statuses = [(await desk.prompt("again", at_ms=ms)).status for ms in (0, 100_000, 0, 130_000, 130_001)]
    assert statuses == ["recorded", "recorded", "duplicate", "duplicate", "recorded"]


async def test_an_event_that_was_forgotten_is_a_duplicate_and_leaves_nothing(desk: Desk) -> None:
    tool = desk.payload(tool_use_id="t1")
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt_id": "p1", "prompt": "the plan"}
    keys = ["PostToolUse/s1/t1", "UserPromptSubmit/s1/p1"]
    await desk.core.database.write(
        lambda tx: [tx.run("INSERT INTO forgotten VALUES (:key, 1)", {"key": key}) for key in keys]
    )
    receipts = [await desk.post(tool), await desk.post(prompt)]
    assert [(r.status, r.event_key, r.message_id) for r in receipts] == [("duplicate", key, None) for key in keys]
    assert await desk.rows("SELECT 1 FROM sessions UNION ALL SELECT 1 FROM user_prompts") == []


async def test_a_forgotten_event_without_ids_is_known_by_its_payload_for_thirty_seconds(desk: Desk) -> None:
    event = {"hook_event_name": "PreCompact", "session_id": "s1", "cwd": "/nowhere/shop"}
    await desk.tool()
    first = await desk.post(event, at_ms=1)
    await desk.core.database.write(
        lambda tx: [
            tx.run("INSERT INTO forgotten SELECT event_key, 1 FROM pending_messages WHERE hook_event = 'PreCompact'"),
            tx.run("DELETE FROM message_payloads WHERE message_id = :id", {"id": first.message_id}),
            tx.run("DELETE FROM pending_messages WHERE id = :id", {"id": first.message_id}),
        ]
    )
    again = await desk.post(event, at_ms=29_000)
    assert (again.status, again.event_key, again.message_id) == ("duplicate", first.event_key, None)
    await desk.tool(at_ms=31_000)
    assert (await desk.post(event, at_ms=32_000)).status == "queued"
