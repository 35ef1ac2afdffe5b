"""What each event becomes: a session, a prompt, a message, or a counted nothing."""

from typing import Any

import pytest

from service.core import Incoming
from service.errors import InvalidInput
from service.intake import Envelope, Receipt
from service.models import Compressed
from tests.store.desk import T0, Desk

NOTHING = Compressed()


@pytest.mark.parametrize(
    ("event", "fields", "status", "reason"),
    [
        ("SessionStart", {"source": "resume"}, "recorded", None),
        ("UserPromptSubmit", {"prompt": "go"}, "recorded", None),
        ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "make"}}, "queued", None),
        ("PostToolUseFailure", {"tool_name": "Bash", "error": "exit 1"}, "queued", None),
        ("SubagentStop", {"agent_id": "a1", "last_assistant_message": "found it"}, "queued", None),
        ("SubagentStop", {"agent_id": "a1", "last_assistant_message": "  "}, "skipped", "ignored"),
        ("SubagentStop", {"agent_id": "a1"}, "skipped", "ignored"),
        ("Stop", {"last_assistant_message": "nothing happened"}, "skipped", "ignored"),
        ("PreToolUse", {"tool_name": "Bash"}, "skipped", "ignored"),
        ("PostToolBatch", {"tool_calls": []}, "skipped", "ignored"),
        ("StopFailure", {"error": "api"}, "skipped", "ignored"),
        ("Notification", {"message": "hello"}, "skipped", "ignored"),
        ("EventOfNextYear", {}, "skipped", "ignored"),
        ("UserPromptSubmit", {"prompt": "<task-notification>done</task-notification>"}, "skipped", "protocol"),
        ("PostToolUse", {"tool_name": "mcp__plugin_gapless_gapless__search"}, "skipped", "self"),
        ("UserPromptSubmit", {"prompt": "remember", "gapless_internal": True}, "skipped", "self"),
    ],
)
async def test_an_event_becomes_what_the_table_says(
    desk: Desk, event: str, fields: dict[str, Any], status: str, reason: str | None
) -> None:
    receipt = await desk.post({"hook_event_name": event, "session_id": "s1", "cwd": "/nowhere/shop", **fields})
    assert (receipt.status, receipt.reason) == (status, reason)
    assert (receipt.message_id is not None) == (status == "queued")
    counted = await desk.rows("SELECT reason, count FROM not_queued")
    assert counted == ([(reason, 1)] if reason else [])


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd"])
async def test_a_summary_is_due_only_when_something_is_new_since_the_last(desk: Desk, event: str) -> None:
    await desk.tool(at_ms=0)
    statuses = [(await desk.stop(event=event, at_ms=ms)).status for ms in (1, 40_000)]
    await desk.prompt("go", at_ms=80_000)
    statuses += [(await desk.stop(event=event, at_ms=ms)).status for ms in (80_001, 120_000)]
    assert statuses == ["queued", "skipped", "queued", "skipped"]


async def test_six_stops_without_news_between_make_one_summary(desk: Desk) -> None:
    await desk.tool()
    for number in range(6):
        await desk.stop(prompt_id="p1", last_assistant_message=f"done {number}", at_ms=number * 4_000)
    assert await desk.value("SELECT count(*) FROM pending_messages WHERE message_type = 'summary'") == 1


@pytest.mark.parametrize(
    "tool",
    [
        {"tool_name": "TodoWrite", "tool_input": {"todos": []}},
        {"tool_name": "LS", "tool_input": {"path": "/x"}},
        {"tool_name": "Bash", "tool_input": {"command": "cd /x && ls -la; pwd"}},
        {"tool_name": "Bash", "tool_input": {"command": "git status --short"}},
    ],
)
async def test_trivial_events_are_accepted_and_skipped_as_noise_at_once(desk: Desk, tool: dict[str, Any]) -> None:
    receipt = await desk.tool(**tool)
    assert receipt.status == "queued"
    assert await desk.rows("SELECT state, reason FROM pending_messages") == [("skipped", "noise")]
    assert (await desk.stop(at_ms=1)).status == "skipped", "noise is nothing to summarise"


@pytest.mark.parametrize("command", ["ls | wc -l > n", "ls && make", "git push", "echo $(make)", "date && rm -r x"])
async def test_a_command_that_does_more_than_list_is_no_noise(desk: Desk, command: str) -> None:
    await desk.tool(tool_input={"command": command})
    assert await desk.states() == {"pending": 1}


async def test_reading_a_file_again_in_one_session_is_noise_whatever_the_range(desk: Desk) -> None:
    def read(path: str, **fields: Any) -> dict[str, Any]:
        return {"tool_name": "Read", "tool_input": {"file_path": path, **fields}, "tool_response": {}}

    for fields in (
        read("/x/a.py"),
        read("/x/a.py", offset=200),
        read("/x/b.py"),
        {**read("/x/a.py"), "session_id": "s2"},
    ):
        await desk.tool(**fields)
    states = [row[0] for row in await desk.rows("SELECT state FROM pending_messages ORDER BY id")]
    assert states == ["pending", "skipped", "pending", "pending"]


async def test_a_late_event_reopens_a_closed_session_and_is_worked(desk: Desk) -> None:
    await desk.tool(at_ms=0)
    await desk.stop(event="SessionEnd", at_ms=1)
    await desk.work_off(lambda _: NOTHING)
    assert (await desk.tool(at_ms=-50)).status == "queued"
    assert await desk.rows("SELECT status FROM sessions") == [("active",)]
    assert await desk.work_off(lambda _: NOTHING) == 1


async def test_a_stop_of_nothing_that_comes_late_leaves_a_closed_session_closed(desk: Desk) -> None:
    await desk.tool(at_ms=0)
    await desk.stop(at_ms=1)
    await desk.stop(event="SessionEnd", at_ms=9)
    assert (await desk.stop(at_ms=5, last_assistant_message="Well?")).status == "skipped"
    assert await desk.rows("SELECT status FROM sessions") == [("closed",)]
    await desk.stop(at_ms=12, last_assistant_message="Again?")
    assert await desk.rows("SELECT status FROM sessions") == [("active",)]


async def test_times_come_from_the_hook_then_from_the_payload_then_from_arrival(desk: Desk) -> None:
    await desk.tool(at_ms=5)
    await desk.post(desk.payload(timestamp="2023-11-14T22:13:20.007Z"), captured_at=None)
    await desk.post(desk.payload(timestamp="soon"), captured_at=None)
    await desk.post(desk.payload(), captured_at=99_999_999_999_999)
    rows = await desk.rows("SELECT captured_at_epoch, created_at_epoch FROM pending_messages ORDER BY id")
    assert [captured for captured, _ in rows[:2]] == [T0 + 5, T0 + 7]
    assert all(0 <= arrived - captured < 5_000 for captured, arrived in rows[2:])


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        42,
        "text",
        {},
        {"hook_event_name": "Stop"},
        {"hook_event_name": "Stop", "session_id": ""},
        {"hook_event_name": "Stop", "session_id": 7},
        {"hook_event_name": "Stop", "session_id": "x" * 513},
        {"hook_event_name": ["Stop"], "session_id": "s1"},
    ],
)
async def test_what_is_no_hook_payload_is_refused_and_leaves_nothing(desk: Desk, payload: Any) -> None:
    with pytest.raises(InvalidInput):
        await desk.post(payload)
    assert await desk.rows("SELECT 1 FROM pending_messages UNION ALL SELECT 1 FROM sessions") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_input": None, "tool_response": None},
        {"tool_input": [1, 2], "tool_response": "text"},
        {"tool_name": {"not": "a name"}},
        {"cwd": 7, "prompt_id": [], "agent_id": {}},
        {"cwd": "relative/folder"},
        {"cwd": "nul\x00byte"},
        {"tool_use_id": "", "timestamp": -1},
        {"tool_use_id": "x" * 5_000},
        {"session_id": "s\x001 \u2028 é"},
        {"tool_response": {"stdout": "\x00\x1b[31mred\ufffd\u2028"}},
        {"timestamp": 1e308},
        {"tool_input": {"command": "ls " * 100_000}},
    ],
)
async def test_odd_fields_of_a_payload_are_taken_as_they_come(desk: Desk, fields: dict[str, Any]) -> None:
    assert (await desk.tool(**fields)).status == "queued"
    await desk.work_off(lambda _: NOTHING)


async def test_a_batch_with_bad_items_keeps_the_good_ones_in_order(desk: Desk) -> None:
    payloads = [desk.payload(), 42, desk.payload(), {"hook_event_name": "Stop"}]
    batch = [Incoming(payload=payload, size=10, envelope=Envelope()) for payload in payloads]
    results = await desk.core.ingest_many(batch)
    assert [isinstance(result, Receipt) for result in results] == [True, False, True, False]
    assert await desk.states() == {"pending": 2}


async def test_a_stop_that_comes_late_does_not_take_the_next_turns_summary(desk: Desk) -> None:
    await desk.prompt("first", at_ms=0)
    await desk.prompt("second", at_ms=20)
    late = await desk.stop(at_ms=10, last_assistant_message="the first is done")
    own = await desk.stop(at_ms=30, last_assistant_message="the second is done")
    again = await desk.stop(at_ms=40, last_assistant_message="nothing since")
    assert [r.status for r in (late, own, again)] == ["queued", "queued", "skipped"]


async def test_stops_that_come_in_reverse_each_keep_their_turn(desk: Desk) -> None:
    await desk.tool(at_ms=0)
    await desk.tool(at_ms=20)
    statuses = [(await desk.stop(at_ms=at_ms, last_assistant_message=f"at {at_ms}")).status for at_ms in (30, 10)]
    assert statuses == ["queued", "queued"]
