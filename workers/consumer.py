"""The consumer: claim a session's batch, compress it, store the result and acknowledge, in that order."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from service import completion, pending, providers
from service.clock import now_ms
from service.completion import Idle, Terms
from service.database import Database, Tx
from service.errors import FenceLost, ProviderError, StoreUnavailable
from service.models import Batch, Compressed, MessageState, Usage
from workers.compressors.protocol import Compressor
from workers.outcome import Dead, Outcome, Paused, Retry, decide

log = structlog.get_logger()
T = TypeVar("T")

POLL_S = 1.0
HEARTBEATS_PER_LEASE = 3


@dataclass(slots=True, kw_only=True)
class Consumer:
    """One consumer task. `held` names the sessions that still have events in the spool; `completed` is told how many
    messages came to an end (for /readyz and /metrics)."""

    database: Database
    compressor: Compressor
    terms: Terms
    window_ms: float
    max_attempts: int
    held: Callable[[], Iterable[str]]
    completed: Callable[[int], None]
    fallback: "Consumer | None" = None
    """Who goes on when the budget is spent, if anyone."""

    async def tick(self) -> float:
        # who is held is asked inside the transaction: a Stop it sees came after what its turn had to spool
        work = await self.database.write(
            lambda tx: completion.claim_batch(tx, self.terms, held=self.held(), now=now_ms())
        )
        if isinstance(work, Idle):
            if self.fallback is not None and work.pause is not None and work.pause.reason == "budget":
                return await self.fallback.tick()
            return self._idle_s(work)
        await self._work(work)
        return 0.0

    def _idle_s(self, idle: Idle) -> float:
        if idle.next_due_epoch is None:
            return POLL_S
        return min(max((idle.next_due_epoch - now_ms()) / 1000, 0.01), POLL_S)

    async def _work(self, batch: Batch) -> None:
        try:
            await self._process(batch)
        except FenceLost as error:
            log.warning("batch.taken_over", session=batch.session.session_id, error=str(error))

    async def _process(self, batch: Batch) -> None:
        started = now_ms()
        try:
            compressed = await self._compress(batch)
            stored = await self._store(batch, compressed)
        except FenceLost:
            raise
        except asyncio.CancelledError:
            with contextlib.suppress(StoreUnavailable):  # an orderly stop: else the next start returns them
                await self.database.write(lambda tx: completion.release(tx, batch.messages, now=now_ms()))
            raise
        except Exception as error:  # noqa: BLE001 - ours or the provider's: the messages must not be lost over it
            await self._failed(batch, error)
        else:
            self.completed(len(batch.messages))
            _log_completed(batch, compressed, stored, started)

    async def _compress(self, batch: Batch) -> Compressed:
        """Compress with a heartbeat beside it that keeps the lease."""
        strict = any(m.attempts for m in batch.messages)
        try:
            async with asyncio.TaskGroup() as tasks:
                heartbeat = tasks.create_task(self._heartbeat(batch))
                try:
                    return await self.compressor.compress(batch, strict=strict)
                finally:
                    heartbeat.cancel()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _heartbeat(self, batch: Batch) -> None:
        while True:
            await asyncio.sleep(self.terms.lease_ms / 1000 / HEARTBEATS_PER_LEASE)
            with contextlib.suppress(StoreUnavailable):  # the next beat may succeed, well before the lease ends
                await self.database.write(
                    lambda tx: pending.extend(tx, batch.messages, until=now_ms() + self.terms.lease_ms)
                )

    async def _store(self, batch: Batch, compressed: Compressed) -> completion.Stored:
        return await self._insist(
            lambda tx: completion.complete(
                tx, batch, compressed, provider=self.terms.provider, window_ms=self.window_ms, now=now_ms()
            )
        )

    async def _insist(self, work: Callable[[Tx], T]) -> T:
        """Write, however long the database is away: answers are paid for, and a lapsed lease counts as a crash."""
        while True:
            try:
                return await self.database.write(work)
            except StoreUnavailable as error:
                log.warning("store.unavailable", error=str(error))
                await asyncio.sleep(POLL_S)

    async def _failed(self, batch: Batch, cause: Exception) -> None:
        chance = random.random()  # noqa: S311 - jitter
        outcomes = [decide(cause, m, max_attempts=self.max_attempts, chance=chance) for m in batch.messages]
        await self._insist(lambda tx: self._write_outcomes(tx, batch, outcomes, cause))
        self.completed(sum(isinstance(outcome, Dead) for outcome in outcomes))
        expected = isinstance(cause, ProviderError)
        log.warning(
            "batch.failed",
            session=batch.session.session_id,
            messages=len(batch.messages),
            outcome=type(outcomes[0]).__name__.lower(),
            error=str(cause) if expected else type(cause).__name__,
            exc_info=None if expected else cause,
        )

    def _write_outcomes(self, tx: Tx, batch: Batch, outcomes: list[Outcome], error: Exception) -> None:
        now, text = now_ms(), str(error)[:1000] or type(error).__name__
        provider = self.terms.provider
        match outcomes[0]:
            case Paused() as paused:
                until = providers.pause(
                    tx,
                    provider,
                    reason=paused.reason,
                    message=text,
                    retry_after_ms=paused.retry_after_ms,
                    forever=paused.until_settings_change,
                    now=now,
                )
                at = until or now
            case _:
                providers.failed(tx, provider, text, now=now)
                at = now
        for message, outcome in zip(batch.messages, outcomes, strict=True):
            match outcome:
                case Paused():
                    pending.retry(tx, message, at=at, error=text, bad_answer=False)
                case Retry(after_ms=after_ms):
                    pending.retry(tx, message, at=now + after_ms, error=text)
                case Dead(reason=reason):
                    pending.finish(
                        tx, message, MessageState.FAILED, reason=reason, error=text, bad_answer=True, now=now
                    )
        completion.settle_spend(tx, provider, _usage(error), now=now)


def _log_completed(batch: Batch, compressed: Compressed, stored: completion.Stored, started: int) -> None:
    log.info(
        "batch.completed",
        session=batch.session.session_id,
        messages=len(batch.messages),
        attempt=batch.messages[0].attempts + 1,
        observations=stored.observations,
        repeats=stored.repeats,
        summary=stored.summary,
        compress_ms=now_ms() - started,
        queue_ms=started - min(m.captured_at_epoch for m in batch.messages),
        tokens=compressed.usage.input_tokens + compressed.usage.output_tokens,
    )


def _usage(error: Exception) -> Usage:
    if isinstance(error, ProviderError):
        return Usage(calls=error.calls, input_tokens=error.input_tokens, output_tokens=error.output_tokens)
    return Usage()
