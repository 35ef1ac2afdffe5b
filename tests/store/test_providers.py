"""Pauses and the daily budget: provider trouble costs no attempt, and nothing is spent by surprise."""

from collections.abc import Callable
from functools import partial

import pytest

from service import completion, pending, providers
from service.clock import now_ms
from service.completion import Idle
from service.database import Tx
from service.models import Batch, Compressed, Usage
from service.providers import Budget
from tests.store.desk import Desk

DAY_MS = 86_400_000
NOON = 1_700_006_400_000 // DAY_MS * DAY_MS + DAY_MS // 2


async def write(desk: Desk, work: Callable[[Tx], object]) -> object:
    return await desk.core.database.write(work)


async def pause(desk: Desk, *, now: int, retry_after_ms: int | None = None, forever: bool = False) -> int | None:
    return await desk.core.database.write(
        lambda tx: providers.pause(
            tx,
            "anthropic",
            reason="overloaded",
            message="529",
            retry_after_ms=retry_after_ms,
            forever=forever,
            now=now,
        )
    )


async def test_the_pause_doubles_from_one_second_to_ten_minutes(desk: Desk) -> None:
    lengths = []
    now = NOON
    for _ in range(12):
        until = await pause(desk, now=now)
        assert until is not None
        lengths.append((until - now) // 1_000)
        now = until
    assert lengths == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]


async def test_the_providers_own_word_is_obeyed_whatever_the_step(desk: Desk) -> None:
    await pause(desk, now=NOON)
    assert await pause(desk, now=NOON, retry_after_ms=3_600_000) == NOON + 3_600_000


async def test_nothing_is_claimed_during_a_pause_and_the_reason_is_told(desk: Desk) -> None:
    await desk.tool()
    await desk.stop(at_ms=1)
    until = await pause(desk, now=now_ms(), retry_after_ms=60_000)
    idle = await desk.claim(provider="anthropic")
    assert isinstance(idle, Idle)
    assert idle.pause is not None
    assert (idle.pause.reason, idle.next_due_epoch) == ("overloaded", until)
    assert isinstance(await desk.claim(provider="rules"), Batch), "another provider is not concerned"


async def test_after_a_pause_one_probe_goes_and_the_others_wait_for_it(desk: Desk) -> None:
    for session_id in ("s1", "s2"):
        await desk.tool(session_id=session_id)
        await desk.stop(session_id=session_id, at_ms=1)
    until = await pause(desk, now=now_ms()) or 0
    probe = await desk.claim(provider="anthropic", now=until)
    assert isinstance(probe, Batch)
    assert isinstance(await desk.claim(provider="anthropic", now=until), Idle)
    await write(
        desk,
        lambda tx: completion.complete(tx, probe, Compressed(), provider="anthropic", window_ms=30_000, now=until),
    )
    assert isinstance(await desk.claim(provider="anthropic", now=until), Batch)
    assert await desk.rows("SELECT * FROM provider_state") == [], "one success forgets the trouble"


async def test_a_refused_key_pauses_until_someone_resumes(desk: Desk) -> None:
    await desk.tool()
    await desk.stop(at_ms=1)
    assert await pause(desk, now=NOON, forever=True) is None
    assert isinstance(await desk.claim(provider="anthropic", now=now_ms() + 400 * DAY_MS), Idle)
    await write(desk, lambda tx: providers.resume(tx, now=now_ms()))
    assert isinstance(await desk.claim(provider="anthropic"), Batch)


async def test_a_persons_pause_holds_every_provider_until_they_resume(desk: Desk) -> None:
    await desk.tool()
    await desk.stop(at_ms=1)
    await write(desk, lambda tx: providers.pause_by_hand(tx, now=now_ms()))
    for provider in ("rules", "anthropic"):
        assert isinstance(await desk.claim(provider=provider), Idle)
    await write(desk, lambda tx: providers.resume(tx, now=now_ms()))
    assert isinstance(await desk.claim(), Batch)


@pytest.mark.parametrize("budget", [Budget(calls=2, tokens=0), Budget(calls=0, tokens=250)])
async def test_a_spent_budget_stops_the_calls_until_the_next_utc_day(desk: Desk, budget: Budget) -> None:
    for number in range(4):
        await desk.tool(session_id=f"s{number}")
        await desk.stop(session_id=f"s{number}", at_ms=1)
    now = now_ms()
    calls = 0
    usage = Usage(calls=1, input_tokens=100, output_tokens=25)
    while isinstance(batch := await desk.claim(provider="anthropic", budget=budget, now=now), Batch):
        calls += 1
        await write(
            desk,
            partial(
                completion.complete,
                batch=batch,
                compressed=Compressed(usage=usage),
                provider="anthropic",
                window_ms=30_000,
                now=now,
            ),
        )
    assert calls == 2
    assert batch.pause is not None
    assert batch.pause.reason == "budget"
    assert batch.next_due_epoch == (now // DAY_MS + 1) * DAY_MS
    assert await desk.rows("SELECT calls, input_tokens, output_tokens FROM spend") == [(2, 200, 50)]
    tomorrow = await desk.claim(provider="anthropic", budget=budget, now=batch.next_due_epoch)
    assert isinstance(tomorrow, Batch)


async def test_two_consumers_cannot_both_take_the_last_call(desk: Desk) -> None:
    for session_id in ("s1", "s2"):
        await desk.tool(session_id=session_id)
        await desk.stop(session_id=session_id, at_ms=1)
    budget = Budget(calls=1, tokens=0)
    assert isinstance(await desk.claim(provider="anthropic", budget=budget, worker="w1"), Batch)
    assert isinstance(await desk.claim(provider="anthropic", budget=budget, worker="w2"), Idle)


async def test_a_call_that_was_never_made_is_not_charged(desk: Desk) -> None:
    await desk.tool()
    await desk.stop(at_ms=1)
    await desk.claim(provider="anthropic")
    await write(desk, lambda tx: completion.settle_spend(tx, "anthropic", Usage(calls=0), now=now_ms()))
    assert await desk.value("SELECT calls FROM spend") == 0


async def test_the_rules_are_never_charged(desk: Desk) -> None:
    await desk.tool()
    await desk.work_off(lambda _: Compressed(usage=Usage()))
    assert await desk.rows("SELECT * FROM spend") == []


async def test_failures_in_a_row_are_shown_with_the_first_time_and_gone_after_a_success(desk: Desk) -> None:
    for number in range(10):
        await write(desk, partial(providers.failed, provider="rules", message=f"error {number}", now=NOON + number))
    report = (await desk.core.queue())["failing"]
    assert report == {"failures": 10, "since_epoch": NOON, "last_error": "error 9"}
    await desk.tool()
    await desk.work_off(lambda _: Compressed())
    assert not (await desk.core.queue())["failing"]


async def test_a_pause_that_is_over_is_not_shown(desk: Desk) -> None:
    await desk.core.database.write(
        lambda tx: providers.pause(
            tx, "rules", reason="quota", message="m", retry_after_ms=1, forever=False, now=now_ms() - 3_600_000
        )
    )
    assert (await desk.core.queue())["paused"] is None


async def test_what_a_pause_postponed_waits_without_losing_an_attempt(desk: Desk) -> None:
    await desk.tool()
    batch = await desk.claimed()
    at = now_ms() + 30_000
    await write(desk, lambda tx: pending.retry(tx, batch.messages[0], at=at, error="529", bad_answer=False))
    assert await desk.rows("SELECT state, attempts, not_before_epoch FROM pending_messages") == [("pending", 0, at)]
