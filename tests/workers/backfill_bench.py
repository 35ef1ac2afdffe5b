"""A backfill over an index in memory, with a clock that is set by hand."""

from collections.abc import Callable
from typing import Any

from service import watermarks
from service.core import Core
from service.database import Tx
from tests.workers import records
from tests.workers.memory_index import MemoryVectors
from workers.backfill import Backfill

MINUTE_MS = 60_000


class Bench:
    """A backfill with a clock that is set by hand."""

    def __init__(self, core: Core, vectors: MemoryVectors) -> None:
        self.core = core
        self.vectors = vectors
        self.now = records.T0
        self.stopping = False
        self.backfill = self.process()

    def process(self) -> Backfill:
        return Backfill(
            database=self.core.database,
            vectors=self.vectors,
            now=lambda: self.now,
            stopping=lambda: self.stopping,
        )

    async def write(self, work: Callable[[Tx], Any]) -> Any:
        return await self.core.database.write(work)

    async def settle(self) -> None:
        """Tick until there is nothing to do at this moment."""
        for _ in range(200):
            if await self.backfill.tick() > 0:
                return
        raise AssertionError("it never rests")

    async def minutes_later(self, minutes: float) -> None:
        self.now += round(minutes * MINUTE_MS)
        await self.settle()

    async def report(self) -> dict[str, Any]:
        return await self.core.database.read(lambda reader: watermarks.report(reader, now=self.now))

    def ids(self) -> set[str]:
        return set(self.vectors.documents)

    def times_embedded(self, text: str) -> int:
        return self.vectors.embedded[self.vectors.model, text]
