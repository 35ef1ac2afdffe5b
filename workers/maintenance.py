"""Housekeeping: lapsed leases, silent sessions, old payloads, expired memories, the outbox's tail."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from service import liveness, outbox, pending, retention
from service.clock import now_ms
from service.context import given
from service.core import Core

log = structlog.get_logger()

LONGEST_WAIT_S = 5.0
SWEEPS_PER_LEASE = 4
DAY_MS = 86_400_000


@dataclass(slots=True, kw_only=True)
class Maintenance:
    core: Core
    wake_consumers: Callable[[], None]

    async def recover(self) -> None:
        """At start: return what a dead predecessor held, without waiting for its leases."""
        await self._release(await self.core.database.write(pending.holders))

    async def tick(self) -> float:
        settings, database = self.core.settings, self.core.database
        await self._release(await database.write(pending.holders))
        idle_ms = settings.session_idle_min * 60_000
        closed = await database.write(lambda tx: retention.close_idle_sessions(tx, idle_ms=idle_ms, now=now_ms()))
        if closed:
            log.info("sessions.closed_idle", sessions=closed)
            self.wake_consumers()
        keep_ms = settings.retention_days * DAY_MS
        dropped = await database.write(lambda tx: retention.drop_payloads(tx, retention_ms=keep_ms, now=now_ms()))
        expired = await database.write(lambda tx: retention.drop_expired(tx, now=now_ms()))
        if expired:
            log.info("memories.expired", observations=expired)
        await database.write(lambda tx: outbox.trim(tx, now=now_ms()))
        await database.write(lambda tx: given.trim(tx, before=int(now_ms() - keep_ms)))
        if dropped:
            log.info("payloads.dropped", messages=dropped)
        if dropped or expired:
            return 0.05
        return min(LONGEST_WAIT_S, settings.lease_s / SWEEPS_PER_LEASE, settings.session_idle_min * 60 / 4)

    async def _release(self, holders: list[str]) -> None:
        dead = liveness.dead_workers(self.core.configuration.run, holders)
        released = await self.core.database.write(lambda tx: pending.release_lapsed(tx, now=now_ms(), dead=dead))
        if released:
            log.warning("leases.returned", messages=released, dead_workers=len(dead))
            self.wake_consumers()
