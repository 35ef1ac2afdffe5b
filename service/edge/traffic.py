"""What this process has counted since it started, for /metrics."""

import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the latency histogram."""


@dataclass(slots=True)
class Latencies:
    """`counts` has one place a bound of `SECONDS` and a last one for what took longer."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total_s += seconds


@dataclass(slots=True)
class Traffic:
    """`requests` by (method, status), `events` by receipt status, `completed` messages that came to an end here."""

    requests: dict[tuple[str, int], Latencies] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    completed: int = 0

    def count_request(self, method: str, status: int, seconds: float) -> None:
        latencies = self.requests.get((method, status))
        if latencies is None:
            latencies = self.requests[method, status] = Latencies()
        latencies.add(seconds)

    def count_completed(self, messages: int) -> None:
        self.completed += messages


class Measured:
    """Times every request until its answer begins; a stream's length is no latency."""

    def __init__(self, app: ASGIApp, *, traffic: Traffic) -> None:
        self.app = app
        self.traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.traffic.count_request(scope["method"], message["status"], time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, timed)
