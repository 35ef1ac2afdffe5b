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
    """`has_workers` says whether this process has any: `wake` shortens their poll, `reload` lets them begin anew under
    other settings."""

    core: Core
    token: Token
    feed: Feed
    traffic: Traffic
    has_workers: bool
    wake: Callable[[], None] = lambda: None
    reload: Callable[[], None] = lambda: None
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Streams end, workers finish, the server closes."""
        self.stop.set()
        self.feed.close()
