"""A private turn leaves nothing, however its events arrive; the turns around it are untouched."""

import pytest

from service.models import Compressed
from tests.store.desk import Desk

PRIVATE = "<private>the plan</private>"


async def kept(desk: Desk) -> list[str]:
    """The tool_use_ids whose messages hold a payload."""
    rows = await desk.rows(
        "SELECT event_key FROM pending_messages JOIN message_payloads ON message_id = id ORDER BY event_key"
    )
    return [row[0].rpartition("/")[2] for row in rows]


async def test_a_private_prompt_and_its_events_leave_nothing_until_the_next_prompt(desk: Desk) -> None:
    receipts = [
        await desk.prompt(PRIVATE, at_ms=0),
        await desk.tool(tool_use_id="hidden", at_ms=1),
        await desk.stop(at_ms=2, last_assistant_message="hidden words"),
    ]
    assert {(r.status, r.reason, r.message_id) for r in receipts} == {("skipped", "private", None)}
    await desk.prompt("go on", at_ms=10)
    await desk.tool(tool_use_id="seen", at_ms=11)
    assert await kept(desk) == ["seen"]
    assert await desk.rows("SELECT text FROM user_prompts") == [("go on",)]


async def test_by_prompt_id_only_the_events_of_that_prompt_are_private(desk: Desk) -> None:
    await desk.prompt(PRIVATE, at_ms=0, prompt_id="p1")
    await desk.tool(tool_use_id="of-p1", prompt_id="p1", at_ms=1)
    await desk.tool(tool_use_id="of-p2", prompt_id="p2", at_ms=2)
    await desk.tool(tool_use_id="late-of-p1", prompt_id="p1", at_ms=99_000)
    await desk.tool(tool_use_id="without-id", at_ms=3)
    assert await kept(desk) == ["of-p2"]


async def test_a_private_prompt_that_still_says_something_keeps_that_part(desk: Desk) -> None:
    await desk.prompt(f"use the cart {PRIVATE}", at_ms=0)
    await desk.tool(tool_use_id="seen", at_ms=1)
    assert [text.strip() for (text,) in await desk.rows("SELECT text FROM user_prompts")] == ["use the cart"]
    assert await kept(desk) == ["seen"]


@pytest.mark.parametrize("text", ["<system-reminder>be kind</system-reminder>", " \n ", ""])
async def test_a_prompt_of_host_reminders_only_makes_no_turn_private(desk: Desk, text: str) -> None:
    receipt = await desk.prompt(text, at_ms=0)
    await desk.tool(tool_use_id="seen", at_ms=1)
    assert (receipt.status, receipt.reason) == ("skipped", "ignored")
    assert await kept(desk) == ["seen"]


async def test_a_private_prompt_that_comes_late_hides_its_own_turn_and_no_other(desk: Desk) -> None:
    await desk.tool(tool_use_id="before", at_ms=0)
    await desk.tool(tool_use_id="of-the-private-turn", at_ms=20)
    await desk.prompt("the next turn", at_ms=30)
    await desk.tool(tool_use_id="of-the-next-turn", at_ms=31)
    await desk.prompt(PRIVATE, at_ms=10)
    await desk.tool(tool_use_id="also-of-the-private-turn", at_ms=21)
    await desk.tool(tool_use_id="also-of-the-next-turn", at_ms=32)
    assert await kept(desk) == ["also-of-the-next-turn", "before", "of-the-next-turn"]


async def test_the_same_private_prompt_again_does_not_open_its_turn_again(desk: Desk) -> None:
    for at_ms in (0, 50, 0):
        await desk.prompt(PRIVATE if at_ms == 0 else "public", at_ms=at_ms)
    await desk.tool(tool_use_id="seen", at_ms=60)
    assert await kept(desk) == ["seen"]


async def test_a_late_prompt_ends_the_private_turn_where_it_stood(desk: Desk) -> None:
    await desk.prompt(PRIVATE, at_ms=0)
    await desk.prompt("third", at_ms=100)
    await desk.prompt("second, late", at_ms=50)
    await desk.tool(tool_use_id="of-the-second", at_ms=60)
    assert await kept(desk) == ["of-the-second"]


async def test_another_sessions_private_turn_hides_nothing_here(desk: Desk) -> None:
    await desk.prompt(PRIVATE, session_id="s2")
    await desk.tool(tool_use_id="seen", session_id="s1", at_ms=1)
    assert await kept(desk) == ["seen"]


async def test_what_the_hook_marked_private_is_private_without_any_text(desk: Desk) -> None:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": "/x", "private": True}
    receipt = await desk.post(payload)
    assert receipt.reason == "private"
    assert (await desk.tool(at_ms=1)).reason == "private"


async def test_the_end_of_a_private_session_still_closes_it(desk: Desk) -> None:
    await desk.tool(at_ms=0)
    await desk.prompt(PRIVATE, at_ms=1)
    receipt = await desk.stop(event="SessionEnd", at_ms=2, reason="logout")
    assert receipt.status == "queued"
    assert await desk.rows("SELECT status FROM sessions") == [("closed",)]


async def test_messages_hidden_later_are_counted_as_skipped_with_the_reason(desk: Desk) -> None:
    await desk.tool(at_ms=20)
    await desk.prompt(PRIVATE, at_ms=10)
    assert await desk.rows("SELECT state, reason FROM pending_messages") == [("skipped", "private")]
    assert await desk.work_off(lambda _: Compressed()) == 0
