"""The one line that a session begins with when capture is broken: what, since when, how many, and what to do."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hooks import spool
from service import inspection, providers, watermarks
from service.clock import local_minute
from service.context.texts import line
from service.database import Reader
from service.providers import Budget

FAILURES = 3
"""In a row; fewer may be chance."""
SPOOLED_MS = 120_000
"""Events that wait longer in the spool than this are not being taken in."""
REJECTED_MS = 86_400_000
"""Events that were unusable a day ago are no news."""
LOOKED_AT = 500
ERROR_UNITS = 160
DELIBERATE = ("manual", "budget")
"""Reasons of a pause that someone wanted."""

LAST_FINISHED = """
SELECT state, reason, error, finished_at_epoch FROM pending_messages
WHERE finished_at_epoch IS NOT NULL AND has_payload ORDER BY finished_at_epoch DESC LIMIT :limit
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What is to be looked at: the data folder and, of the settings, those that say what is late or not in use."""

    home: Path
    provider: str
    budget: Budget
    lease_ms: int
    has_vectors: bool


def trouble(reader: Reader, installation: Installation, *, now: int) -> str:
    """One line, or '' while all goes well. A failure that a later success has followed is none."""
    captures = [*_spool(installation.home, now=now), *_queue(reader, installation, now=now)]
    told = [f"Capture is broken: {'; '.join(captures)}."] if captures else []
    if installation.has_vectors and (index := watermarks.broken(reader)):
        since, error = local_minute(index["failing_epoch"]), line(index["error"] or "", ERROR_UNITS)
        told.append(f"The vector index fails since {since} ({error}); search goes on by words.")
    return " ".join([*told, "`gapless status` says more."]) if told else ""


def _queue(reader: Reader, installation: Installation, *, now: int) -> Iterator[str]:
    provider = providers.report(reader, installation.provider, installation.budget, now=now)
    paused, failing = provider["paused"], provider["failing"]
    if paused and paused["reason"] not in DELIBERATE:
        yield f"compression is paused ({paused['reason']}): {line(paused['message'], ERROR_UNITS)}"
    elif failing and failing["failures"] >= FAILURES:
        since, error = local_minute(failing["since_epoch"]), line(failing["last_error"] or "", ERROR_UNITS)
        yield f"{failing['failures']} failures in a row since {since}, the last: {error}"
    stalled_ms = None if paused else inspection.stalled_ms(reader, window_ms=installation.lease_ms, now=now)
    if stalled_ms is not None:
        yield f"nothing was compressed since {local_minute(now - stalled_ms)}, though work is due"
    dead = []
    for row in reader.all(LAST_FINISHED, {"limit": LOOKED_AT}):
        if row["state"] == "done" or row["reason"] == "nothing_to_record":
            break
        if row["state"] == "failed":
            dead.append(row)
    if dead:
        since, error = local_minute(dead[-1]["finished_at_epoch"]), line(dead[0]["error"] or "", ERROR_UNITS)
        yield f"{len(dead)} events are dead letters since {since}{f', the last: {error}' if error else ''}"


def _spool(home: Path, *, now: int) -> Iterator[str]:
    waiting = _captured(spool.pending(os.fspath(home)))
    if waiting and now - waiting[0] > SPOOLED_MS:
        yield f"{len(waiting)} events wait in the spool since {local_minute(waiting[0])}"
    unusable = [at for at in _captured(spool.rejected(os.fspath(home))) if now - at <= REJECTED_MS]
    if unusable:
        yield f"{len(unusable)} events were unusable since {local_minute(unusable[0])} (`gapless doctor`)"


def _captured(paths: list[str]) -> list[int]:
    """Times of capture (ms), which the names of spooled files begin with."""
    stamps = [Path(path).name.partition("-")[0] for path in paths]
    return [int(stamp) for stamp in stamps if stamp.isdigit()]
