"""Memories that tests state, look for and forget, through the functions behind every surface."""

from dataclasses import dataclass
from typing import Any

from service import forgetting, memories, records
from service.clock import now_ms
from service.core import Core
from service.forgetting import ForgetRequest, Forgotten
from service.memories import NewMemory, Remembered
from service.projects import ProjectRef
from service.search import search
from service.searching.request import SearchAnswer, search_query

T0 = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Stated:
    core: Core

    async def remember(self, text: str, *, project: str | None = "shop", **fields: Any) -> Remembered:
        ref = None if project is None else ProjectRef(override=project)
        (prepared,) = memories.prepare([NewMemory(text=text, project=ref, **fields)], now=now_ms())
        return await self.core.database.write(lambda tx: memories.remember(tx, prepared, now=now_ms()))

    async def id_of(self, text: str, **fields: Any) -> int:
        return (await self.remember(text, **fields)).observation_id

    async def edit(self, observation_id: int, **changes: Any) -> dict[str, Any]:
        return await self.core.database.write(lambda tx: memories.edit(tx, observation_id, changes, now=now_ms()))

    async def forget(self, *ids: int | str, dry_run: bool = False, vacuum: bool = False, **filters: Any) -> Forgotten:
        chosen = tuple(records.parsed(str(each)) for each in ids) or None
        request = ForgetRequest(ids=chosen, **filters)
        return await forgetting.forget(self.core.database, request, now=now_ms, dry_run=dry_run, vacuum=vacuum)

    async def search(self, query: str, **given: Any) -> SearchAnswer:
        return await search(self.core.database, search_query({"query": query, "type": "all", **given}))

    async def found(self, query: str, **given: Any) -> list[str]:
        return [str(records.spelled((hit.kind, hit.id))) for hit in (await self.search(query, **given)).results]

    async def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.core.database.read(lambda reader: reader.all(sql, params))]
