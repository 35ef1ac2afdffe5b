from tests.workers import records
from tests.workers.backfill_bench import Bench
from workers.rush import LONGEST_MS, LOOK_MS, WRITES_PER_S, Rush


class Counted:
    def __init__(self) -> None:
        self.writes, self.now = 0, 1_000_000
        self.rush = Rush(written=lambda: self.writes, now=lambda: self.now)
        assert not self.rush.is_on()

    def after(self, ms: int, *, writes: int) -> bool:
        self.now += ms
        self.writes += writes
        return self.rush.is_on()


def test_many_writes_are_a_rush_until_they_end() -> None:
    counted = Counted()
    assert not counted.after(1_000, writes=WRITES_PER_S // 2)
    assert counted.after(1_000, writes=WRITES_PER_S * 2)
    assert counted.after(LOOK_MS // 2, writes=0)
    assert not counted.after(1_000, writes=3)


def test_a_long_rush_lets_others_in_now_and_then() -> None:
    counted = Counted()
    seconds = [counted.after(1_000, writes=WRITES_PER_S * 2) for _ in range(LONGEST_MS // 1_000 * 3)]
    assert seconds.count(False) == 2
    assert seconds[: LONGEST_MS // 1_000] == [True] * (LONGEST_MS // 1_000)


async def test_embedding_gives_way_while_events_pour_in(bench: Bench) -> None:
    await bench.settle()
    for number in range(WRITES_PER_S):
        await bench.write(lambda tx: records.observation(tx, f"told {number}"))  # noqa: B023 - awaited here
    bench.now += 500
    assert 0 < await bench.backfill.tick() < 1
    assert not bench.ids()
    await bench.minutes_later(1)
    assert bench.ids()
