"""Reading what is remembered, newest first."""

from functools import partial
from typing import Any, Protocol

from service import observations, projects, records, sessions, stats
from service.clock import now_ms
from service.database import Reader
from service.edge.operations import Call, Nothing
from service.edge.parameters import ObservationIds, Page
from service.errors import NotFound

Rows = list[dict[str, Any]]


class Listing(Protocol):
    def __call__(self, reader: Reader, *, project: str | None, limit: int, offset: int) -> tuple[int, Rows]: ...


async def list_observations(call: Call[Page, Nothing]) -> object:
    return await _listed(call, partial(observations.newest, now=now_ms()))


async def list_summaries(call: Call[Page, Nothing]) -> object:
    return await _listed(call, observations.newest_summaries)


async def list_prompts(call: Call[Page, Nothing]) -> object:
    return await _listed(call, sessions.newest_prompts)


async def list_sessions(call: Call[Page, Nothing]) -> object:
    return await _listed(call, sessions.newest)


async def list_projects(call: Call[Page, Nothing]) -> object:
    return await _listed(call, projects.listed)


async def show_stats(call: Call[Page, Nothing]) -> object:
    def totals(reader: Reader) -> dict[str, Any]:
        return stats.totals(reader, project=named(reader, call.query.project))

    return {**await call.edge.core.database.read(totals), **await _listed(call, stats.by_project)}


async def _listed(call: Call[Page, Nothing], listing: Listing) -> dict[str, Any]:
    page = call.query

    def read(reader: Reader) -> tuple[int, Rows]:
        return listing(reader, project=named(reader, page.project), limit=page.limit, offset=page.offset)

    return paged(page, *await call.edge.core.database.read(read))


async def show_observation(call: Call[Nothing, Nothing]) -> object:
    observation_id = call.number("observation_id")
    found = await call.edge.core.database.read(lambda reader: observations.by_ids(reader, [observation_id]))
    if not found:
        raise NotFound(f"there is no observation {observation_id}; /api/search finds those that exist")
    return found[0]


async def show_observations(call: Call[Nothing, ObservationIds]) -> object:
    asked = call.body
    ids = list(dict.fromkeys(asked.ids))
    found = await call.edge.core.database.read(
        lambda reader: records.whole(reader, ids, project=named(reader, asked.project))
    )
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


def named(reader: Reader, project: str | None) -> str | None:
    """The name of a project given by name or key. An unknown one stays as it is: nothing has it."""
    return project and (projects.find(reader, project) or project)


def paged(page: Page, total: int, rows: Rows) -> dict[str, Any]:
    return {"total": total, "limit": page.limit, "offset": page.offset, "results": rows}
