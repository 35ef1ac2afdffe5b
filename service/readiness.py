"""Whether work moves: what `/readyz` says, and why."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from migrations import runner
from service import inspection, providers, watermarks
from service.clock import now_ms
from service.core import Core
from service.database import Reader
from service.errors import StoreError

WRITE_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """`reasons` say what is wrong and what to do, none means ready; `notes` are waits that someone wants."""

    reasons: list[str]
    notes: list[str]


async def check(core: Core, *, has_workers: bool) -> Readiness:
    """Ask the database itself, on a connection that no slow search can hold."""
    notes = [] if has_workers else ["no workers run in this process; `gapless work` runs them"]
    reasons = [reason async for reason in _write_trouble(core)]
    try:
        due, provider, index, stalled_ms = await core.database.read(lambda reader: _seen(core, reader), urgent=True)
    except StoreError as error:
        return Readiness(reasons=[*reasons, f"the database cannot be read: {error}"], notes=notes)
    if index["failing"] and index["failing"]["broken"]:
        notes.append(f"the vector index is broken, search goes by words: {index['failing']['last_error']}")
    if due:
        reasons.append(f"migrations {due} are due: restart the service, it applies them")
    if provider["paused"]:
        notes.append(f"compression is paused ({provider['paused']['reason']}): {provider['paused']['message']}")
    elif stalled_ms is not None and has_workers:
        reasons.append(
            f"the oldest due work has waited {stalled_ms // 1000} s and nothing was completed since: "
            "`gapless status` shows the last error, the service's log says more"
        )
    return Readiness(reasons=reasons, notes=notes)


def _seen(core: Core, reader: Reader) -> tuple[list[int], dict[str, Any], dict[str, Any], int | None]:
    """The migrations that are due, the provider, the index, and how long due work has waited."""
    now = now_ms()
    return (
        runner.missing({row["number"] for row in reader.all(runner.APPLIED)}),
        providers.report(reader, core.settings.provider, core.budget, now=now),
        watermarks.report(reader, now=now) if core.vectors else watermarks.NOT_IN_USE,
        inspection.stalled_ms(reader, window_ms=round(core.settings.lease_s * 1000), now=now),
    )


async def _write_trouble(core: Core) -> AsyncIterator[str]:
    try:
        async with asyncio.timeout(WRITE_WITHIN_S):
            await core.database.write(lambda tx: tx.touch())
    except TimeoutError:
        yield f"a write waits longer than {WRITE_WITHIN_S:g} s: another process holds the database, or the disk is slow"
    except StoreError as error:
        yield f"the database cannot be written: {error}"
