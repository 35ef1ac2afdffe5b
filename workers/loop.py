"""The one loop: a tick does some work and says how long to wait before the next."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger()

AFTER_ERROR_S = 1.0
REST_S = 0.05
"""A wake is heard so long after a tick that found nothing: a burst of them costs twenty ticks a second."""

Tick = Callable[[], Awaitable[float]]
"""One round of work; returns the seconds to wait before the next, 0 for at once."""


async def run(name: str, tick: Tick, *, stop: asyncio.Event, wake: asyncio.Event | None = None) -> None:
    """Tick until `stop`. `wake` only shortens a wait; polling is the guarantee. A tick is never cancelled half-way."""
    while not stop.is_set():
        if wake is not None:
            wake.clear()
        try:
            delay = await tick()
        except Exception as error:
            log.exception("loop.failed", loop=name, error=type(error).__name__)
            delay = AFTER_ERROR_S
        if delay > 0:
            await first_of(stop, within_s=min(delay, REST_S))
        if delay > REST_S:
            await first_of(*filter(None, (stop, wake)), within_s=delay - REST_S)


async def first_of(*events: asyncio.Event, within_s: float | None = None) -> None:
    """Wait for any of the events, or for so long."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in waits:
            waiting.cancel()
