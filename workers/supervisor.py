"""Runs every loop of one process, until told to stop; begins anew when settings change."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

import structlog

from service import liveness, providers
from service.clock import now_ms
from service.completion import Terms
from service.core import Core
from service.errors import SettingsError
from service.intake import CHARACTERS_PER_TOKEN
from service.settings import Settings, stamp_of
from service.vectors.protocol import Vectors
from workers import loop
from workers.backfill import Backfill
from workers.compressors.protocol import Compressor
from workers.consumer import Consumer
from workers.drain import Drain
from workers.maintenance import Maintenance

log = structlog.get_logger()

RULES_BATCH = 200
"""Messages of one rules batch; the longest turns of real sessions have about so many."""
GRACE_S = 10.0
"""How long an orderly stop waits for compressions under way, which are given back then, and for the backfill."""
LOOK_AT_SETTINGS_S = 1.0


@dataclass(slots=True)
class Workers:
    """The workers of this process. `wake` shortens the polls, `stop` ends everything; `completed` counts the
    messages that came to an end here."""

    core: Core
    completed: Callable[[int], None] = lambda _: None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    """This generation's end: everything stops, or other settings hold."""

    async def run(self) -> None:
        maintenance = Maintenance(core=self.core, wake_consumers=self.wake.set)
        drain = Drain(self.core)
        run = self.core.configuration.run
        with liveness.worker_identity(run) as worker, closing(liveness.Turn(run / "backfill.lock")) as turn:
            await maintenance.recover()
            await self.core.database.write(lambda tx: providers.restarted(tx, now=now_ms()))
            while not self.stop.is_set():
                await self._generation(worker, drain, maintenance, turn)

    async def _generation(self, worker: str, drain: Drain, maintenance: Maintenance, turn: liveness.Turn) -> None:
        """Work under the settings of now."""
        self._over.clear()
        settings = self.core.settings
        compressor = await asyncio.to_thread(make_compressor, settings)
        fallback = None
        if settings.provider != "rules" and settings.on_budget == "rules":
            fallback = self._consumer(await asyncio.to_thread(_rules), self._terms(worker, "rules"), drain, None)
        terms = self._terms(worker, settings.provider)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(loop.run("drain", drain.tick, stop=self._over))
            tasks.create_task(loop.run("maintenance", maintenance.tick, stop=self._over))
            tasks.create_task(loop.run("settings", self._look_at_settings, stop=self._over))
            consumers = [self._consumer(compressor, terms, drain, fallback) for _ in range(settings.consumers)]
            working = [tasks.create_task(self._consume(consumer)) for consumer in consumers]
            if self.core.vectors is not None:
                working.append(tasks.create_task(self._backfill(self.core.vectors, turn)))
            tasks.create_task(self._end_generation())
            tasks.create_task(self._end_after_grace(working))
        await compressor.close()

    def reload(self) -> None:
        """Begin anew under the core's settings of now."""
        self._over.set()

    async def _consume(self, consumer: Consumer) -> None:
        await loop.run("consumer", consumer.tick, stop=self._over, wake=self.wake)

    async def _backfill(self, vectors: Vectors, turn: liveness.Turn) -> None:
        backfill = Backfill(
            database=self.core.database, vectors=vectors, is_my_turn=turn.is_mine, stopping=self._over.is_set
        )
        await loop.run("backfill", backfill.tick, stop=self._over, wake=self.wake)

    async def _look_at_settings(self) -> float:
        """The file may be changed by hand, by a command or by the edge of another process."""
        before = self.core.configuration
        stamp = stamp_of(before.home / "settings.toml")
        if stamp != before.file_stamp:
            try:
                await self.core.take_up_settings()
            except SettingsError as error:
                log.warning("settings.unusable", error=str(error))
                self.core.configuration = replace(before, file_stamp=stamp)
                return LOOK_AT_SETTINGS_S
            self.reload()
        return LOOK_AT_SETTINGS_S

    async def _end_generation(self) -> None:
        await loop.first_of(self.stop, self._over)
        self._over.set()

    async def _end_after_grace(self, working: list[asyncio.Task[None]]) -> None:
        await self._over.wait()
        _, late = await asyncio.wait(working, timeout=GRACE_S)
        for task in late:
            task.cancel()

    def _consumer(self, compressor: Compressor, terms: Terms, drain: Drain, fallback: Consumer | None) -> Consumer:
        settings = self.core.settings
        return Consumer(
            database=self.core.database,
            compressor=compressor,
            terms=terms,
            window_ms=settings.dedupe_window_s * 1000,
            max_attempts=settings.max_attempts,
            held=drain.sessions_waiting,
            completed=self._completed,
            fallback=fallback,
        )

    def _completed(self, messages: int) -> None:
        self.wake.set()  # the backfill has work
        self.completed(messages)

    def _terms(self, worker: str, provider: str) -> Terms:
        settings = self.core.settings
        return Terms(
            worker=worker,
            provider=provider,
            policy=self.core.policy,
            limit=RULES_BATCH if provider == "rules" else settings.batch_events,
            lease_ms=round(settings.lease_s * 1000),
            budget=self.core.budget,
        )


def make_compressor(settings: Settings) -> Compressor:
    """The compressor of the chosen provider. Imports take tenths of a second: call it off the event loop."""
    if settings.provider == "rules":
        return _rules()
    from workers.compressors.anthropic import AnthropicCompressor

    return AnthropicCompressor(
        api_key=settings.anthropic_api_key,
        base_url=settings.anthropic_base_url,
        model=settings.model,
        cap_chars=settings.batch_tokens * CHARACTERS_PER_TOKEN,
    )


def _rules() -> Compressor:
    from workers.compressors.rules import RulesCompressor

    return RulesCompressor()
