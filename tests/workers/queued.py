"""A compressor whose answers are queued beforehand, and consumers that use it."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from service.models import Batch, Compressed, ObservationDraft
from tests.store.desk import Desk
from workers.consumer import Consumer


def made(title: str) -> Compressed:
    """One observation; its source is filled in from the batch."""
    return Compressed(observations=(ObservationDraft(type="change", title=title, message_ids=()),))


@dataclass(slots=True)
class QueuedCompressor:
    """Gives (or raises) its answers in turn; with none left it records nothing. `gate`, if set, is awaited first."""

    answers: deque[Compressed | Exception] = field(default_factory=deque)
    asked: list[Batch] = field(default_factory=list)
    strict: list[bool] = field(default_factory=list)
    gate: asyncio.Event | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    name: str = "queued"

    async def compress(self, batch: Batch, *, strict: bool) -> Compressed:
        self.asked.append(batch)
        self.strict.append(strict)
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.popleft() if self.answers else Compressed()
        if isinstance(answer, Exception):
            raise answer
        ids = tuple(m.message_id for m in batch.messages)
        drafts = tuple(
            ObservationDraft(type=draft.type, title=draft.title, message_ids=draft.message_ids or ids)
            for draft in answer.observations
        )
        return Compressed(observations=drafts, summary=answer.summary, usage=answer.usage)

    async def close(self) -> None:
        """Nothing is held."""


def consumer(desk: Desk, compressor: QueuedCompressor, **changes: Any) -> Consumer:
    given = {
        "database": desk.core.database,
        "compressor": compressor,
        "terms": desk.terms(),
        "window_ms": 30_000,
        "max_attempts": 3,
        "held": list,
        "completed": lambda _: None,
    }
    return Consumer(**{**given, **changes})
