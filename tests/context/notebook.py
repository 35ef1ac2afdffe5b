"""A project's memory that tests write line by line, and what a session in it would be told."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from service.context.asking import Asked, at_file, at_prompt, at_start
from service.context.start import Context
from service.core import Core
from service.database import Tx
from service.fulltext import shadow
from service.projects import ProjectRef
from service.vectors.protocol import Nearest

NOW = 1_780_000_000_000
START = NOW - 30 * 86_400_000
FOLDER = "/nowhere/shop"

PROJECT = "INSERT OR IGNORE INTO projects (name, key, created_at_epoch) VALUES (:project, :key, 1)"
SESSION = """
INSERT OR IGNORE INTO sessions (session_id, project, platform, started_at_epoch, last_event_at_epoch, last_seen_epoch)
VALUES (:session_id, :project, 'claude-code', :at, :at, :at)
"""
NOTE = """
INSERT INTO observations (session_id, project, type, title, subtitle, narrative, facts, files_read, files_modified,
    search_extra, discovery_tokens, content_hash, layer, confidence, expires_at_epoch, created_at_epoch,
    stored_at_epoch)
VALUES (:session_id, :project, :type, :title, :subtitle, :narrative, :facts, :files_read, :files_modified,
    :search_extra, :discovery_tokens, :hash, :layer, :confidence, :expires, :at, :at)
"""
SUMMARY = """
INSERT INTO session_summaries (session_id, project, request, learned, completed, next_steps, created_at_epoch,
    stored_at_epoch)
VALUES (:session_id, :project, :request, :learned, :completed, :next_steps, :at, :at)
"""
LISTS = ("facts", "files_read", "files_modified")


@dataclass
class Notebook:
    """Each row is a minute younger than the one before, unless `at` says when (ms)."""

    core: Core
    written: int = field(default=0)
    vectors: Nearest | None = None

    async def note(self, title: str, narrative: str = "", **fields: Any) -> int:
        row = {
            "type": "change",
            "subtitle": "",
            "discovery_tokens": 0,
            "layer": "L3",
            "confidence": 1.0,
            "expires": None,
        }
        row |= {"title": title, "narrative": narrative, "search_extra": shadow(title, narrative)}
        row |= {name: orjson.dumps(fields.pop(name, [])).decode() for name in LISTS}
        return await self._write(NOTE, row | fields)

    async def summary(self, **fields: Any) -> int:
        return await self._write(SUMMARY, dict.fromkeys(("request", "learned", "completed", "next_steps"), "") | fields)

    async def start(self, *, folder: str = FOLDER, source: str = "startup", session: str = "new") -> Context:
        asked = Asked(ref=ProjectRef(folder=folder), session_id=session)
        return await self.core.database.read(
            lambda reader: at_start(reader, asked, self.core.configuration, source=source, now=NOW)
        )

    async def prompt(self, text: str, *, session: str = "new", limit: int = 5) -> Context:
        asked = Asked(ref=ProjectRef(folder=FOLDER), session_id=session)
        return await at_prompt(
            self.core.database, asked, self.core.configuration, text, vectors=self.vectors, limit=limit, now=NOW
        )

    async def file(self, path: str, *, session: str = "new") -> Context:
        asked = Asked(ref=ProjectRef(folder=FOLDER), session_id=session)
        return await self.core.database.read(
            lambda reader: at_file(reader, asked, self.core.configuration, path, now=NOW)
        )

    async def _write(self, sql: str, fields: dict[str, Any]) -> int:
        self.written += 1
        row = {"session_id": "s1", "project": "shop", "key": None, "hash": f"{self.written:016x}"}
        row |= {"at": START + self.written * 60_000} | fields

        def insert(tx: Tx) -> int:
            tx.run(PROJECT, row)
            tx.run(SESSION, row)
            return tx.insert(sql, row)

        return await self.core.database.write(insert)
