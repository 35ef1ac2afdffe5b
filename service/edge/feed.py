"""Tells the streams of this process that there is something new: it looks once for all of them."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import structlog

from service import outbox
from service.core import Core
from service.errors import StoreError

log = structlog.get_logger()

LOOK_S = 0.2
LOOKS_PER_DEPTH = 5
"""The queue's depth is told at most once a second."""


@dataclass(slots=True)
class Feed:
    """`changed` is set and replaced at every news; take it before looking. `queue` is the depth as it was last told,
    `streams` how many are open."""

    core: Core
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    queue: dict[str, Any] = field(default_factory=dict)
    closed: bool = False
    streams: int = 0
    _joined: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Until `close`; idle while there are no streams."""
        looks, last = 0, 0
        while not self.closed:
            await self._joined.wait()
            try:
                last = await self._look(last, depth=looks % LOOKS_PER_DEPTH == 0)
            except StoreError as error:
                log.warning("feed.blocked", error=str(error))
            looks += 1
            await asyncio.sleep(LOOK_S)

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """As long as a stream is open."""
        self.streams += 1
        self._joined.set()
        try:
            yield
        finally:
            self.streams -= 1
            if not self.streams and not self.closed:
                self._joined.clear()

    def close(self) -> None:
        self.closed = True
        self._joined.set()
        self._tell()

    async def _look(self, last: int, *, depth: bool) -> int:
        _, newest = await self.core.database.read(outbox.ends)
        queue = depth_of(await self.core.queue()) if depth else self.queue
        if newest != last or queue != self.queue:
            self.queue = queue
            self._tell()
        return newest

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


def depth_of(queue: dict[str, Any]) -> dict[str, Any]:
    """What of `/api/queue` is worth an event: everything but the age, which changes by itself."""
    return {name: value for name, value in queue.items() if name != "oldest_pending_age_s"}
