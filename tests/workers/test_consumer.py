"""The consumer: every answer, good or bad, ends in one written outcome."""

import asyncio
import sqlite3
from collections import deque
from contextlib import closing
from dataclasses import replace

import pytest

from service import due, pending
from service.clock import now_ms
from service.errors import BadAnswer, ProviderPaused, RequestRejected, StoreUnavailable
from service.models import Compressed, Usage
from service.providers import Budget
from tests.conftest import until
from tests.store.desk import Desk
from tests.workers.queued import QueuedCompressor, consumer, made

BAD = BadAnswer("prose", kind="malformed", calls=1)


async def everything_due(desk: Desk) -> None:
    """Everything that waits, retries too, may be claimed now."""
    await desk.core.database.write(lambda tx: due.retry_now(tx, now=now_ms()))


async def test_a_good_answer_is_stored_and_acknowledged(desk: Desk) -> None:
    done: list[int] = []
    await desk.tool()
    await desk.stop(at_ms=1)
    worker = consumer(desk, QueuedCompressor(deque([made("a cart")])), completed=done.append)
    assert await worker.tick() == 0
    assert await desk.rows("SELECT title, source_message_ids FROM observations") == [("a cart", "[1,2]")]
    assert await desk.rows("SELECT state, reason FROM pending_messages") == [
        ("done", None),
        ("skipped", "nothing_to_record"),
    ]
    assert done == [2]
    assert await worker.tick() > 0


async def test_nothing_to_record_is_skipped_with_the_reason(desk: Desk) -> None:
    await desk.tool()
    await everything_due(desk)
    await consumer(desk, QueuedCompressor()).tick()
    assert await desk.rows("SELECT state, reason FROM pending_messages") == [("skipped", "nothing_to_record")]


async def test_an_answer_that_is_bad_twice_and_then_good_costs_two_attempts_and_loses_nothing(desk: Desk) -> None:
    compressor = QueuedCompressor(deque([BAD, BAD, made("at last")]))
    await desk.tool()
    for _ in range(3):
        await everything_due(desk)
        await consumer(desk, compressor).tick()
    assert await desk.rows("SELECT state, attempts FROM pending_messages") == [("done", 2)]
    assert compressor.strict == [False, True, True]


async def test_an_answer_that_stays_bad_is_asked_for_exactly_three_times_and_then_a_dead_letter(desk: Desk) -> None:
    compressor = QueuedCompressor(deque([BAD] * 9))
    await desk.tool()
    for _ in range(6):
        await everything_due(desk)
        await consumer(desk, compressor).tick()
    assert len(compressor.asked) == 3
    assert await desk.rows("SELECT state, reason, attempts, error FROM pending_messages") == [
        ("failed", "malformed", 3, "prose")
    ]


async def test_one_poisoned_event_costs_its_neighbours_nothing(desk: Desk) -> None:
    for number in range(3):
        await desk.tool(at_ms=number, tool_use_id="poison" if number == 1 else f"t{number}")

    class Picky(QueuedCompressor):
        async def compress(self, batch: object, *, strict: bool) -> Compressed:
            poisoned = any(m.event_key.endswith("poison") for m in batch.messages)  # type: ignore[attr-defined]
            self.answers = deque([BAD if poisoned else made("fine")])
            return await QueuedCompressor.compress(self, batch, strict=strict)  # type: ignore[arg-type]

    for _ in range(8):
        await everything_due(desk)
        await consumer(desk, Picky()).tick()
    assert await desk.rows("SELECT state FROM pending_messages ORDER BY id") == [("done",), ("failed",), ("done",)]


@pytest.mark.parametrize("error", [RequestRejected("too long"), ValueError("a bug of ours"), KeyError("x")])
async def test_a_rejected_request_or_a_bug_costs_an_attempt_and_keeps_the_message(desk: Desk, error: Exception) -> None:
    await desk.tool()
    await everything_due(desk)
    await consumer(desk, QueuedCompressor(deque([error]))).tick()
    assert await desk.rows("SELECT state, attempts FROM pending_messages") == [("pending", 1)]


@pytest.mark.parametrize("reason", ["rate_limited", "overloaded", "unreachable", "auth", "quota"])
async def test_provider_trouble_costs_no_attempt_and_buries_nothing(desk: Desk, reason: str) -> None:
    await desk.tool()
    worker = consumer(desk, QueuedCompressor(deque([ProviderPaused("529", reason=reason)] * 5)))
    for _ in range(5):
        await everything_due(desk)
        await desk.core.database.write(lambda tx: tx.run("UPDATE provider_state SET until_epoch = 1"))
        await worker.tick()
    assert await desk.rows("SELECT state, attempts, crashes FROM pending_messages") == [("pending", 0, 0)]


async def test_retry_after_is_obeyed(desk: Desk) -> None:
    compressor = QueuedCompressor(deque([ProviderPaused("429", reason="rate_limited", retry_after_s=30)]))
    await desk.tool()
    await everything_due(desk)
    await consumer(desk, compressor).tick()
    not_before = await desk.value("SELECT not_before_epoch FROM pending_messages")
    assert 29_000 < not_before - now_ms() <= 30_000
    await everything_due(desk)
    await consumer(desk, compressor).tick()
    assert len(compressor.asked) == 1


async def test_a_budget_of_two_calls_makes_two_calls(desk: Desk) -> None:
    compressor = QueuedCompressor(deque([replace(made(f"o{n}"), usage=Usage(calls=1)) for n in range(9)]))
    for number in range(5):
        await desk.tool(session_id=f"s{number}")
    await everything_due(desk)
    terms = desk.terms(provider="anthropic", budget=Budget(calls=2, tokens=0))
    worker = consumer(desk, compressor, terms=terms)
    for _ in range(6):
        await worker.tick()
    assert len(compressor.asked) == 2
    assert await desk.states() == {"done": 2, "pending": 3}


async def test_when_the_budget_is_spent_the_rules_go_on_if_so_configured(desk: Desk) -> None:
    for number in range(3):
        await desk.tool(session_id=f"s{number}")
    await everything_due(desk)
    rules = QueuedCompressor(deque([made("by rule")] * 3))
    fallback = consumer(desk, rules)
    terms = desk.terms(provider="anthropic", budget=Budget(calls=1, tokens=0))
    paid = QueuedCompressor(deque([replace(made("by model"), usage=Usage(calls=1))]))
    worker = consumer(desk, paid, terms=terms, fallback=fallback)
    for _ in range(3):
        await worker.tick()
    assert [len(paid.asked), len(rules.asked)] == [1, 2]


async def test_an_answer_that_comes_after_the_claim_was_taken_over_is_dropped(desk: Desk) -> None:
    slow = QueuedCompressor(deque([made("late")]), gate=asyncio.Event())
    await desk.tool()
    await everything_due(desk)
    async with asyncio.TaskGroup() as tasks:
        ticking = tasks.create_task(consumer(desk, slow).tick())
        await slow.entered.wait()
        later = now_ms() + 10_000_000
        await desk.core.database.write(lambda tx: pending.release_lapsed(tx, now=later))
        await everything_due(desk)
        await consumer(desk, QueuedCompressor(deque([made("in time")]))).tick()
        assert slow.gate is not None
        slow.gate.set()
    assert ticking.result() == 0
    assert await desk.rows("SELECT title FROM observations") == [("in time",)]
    assert await desk.states() == {"done": 1}


async def test_a_long_compression_keeps_its_lease(desk: Desk) -> None:
    slow = QueuedCompressor(deque([made("worth the wait")]), gate=asyncio.Event())
    await desk.tool()
    await everything_due(desk)
    started = now_ms()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(consumer(desk, slow, terms=desk.terms(lease_ms=300)).tick())
        await slow.entered.wait()

        async def extended() -> bool:
            return bool(await desk.value("SELECT lease_until_epoch FROM pending_messages") > started + 1_000)

        await until(extended)
        assert slow.gate is not None
        slow.gate.set()
    assert await desk.states() == {"done": 1}


async def test_a_cancelled_compression_is_given_back_unharmed(desk: Desk) -> None:
    slow = QueuedCompressor(gate=asyncio.Event())
    await desk.tool()
    await everything_due(desk)
    ticking = asyncio.ensure_future(consumer(desk, slow).tick())
    await slow.entered.wait()
    ticking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ticking
    assert await desk.rows("SELECT state, attempts, crashes FROM pending_messages") == [("pending", 0, 0)]


@pytest.mark.slow
async def test_an_answer_is_kept_while_the_database_is_locked(desk: Desk) -> None:
    """The lock outlasts the busy timeout; the answer was paid for."""
    slow = QueuedCompressor(deque([made("paid for")]), gate=asyncio.Event())
    await desk.tool()
    await everything_due(desk)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(consumer(desk, slow).tick())
        await slow.entered.wait()
        with closing(sqlite3.connect(desk.core.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert slow.gate is not None
            slow.gate.set()
            await asyncio.wait_for(asyncio.shield(_refused(desk)), 20)
            other.execute("ROLLBACK")
    assert len(slow.asked) == 1
    assert await desk.rows("SELECT title FROM observations") == [("paid for",)]
    assert await desk.rows("SELECT state, attempts, crashes FROM pending_messages") == [("done", 0, 0)]


async def _refused(desk: Desk) -> None:
    """Until a write of ours was refused for the lock."""
    with pytest.raises(StoreUnavailable):
        await desk.tool()


async def test_a_session_with_spooled_events_waits(desk: Desk) -> None:
    await desk.tool()
    await everything_due(desk)
    compressor = QueuedCompressor()
    assert await consumer(desk, compressor, held=lambda: ["s1"]).tick() == 1.0, "no busy polling"
    assert compressor.asked == []
