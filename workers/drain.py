"""Brings the events that hooks had to spool into the queue, in order of capture."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from hooks import spool
from service.core import Core, Incoming
from service.envelopes import from_headers
from service.errors import InvalidInput, StoreError, StoreUnavailable
from service.jsonin import parse

log = structlog.get_logger()

FILES_PER_COMMIT = 100
POLL_S = 1.0


@dataclass(slots=True)
class Drain:
    """`sessions_waiting` tells consumers which sessions must not be compressed before their spool is in."""

    core: Core
    _sessions: dict[str, str | None] = field(default_factory=dict)

    async def tick(self) -> float:
        files = spool.pending(str(self.core.configuration.home))
        for start in range(0, len(files), FILES_PER_COMMIT):
            await self._drain(files[start : start + FILES_PER_COMMIT])
        if files:
            (self.core.configuration.run / "avoid").unlink(missing_ok=True)
        return POLL_S

    def sessions_waiting(self) -> Iterable[str]:
        """Reads each new file once; a file that can't be read holds nobody up."""
        files = spool.pending(str(self.core.configuration.home))
        self._sessions = {path: self._sessions[path] if path in self._sessions else _session_of(path) for path in files}
        return {session for session in self._sessions.values() if session is not None}

    async def _drain(self, files: list[str]) -> None:
        read = await asyncio.to_thread(self._read, files)
        try:
            results = await self.core.ingest_many(list(read.values()))
        except StoreUnavailable:
            raise
        except StoreError:
            if len(read) == 1:  # the database can't take this very event: a person has to look
                self._set_aside(next(iter(read)), "the database refused it")
                return
            for path in read:
                await self._drain([path])
            return
        for path, result in zip(read, results, strict=True):
            if isinstance(result, InvalidInput):
                self._set_aside(path, str(result))
            else:
                spool.remove(path)
        log.info("spool.drained", events=len(read))

    def _read(self, files: list[str]) -> dict[str, Incoming]:
        return {path: incoming for path in files if (incoming := self._parsed(path)) is not None}

    def _parsed(self, path: str) -> Incoming | None:
        try:
            event = spool.read(path)
            return Incoming(payload=parse(event.body), size=len(event.body), envelope=from_headers(event.headers))
        except FileNotFoundError:
            return None
        except (ValueError, InvalidInput) as error:
            self._set_aside(path, str(error))
            return None

    def _set_aside(self, path: str, reason: str) -> None:
        log.warning("spool.event_set_aside", file=Path(path).name, reason=reason)
        spool.set_aside(str(self.core.configuration.home), path, reason=reason)


def _session_of(path: str) -> str | None:
    try:
        payload = parse(spool.read(path).body)
    except (OSError, ValueError, InvalidInput):
        return None
    session = payload.get("session_id") if isinstance(payload, dict) else None
    return session if isinstance(session, str) else None
