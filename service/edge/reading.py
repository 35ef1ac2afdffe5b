"""Reading what is remembered, newest first."""

from typing import Any

from service import observations, projects, records, sessions, stats
from service.clock import now_ms
from service.database import Reader
from service.edge.operations import Call, Nothing
from service.edge.parameters import ObservationIds, Page
from service.errors import NotFound

Rows = list[dict[str, Any]]


async def list_observations(call: Call[Page, Nothing]) -> object:
    page = call.query
    async with call.edge.core.database.reader() as reader:
        project = await named(reader, page.project)
        total, rows = await observations.newest(
            reader, project=project, limit=page.limit, offset=page.offset, now=now_ms()
        )
    return paged(page, total, rows)


async def list_summaries(call: Call[Page, Nothing]) -> object:
    page = call.query
    async with call.edge.core.database.reader() as reader:
        project = await named(reader, page.project)
        total, rows = await observations.newest_summaries(reader, project=project, limit=page.limit, offset=page.offset)
    return paged(page, total, rows)


async def list_prompts(call: Call[Page, Nothing]) -> object:
    page = call.query
    async with call.edge.core.database.reader() as reader:
        project = await named(reader, page.project)
        total, rows = await sessions.newest_prompts(reader, project=project, limit=page.limit, offset=page.offset)
    return paged(page, total, rows)


async def list_sessions(call: Call[Page, Nothing]) -> object:
    page = call.query
    async with call.edge.core.database.reader() as reader:
        project = await named(reader, page.project)
        total, rows = await sessions.newest(reader, project=project, limit=page.limit, offset=page.offset)
    return paged(page, total, rows)


async def list_projects(call: Call[Page, Nothing]) -> object:
    page = call.query
    async with call.edge.core.database.reader() as reader:
        project = await named(reader, page.project)
        total, rows = await projects.listed(reader, project=project, limit=page.limit, offset=page.offset)
    return paged(page, total, [dict(row) for row in rows])


async def show_stats(call: Call[Page, Nothing]) -> object:
    page = call.query
    async with call.edge.core.database.reader() as reader:
        project = await named(reader, page.project)
        totals = await stats.totals(reader, project=project)
        total, rows = await stats.by_project(reader, project=project, limit=page.limit, offset=page.offset)
    return {**totals, **paged(page, total, rows)}


async def show_observation(call: Call[Nothing, Nothing]) -> object:
    observation_id = call.number("observation_id")
    async with call.edge.core.database.reader() as reader:
        found = await observations.by_ids(reader, [observation_id])
    if not found:
        raise NotFound(f"there is no observation {observation_id}; /api/search finds those that exist")
    return found[0]


async def show_observations(call: Call[Nothing, ObservationIds]) -> object:
    asked = call.body
    ids = list(dict.fromkeys(asked.ids))
    async with call.edge.core.database.reader() as reader:
        found = await records.whole(reader, ids, project=await named(reader, asked.project))
    rows = list(found.values())
    if asked.order_by is not None:
        rows.sort(key=lambda row: (row["created_at_epoch"], row["id"]), reverse=asked.order_by == "date_desc")
    return {
        "total": len(rows),
        "limit": asked.limit,
        "offset": 0,
        "results": rows[: asked.limit],
        "missing": [records.spelled(each) for each in ids if each not in found],
    }


async def named(reader: Reader, project: str | None) -> str | None:
    """The name of a project given by name or key. An unknown one stays as it is: nothing has it."""
    return project and (await projects.find(reader, project) or project)


def paged(page: Page, total: int, rows: Rows) -> dict[str, Any]:
    return {"total": total, "limit": page.limit, "offset": page.offset, "results": rows}
