"""Runs every loop of one process, until told to stop."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from service import liveness
from service.completion import Terms
from service.core import Core
from service.intake import CHARACTERS_PER_TOKEN
from service.settings import Settings
from workers import loop
from workers.compressors.protocol import Compressor
from workers.compressors.rules import RulesCompressor
from workers.consumer import Consumer
from workers.drain import Drain
from workers.maintenance import Maintenance

RULES_BATCH = 200
"""Messages of one rules batch; the longest turns of real sessions have about so many."""
GRACE_S = 10.0
"""How long an orderly stop waits for compressions under way; then they are given back."""


@dataclass(slots=True)
class Workers:
    """The workers of this process. `wake` shortens the consumers' poll, `stop` ends everything; `completed` counts the
    messages that came to an end here."""

    core: Core
    completed: Callable[[int], None] = lambda _: None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        settings = self.core.settings
        compressor = make_compressor(settings)
        drain = Drain(self.core)
        maintenance = Maintenance(core=self.core, wake_consumers=self.wake.set)
        with liveness.worker_identity(self.core.configuration.run) as worker:
            await maintenance.recover()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(loop.run("drain", drain.tick, stop=self.stop))
                tasks.create_task(loop.run("maintenance", maintenance.tick, stop=self.stop))
                consumers = [
                    tasks.create_task(self._consume(self._consumer(worker, compressor, drain)))
                    for _ in range(settings.consumers)
                ]
                tasks.create_task(self._end_after_grace(consumers))
            await compressor.close()

    async def _consume(self, consumer: Consumer) -> None:
        await loop.run("consumer", consumer.tick, stop=self.stop, wake=self.wake)

    async def _end_after_grace(self, consumers: list[asyncio.Task[None]]) -> None:
        await self.stop.wait()
        _, late = await asyncio.wait(consumers, timeout=GRACE_S)
        for task in late:
            task.cancel()

    def _consumer(self, worker: str, compressor: Compressor, drain: Drain) -> Consumer:
        settings = self.core.settings
        fallback = None
        if settings.provider != "rules" and settings.on_budget == "rules":
            fallback = self._with(RulesCompressor(), self._terms(worker, "rules"), drain, None)
        return self._with(compressor, self._terms(worker, settings.provider), drain, fallback)

    def _with(self, compressor: Compressor, terms: Terms, drain: Drain, fallback: Consumer | None) -> Consumer:
        settings = self.core.settings
        return Consumer(
            database=self.core.database,
            compressor=compressor,
            terms=terms,
            window_ms=settings.dedupe_window_s * 1000,
            max_attempts=settings.max_attempts,
            held=drain.sessions_waiting,
            completed=self.completed,
            fallback=fallback,
        )

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
    """The compressor of the chosen provider; heavy libraries load when it is first used."""
    if settings.provider == "rules":
        return RulesCompressor()
    from workers.compressors.anthropic import AnthropicCompressor

    return AnthropicCompressor(
        api_key=settings.anthropic_api_key,
        base_url=settings.anthropic_base_url,
        model=settings.model,
        cap_chars=settings.batch_tokens * CHARACTERS_PER_TOKEN,
    )
