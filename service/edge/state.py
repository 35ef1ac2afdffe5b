"""What all requests of one process share."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from service.core import Core
from service.edge.feed import Feed
from service.edge.security import Token
from service.edge.traffic import Traffic


@dataclass(slots=True, kw_only=True)
class Edge:
    """`wake` shortens the consumers' poll; `has_workers` says whether this process has any. `restart` is set when the
    workers have to begin anew with other settings, or, with `stop`, not at all."""

    core: Core
    token: Token
    feed: Feed
    traffic: Traffic
    has_workers: bool
    wake: Callable[[], None] = lambda: None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    restart: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Streams end, workers finish, the server closes."""
        self.stop.set()
        self.restart.set()
        self.feed.close()
