"""A memory that tests fill row by row, and search through the one function."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.core import Core
from service.database import Tx
from service.fulltext import shadow
from service.search import search
from service.searching.request import SearchAnswer, SearchHit, search_query
from service.settings import load

START_EPOCH = 1_760_000_000_000

INSERT_PROJECT = "INSERT OR IGNORE INTO projects (name, key, created_at_epoch) VALUES (:project, :key, 1)"
INSERT_SESSION = """
INSERT OR IGNORE INTO sessions (session_id, project, platform, started_at_epoch, last_event_at_epoch, last_seen_epoch)
VALUES (:session_id, :project, :platform, :at, :at, :at)
"""
INSERT_OBSERVATION = """
INSERT INTO observations (session_id, project, type, title, subtitle, narrative, facts, concepts, files_read,
    files_modified, search_extra, content_hash, created_at_epoch, stored_at_epoch)
VALUES (:session_id, :project, :type, :title, :subtitle, :narrative, :facts, :concepts, :files_read, :files_modified,
    :search_extra, 'hash', :at, :at)
"""
INSERT_SUMMARY = """
INSERT INTO session_summaries (session_id, project, request, completed, learned, files_edited, search_extra,
    created_at_epoch, stored_at_epoch)
VALUES (:session_id, :project, :request, :completed, :learned, :files_edited, :search_extra, :at, :at)
"""
INSERT_PROMPT = """
INSERT INTO user_prompts (event_key, session_id, project, prompt_number, text, search_extra, created_at_epoch)
VALUES (:event_key, :session_id, :project, 1, :text, :search_extra, :at)
"""


@dataclass
class Memory:
    """Each record is a second younger than the one before, unless `at` says when (ms)."""

    core: Core
    count: int = field(default=0)

    async def observation(self, title: str, narrative: str = "", **fields: Any) -> int:
        lists = {name: fields.pop(name, []) for name in ("facts", "concepts", "files_read", "files_modified")}
        row = {"title": title, "narrative": narrative, "subtitle": "", "type": "change"} | fields
        row |= {name: orjson.dumps(items).decode() for name, items in lists.items()}
        row["search_extra"] = shadow(row["title"], row["subtitle"], row["narrative"], *lists["facts"])
        return await self._insert(INSERT_OBSERVATION, row)

    async def summary(self, request: str = "", completed: str = "", **fields: Any) -> int:
        files = orjson.dumps(fields.pop("files_edited", [])).decode()
        row = {"request": request, "completed": completed, "learned": "", "files_edited": files} | fields
        return await self._insert(INSERT_SUMMARY, row | {"search_extra": shadow(request, completed)})

    async def prompt(self, text: str, **fields: Any) -> int:
        return await self._insert(INSERT_PROMPT, {"text": text, "search_extra": shadow(text)} | fields)

    async def find(self, query: str = "", **given: Any) -> SearchAnswer:
        return await search(self.core.database, search_query({"query": query, **given}))

    async def ids(self, query: str = "", **given: Any) -> list[int]:
        return [hit.id for hit in (await self.find(query, **given)).results]

    async def _insert(self, sql: str, row: dict[str, Any]) -> int:
        self.count += 1
        parents = {"session_id": "s1", "project": "shop", "key": None, "platform": "claude-code"}
        row = parents | {"at": START_EPOCH + self.count * 1000, "event_key": f"event-{self.count}"} | row

        def insert(tx: Tx) -> int:
            tx.run(INSERT_PROJECT, row)
            tx.run(INSERT_SESSION, row)
            return tx.insert(sql, row)

        return await self.core.database.write(insert)


@pytest.fixture
def memory(core: Core) -> Memory:
    return Memory(core)


@pytest.fixture
async def plain_memory(home: Path) -> AsyncIterator[Memory]:
    """A memory on a SQLite without FTS5, as FTS=off has it."""
    core = Core.open(load(home=home, environment={}, flags={"chroma": "off", "fts": "off"}))
    yield Memory(core)
    await core.close()


@pytest.fixture
def titles() -> Callable[[SearchAnswer], list[str]]:
    def of(answer: SearchAnswer) -> list[str]:
        hits: tuple[SearchHit, ...] = answer.results
        return [hit.title for hit in hits]

    return of
