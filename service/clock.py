"""The one place where the time is read; everything else takes `now` as an argument."""

import time
from datetime import UTC, datetime

SECONDS_BELOW = 100_000_000_000
"""The year 5138 in seconds, 1973 in milliseconds."""


def now_ms() -> int:
    """Milliseconds since the Unix epoch, UTC."""
    return time.time_ns() // 1_000_000


def iso(epoch_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds, as `2026-11-30T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{epoch_ms % 1000:03d}Z"


def local_minute(epoch_ms: int) -> str:
    """In this machine's time zone, for people and agents, as `2026-11-30 14:05`."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def utc_day(epoch_ms: int) -> str:
    """The UTC date of a moment, as `2026-11-30`: the key of daily budgets."""
    return iso(epoch_ms)[:10]


def epoch_ms(value: object) -> int | None:
    """Milliseconds from a number (ms, or seconds when it is too small for this century in ms) or an ISO 8601 text
    (without an offset: local time); None when it is neither."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return int(value * 1000) if abs(value) < SECONDS_BELOW else int(value)
    try:
        return int(datetime.fromisoformat(str(value).strip()).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
