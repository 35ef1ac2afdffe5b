"""The queue: claims, leases, fences, retries, and when what waits is due."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from service import completion, due, pending, providers
from service.clock import now_ms
from service.completion import Idle
from service.core import Core
from service.errors import FenceLost
from service.models import Batch, Compressed, Message, MessageState, ObservationDraft
from tests.store.desk import Desk

NOTHING = Compressed()


def by_model(desk: Desk, **changes: Any) -> Any:
    given = {"by_turn": False, "batch_events": 3, "batch_tokens": 100_000, "wait_ms": 120_000, **changes}
    return replace(desk.core.policy, **given)


async def lapse(desk: Desk, *, dead: tuple[str, ...] = ()) -> int:
    later = now_ms() + (0 if dead else 10_000_000)
    return await desk.core.database.write(lambda tx: pending.release_lapsed(tx, now=later, dead=dead))


async def finish(desk: Desk, message: Message) -> None:
    await desk.core.database.write(lambda tx: pending.finish(tx, message, MessageState.DONE, now=now_ms()))


async def test_a_batch_is_one_sessions_waiting_messages_in_captured_order(desk: Desk) -> None:
    for at_ms in (30, 10, 20):
        await desk.tool(at_ms=at_ms, tool_use_id=str(at_ms))
    await desk.tool(session_id="s2")
    batch = await desk.claimed()
    assert [m.event_key.rpartition("/")[2] for m in batch.messages] == ["10", "20", "30"]
    assert {m.session_id for m in batch.messages} == {"s1"}


async def test_many_claims_at_once_never_share_a_message_or_a_session(desk: Desk) -> None:
    for number in range(40):
        await desk.tool(session_id=f"s{number % 8}")
    await desk.core.database.write(lambda tx: due.flush(tx, now=now_ms()))
    found = await asyncio.gather(*(desk.claim(worker=f"w{number}") for number in range(16)))
    batches = [batch for batch in found if isinstance(batch, Batch)]
    assert len(batches) == 8
    assert len({m.message_id for batch in batches for m in batch.messages}) == 40


async def test_a_session_is_worked_by_one_claim_at_a_time(desk: Desk) -> None:
    await desk.tool()
    await desk.claimed()
    await desk.tool()
    await desk.core.database.write(lambda tx: due.flush(tx, now=now_ms()))
    assert isinstance(await desk.claim(worker="w2"), Idle)


async def test_a_session_with_spooled_events_is_not_claimed_yet(desk: Desk) -> None:
    await desk.tool()
    await desk.stop(at_ms=1)
    assert isinstance(await desk.claim(held=["s1"]), Idle)
    assert isinstance(await desk.claim(held=["other"]), Batch)


async def test_a_lapsed_claim_returns_and_its_old_holder_can_write_nothing(desk: Desk) -> None:
    await desk.tool()
    old = await desk.claimed()
    assert await lapse(desk) == 1
    with pytest.raises(FenceLost):
        await finish(desk, old.messages[0])
    new = await desk.claimed(worker="w2")
    drafts = (ObservationDraft(type="change", title="late", message_ids=(old.messages[0].message_id,)),)
    with pytest.raises(FenceLost):
        await desk.complete(old, Compressed(observations=drafts))
    with pytest.raises(FenceLost):
        await desk.core.database.write(lambda tx: pending.extend(tx, old.messages, until=now_ms()))
    assert await desk.rows("SELECT 1 FROM observations") == []
    await desk.complete(new, NOTHING)
    assert await desk.states() == {"skipped": 1}


async def test_a_claim_whose_lease_still_runs_stays_unless_its_worker_is_dead(desk: Desk) -> None:
    await desk.tool()
    await desk.claimed(worker="w1")
    alive = await desk.core.database.write(lambda tx: pending.release_lapsed(tx, now=now_ms(), dead=["w2"]))
    assert alive == 0
    assert await lapse(desk, dead=("w1",)) == 1
    assert await desk.rows("SELECT crashes, attempts FROM pending_messages") == [(1, 0)]


async def test_the_claim_number_grows_with_every_claim_and_is_never_reset(desk: Desk) -> None:
    await desk.tool()
    numbers = []
    for _ in range(3):
        batch = await desk.claimed()
        numbers.append(batch.messages[0].claim_no)
        await lapse(desk)
    assert numbers == [1, 2, 3]


async def test_after_two_crashes_a_message_comes_alone_and_after_ten_it_is_buried(desk: Desk) -> None:
    await desk.tool(tool_use_id="poison")
    await desk.tool(at_ms=1)
    sizes = []
    for _ in range(3):
        sizes.append(len((await desk.claimed()).messages))
        await lapse(desk)
    assert sizes == [2, 2, 1]
    for _ in range(7):
        await desk.claimed()
        await lapse(desk)
    rows = await desk.rows("SELECT state, reason, crashes, attempts FROM pending_messages ORDER BY id")
    assert rows[0] == ("failed", "crashes", 10, 0)
    assert rows[1][:2] == ("pending", None)


async def test_giving_back_costs_neither_an_attempt_nor_a_crash(desk: Desk) -> None:
    await desk.tool()
    batch = await desk.claimed()
    await desk.core.database.write(lambda tx: completion.release(tx, batch.messages, now=now_ms()))
    assert await desk.rows("SELECT state, attempts, crashes FROM pending_messages") == [("pending", 0, 0)]
    assert isinstance(await desk.claim(), Batch)


async def test_a_retry_is_not_claimed_before_its_time(desk: Desk) -> None:
    await desk.tool()
    batch = await desk.claimed()
    at = now_ms() + 60_000
    await desk.core.database.write(lambda tx: pending.retry(tx, batch.messages[0], at=at, error="no"))
    early = await desk.claim()
    assert isinstance(early, Idle)
    assert early.next_due_epoch == at
    assert isinstance(await desk.claim(now=at), Batch)
    assert await desk.rows("SELECT attempts, error FROM pending_messages") == [(1, "no")]


async def test_flushing_does_not_hurry_a_retry_but_resuming_does(desk: Desk) -> None:
    await desk.tool()
    batch = await desk.claimed()
    at = now_ms() + 3_600_000
    await desk.core.database.write(lambda tx: pending.retry(tx, batch.messages[0], at=at, error="", bad_answer=False))
    await desk.core.database.write(lambda tx: due.flush(tx, now=now_ms()))
    assert isinstance(await desk.claim(), Idle)
    await desk.core.database.write(lambda tx: providers.resume(tx, now=now_ms()))
    assert isinstance(await desk.claim(), Batch)


async def test_a_failed_batch_comes_back_whole_once_and_then_one_by_one(desk: Desk) -> None:
    for _ in range(3):
        await desk.tool()
    sizes = []
    for _ in range(2):
        batch = await desk.claimed()
        sizes.append(len(batch.messages))
        for message in batch.messages:
            await desk.core.database.write(partial(pending.retry, message=message, at=0, error="bad"))
    sizes.append(len((await desk.claimed()).messages))
    assert sizes == [3, 3, 1]


async def test_the_rules_wait_for_the_end_of_the_turn(desk: Desk) -> None:
    await desk.tool()
    idle = await desk.claim()
    assert isinstance(idle, Idle)
    assert idle.next_due_epoch is not None
    assert 55_000 < idle.next_due_epoch - now_ms() <= 60_000, "60 s of silence"
    await desk.prompt("next", at_ms=1)
    assert isinstance(await desk.claim(), Batch)


async def test_what_is_due_already_but_held_back_does_not_hurry_the_poll(desk: Desk) -> None:
    await desk.tool()
    await desk.stop(at_ms=1)
    idle = await desk.claim(held=["s1"])
    assert isinstance(idle, Idle)
    assert idle.next_due_epoch is None


async def test_a_model_waits_for_enough_events_and_takes_no_more_than_that(desk: Desk) -> None:
    policy = by_model(desk)
    for number in range(7):
        await desk.tool(at_ms=number)
    await desk.core.database.write(lambda tx: due.after_event(tx, "s1", policy, due_at=None, now=now_ms()))
    sizes = []
    while isinstance(batch := await desk.claim(policy=policy, limit=3), Batch):
        sizes.append(len(batch.messages))
        await desk.complete(batch, NOTHING)
    assert sizes == [3, 3]
    assert await desk.states() == {"skipped": 6, "pending": 1}


async def test_a_summary_due_at_stop_shares_the_last_batchs_call(desk: Desk) -> None:
    for number in range(6):
        await desk.tool(at_ms=number)
    await desk.stop(at_ms=10)
    sizes = []
    while isinstance(batch := await desk.claim(policy=by_model(desk), limit=3), Batch):
        sizes.append((len(batch.messages), batch.wants_summary))
        await desk.complete(batch, NOTHING)
    assert sizes == [(3, False), (4, True)]


async def test_a_model_call_is_bounded_by_tokens_but_one_large_event_still_goes(desk: Desk) -> None:
    for number in range(3):
        await desk.tool(at_ms=number, tool_response={"stdout": "words and " * 400})
    await desk.stop(at_ms=10)
    sizes = []
    while isinstance(batch := await desk.claim(policy=by_model(desk, batch_tokens=100), limit=10), Batch):
        sizes.append(len(batch.messages))
        await desk.complete(batch, NOTHING)
    assert sizes[:2] == [1, 1]
    assert sum(sizes) == 4


async def test_one_of_two_sessions_that_fails_does_not_hold_up_the_other(desk: Desk) -> None:
    for session_id in ("s1", "s2"):
        await desk.tool(session_id=session_id)
    batch = await desk.claimed()
    await desk.core.database.write(lambda tx: pending.retry(tx, batch.messages[0], at=now_ms() + 60_000, error="bad"))
    other = await desk.claim()
    assert isinstance(other, Batch)
    assert other.session.session_id != batch.session.session_id


async def test_work_of_a_session_whose_client_is_gone_is_found_in_the_database_alone(desk: Desk) -> None:
    for number in range(4):
        await desk.tool(at_ms=number)
    reopened = Core.open(desk.core.configuration)
    try:
        assert len((await Desk(reopened, desk.payload).claimed()).messages) == 4
    finally:
        await reopened.close()


async def test_a_batch_brings_the_prompts_in_force_and_earlier_observations(desk: Desk) -> None:
    await desk.prompt("first", at_ms=0)
    await desk.tool(at_ms=1)
    await desk.work_off(
        lambda b: Compressed(
            observations=(ObservationDraft(type="change", title="made it", message_ids=(b.messages[0].message_id,)),)
        )
    )
    await desk.prompt("second", at_ms=10)
    await desk.tool(at_ms=20)
    await desk.prompt("third, later", at_ms=30)
    batch = await desk.claimed()
    assert [prompt.text for prompt in batch.prompts] == ["second"]
    assert [prompt.prompt_number for prompt in batch.prompts] == [2]
    assert [observation.title for observation in batch.earlier] == ["made it"]


async def test_a_prompt_that_came_late_does_not_end_its_own_turn(desk: Desk) -> None:
    await desk.tool(at_ms=10)
    await desk.prompt("what led to it", at_ms=5)
    assert isinstance(await desk.claim(), Idle)
    await desk.prompt("the next", at_ms=20)
    assert isinstance(await desk.claim(), Batch)


async def test_the_beginning_of_the_next_turn_is_not_claimed_with_the_end_of_this_one(desk: Desk) -> None:
    await desk.tool(at_ms=0)
    await desk.stop(at_ms=1)
    await desk.prompt("next", at_ms=2)
    await desk.tool(at_ms=3)
    batch = await desk.claim()
    assert isinstance(batch, Batch)
    assert len(batch.messages) == 2
    await desk.complete(batch, NOTHING)
    assert isinstance(await desk.claim(), Idle), "the open turn waits for its own end"
