"""Whether so much is written that what can wait should wait."""

from collections.abc import Callable
from dataclasses import dataclass

WRITES_PER_S = 100
"""Each is an event, a claim or a batch of stored observations; one busy client makes ten."""
LOOK_MS = 250
LONGEST_MS = 30_000
"""What waits goes on after that, rush or not, until the next look."""


@dataclass(slots=True, kw_only=True)
class Rush:
    """`written` counts the writes so far, `now` is the time in ms."""

    written: Callable[[], int]
    now: Callable[[], int]
    _looked_at: int = 0
    _seen: int = 0
    _since: int | None = None

    def is_on(self) -> bool:
        now, written = self.now(), self.written()
        passed = now - self._looked_at
        if passed < LOOK_MS:
            return self._since is not None
        busy = (written - self._seen) * 1000 > WRITES_PER_S * passed
        self._looked_at, self._seen = now, written
        if not busy:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since > LONGEST_MS:
            self._since = None
        return self._since is not None
