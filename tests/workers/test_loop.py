"""The loop under every worker: how it rests, and what wakes it."""

import asyncio
import time
from dataclasses import dataclass, field

from workers import loop

NEVER_S = 600.0
BURST_S = 0.3
WITHIN_S = 5.0


@dataclass
class Idle:
    """A worker that finds nothing to do and stops at its `last` tick."""

    last: int
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    ticked: asyncio.Event = field(default_factory=asyncio.Event)
    ticks: int = 0

    async def tick(self) -> float:
        self.ticks += 1
        self.ticked.set()
        if self.ticks == self.last:
            self.stop.set()
        return NEVER_S

    async def run(self) -> None:
        await asyncio.wait_for(loop.run("idle", self.tick, stop=self.stop, wake=self.wake), WITHIN_S)


async def wake_all_the_time(idle: Idle) -> None:
    end = time.monotonic() + BURST_S
    while time.monotonic() < end:
        idle.wake.set()
        await asyncio.sleep(0)
    idle.stop.set()


async def test_a_burst_of_wakes_costs_an_idle_worker_few_ticks() -> None:
    idle = Idle(last=1_000_000)
    await asyncio.gather(idle.run(), wake_all_the_time(idle))
    assert 2 <= idle.ticks <= BURST_S / loop.REST_S + 1


async def test_a_wake_that_comes_while_a_worker_rests_is_not_lost() -> None:
    idle = Idle(last=2)
    running = asyncio.ensure_future(idle.run())
    await idle.ticked.wait()
    idle.wake.set()
    await running
    assert idle.ticks == 2


async def test_a_stop_is_heard_while_a_worker_rests() -> None:
    idle = Idle(last=1)
    await idle.run()
    assert idle.ticks == 1
