"""What ends by time: silent sessions, payloads of finished messages, dead letters, the outbox."""

from service import outbox, pending, retention
from service.clock import now_ms
from service.models import Compressed, MessageState
from tests.store.desk import Desk

DAY_MS = 86_400_000
IDLE_MS = 1_800_000


async def sweep(desk: Desk, *, later_ms: int) -> int:
    return await desk.core.database.write(
        lambda tx: retention.drop_payloads(tx, retention_ms=30 * DAY_MS, now=now_ms() + later_ms)
    )


async def close_idle(desk: Desk, *, later_ms: int) -> int:
    return await desk.core.database.write(
        lambda tx: retention.close_idle_sessions(tx, idle_ms=IDLE_MS, now=now_ms() + later_ms)
    )


async def test_payloads_of_finished_messages_go_and_their_keys_and_outcomes_stay(desk: Desk) -> None:
    event = desk.payload()
    first = await desk.post(event)
    await desk.tool(tool_input={"command": "ls"})
    await desk.work_off(lambda _: Compressed())
    assert await sweep(desk, later_ms=29 * DAY_MS) == 0
    assert await sweep(desk, later_ms=31 * DAY_MS) == 2
    assert await desk.rows("SELECT 1 FROM message_payloads") == []
    assert await desk.rows("SELECT state, reason FROM pending_messages ORDER BY id") == [
        ("skipped", "nothing_to_record"),
        ("skipped", "noise"),
    ]
    again = await desk.post(event)
    assert (again.status, again.message_id) == ("duplicate", first.message_id), "nothing comes back as new"


async def test_private_turns_go_with_their_session_and_not_before(desk: Desk) -> None:
    await desk.tool(at_ms=-1)
    await desk.prompt("<private>the plan</private>")
    await desk.prompt("<private>the plan</private>", session_id="without-a-row")
    await sweep(desk, later_ms=29 * DAY_MS)
    assert await desk.value("SELECT count(*) FROM private_turns") == 2
    await sweep(desk, later_ms=31 * DAY_MS)
    assert await desk.rows("SELECT session_id FROM private_turns") == [("without-a-row",)]


async def test_what_still_waits_is_never_forgotten(desk: Desk) -> None:
    await desk.tool()
    await desk.tool(session_id="s2")
    await desk.claimed()
    assert await sweep(desk, later_ms=400 * DAY_MS) == 0


async def test_dead_letters_keep_their_payload_for_ninety_days_and_expire_in_sight(desk: Desk) -> None:
    await desk.tool()
    (message,) = (await desk.claimed()).messages
    await desk.core.database.write(
        lambda tx: pending.finish(tx, message, MessageState.FAILED, reason="refusal", bad_answer=True, now=now_ms())
    )
    assert await sweep(desk, later_ms=89 * DAY_MS) == 0
    assert await sweep(desk, later_ms=91 * DAY_MS) == 1
    report = await desk.core.queue()
    assert (report["states"]["failed"], report["expired"]) == (1, 1)


async def test_a_silent_session_closes_and_gets_its_summary(desk: Desk) -> None:
    await desk.tool(at_ms=7)
    assert await close_idle(desk, later_ms=IDLE_MS - 60_000) == 0
    assert await close_idle(desk, later_ms=IDLE_MS + 60_000) == 1
    assert await desk.rows("SELECT status FROM sessions") == [("closed",)]
    assert await desk.rows(
        "SELECT hook_event, captured_at_epoch - 1700000000000 FROM pending_messages WHERE message_type = 'summary'"
    ) == [("SessionIdle", 7)]
    assert (await desk.claimed()).wants_summary


async def test_a_silent_session_without_news_closes_without_a_summary(desk: Desk) -> None:
    await desk.tool()
    await desk.stop(at_ms=1)
    assert await close_idle(desk, later_ms=2 * IDLE_MS) == 1
    assert await desk.value("SELECT count(*) FROM pending_messages WHERE hook_event = 'SessionIdle'") == 0


async def test_late_events_of_a_closed_session_get_a_summary_of_their_own(desk: Desk) -> None:
    await desk.tool(at_ms=0)
    await close_idle(desk, later_ms=2 * IDLE_MS)
    await desk.tool(at_ms=-1_000)
    assert await close_idle(desk, later_ms=4 * IDLE_MS) == 1
    assert await desk.value("SELECT count(*) FROM pending_messages WHERE hook_event = 'SessionIdle'") == 2


async def test_the_outbox_keeps_seven_days(desk: Desk) -> None:
    await desk.core.database.write(lambda tx: outbox.tell(tx, "queue", {}, now=now_ms() - 8 * DAY_MS))
    await desk.core.database.write(lambda tx: outbox.tell(tx, "queue", {"new": 1}, now=now_ms()))
    await desk.core.database.write(lambda tx: outbox.trim(tx, now=now_ms()))
    assert await desk.rows("SELECT data FROM outbox") == [('{"new":1}',)]


async def test_the_outbox_keeps_ten_thousand_rows(desk: Desk) -> None:
    def fill(tx: object) -> None:
        for number in range(10_050):
            outbox.tell(tx, "queue", {"n": number}, now=now_ms())  # type: ignore[arg-type]

    await desk.core.database.write(fill)
    await desk.core.database.write(lambda tx: outbox.trim(tx, now=now_ms()))
    assert await desk.rows("SELECT count(*), min(id) FROM outbox") == [(10_000, 51)]
