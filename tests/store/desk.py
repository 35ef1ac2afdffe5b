"""A desk in front of the core: post an event, work the queue off, read rows back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from service import completion, due
from service.clock import now_ms
from service.completion import Idle, Terms
from service.core import Core, Incoming
from service.intake import Envelope, Receipt
from service.models import Batch, Compressed
from service.providers import Budget

T0 = 1_700_000_000_000
"""A moment in the past, ms; events of these tests are captured around it."""

Answer = Callable[[Batch], Compressed]


@dataclass(slots=True)
class Desk:
    core: Core
    payload: Callable[..., dict[str, Any]]
    asked: list[Batch] = field(default_factory=list)

    async def post(self, payload: dict[str, Any], *, at_ms: int = 0, **envelope: Any) -> Receipt:
        """`at_ms` counts from T0."""
        incoming = Incoming(
            payload=payload,
            size=len(orjson.dumps(payload)),
            envelope=Envelope(**{"captured_at": T0 + at_ms, **envelope}),
        )
        return await self.core.ingest(incoming)

    async def tool(self, *, at_ms: int = 0, **fields: Any) -> Receipt:
        return await self.post(self.payload(**fields), at_ms=at_ms)

    async def prompt(self, text: str, *, at_ms: int = 0, **fields: Any) -> Receipt:
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": "/nowhere/shop", "prompt": text}
        return await self.post({**payload, **fields}, at_ms=at_ms)

    async def stop(self, *, at_ms: int = 0, event: str = "Stop", **fields: Any) -> Receipt:
        payload = {"hook_event_name": event, "session_id": "s1", "cwd": "/nowhere/shop"}
        return await self.post({**payload, **fields}, at_ms=at_ms)

    def terms(self, **changes: Any) -> Terms:
        given = {
            "worker": "w1",
            "provider": "rules",
            "policy": self.core.policy,
            "limit": 200,
            "lease_ms": 120_000,
            "budget": Budget(calls=0, tokens=0),
        }
        return Terms(**{**given, **changes})

    async def claim(self, *, held: Iterable[str] = (), now: int | None = None, **terms: Any) -> Batch | Idle:
        chosen = self.terms(**terms)
        return await self.core.database.write(
            lambda tx: completion.claim_batch(tx, chosen, held=held, now=now or now_ms())
        )

    async def claimed(self, **terms: Any) -> Batch:
        """The batch there must be, with everything open flushed before."""
        await self.core.database.write(lambda tx: due.flush(tx, now=now_ms()))
        batch = await self.claim(**terms)
        assert isinstance(batch, Batch)
        return batch

    async def complete(self, batch: Batch, compressed: Compressed, *, window_ms: float = 30_000) -> completion.Stored:
        return await self.core.database.write(
            lambda tx: completion.complete(tx, batch, compressed, provider="rules", window_ms=window_ms, now=now_ms())
        )

    async def work_off(self, answer: Answer) -> int:
        """Claim and answer until nothing is left; the number of batches."""
        batches = 0
        await self.core.database.write(lambda tx: due.flush(tx, now=now_ms()))
        while isinstance(batch := await self.claim(), Batch):
            self.asked.append(batch)
            await self.complete(batch, answer(batch))
            batches += 1
        return batches

    async def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.core.database.read(lambda reader: reader.all(sql, params))]

    async def value(self, sql: str, **params: Any) -> Any:
        return (await self.rows(sql, **params))[0][0]

    async def states(self) -> dict[str, int]:
        return dict(await self.rows("SELECT state, count(*) FROM pending_messages GROUP BY state"))
