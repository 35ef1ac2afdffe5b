"""Search and timeline over HTTP: the parameters of the contract, JSON or a table for reading."""

from dataclasses import asdict, replace
from typing import Annotated, Literal

from pydantic import Field
from starlette.responses import Response

from service import projects
from service import search as searches
from service import timeline as timelines
from service.clock import now_ms
from service.core import read_folder
from service.database import Database
from service.edge.operations import Call, Nothing, Parameters
from service.edge.parameters import Limit, Offset, Text
from service.models import ObservationType
from service.searching.request import DEFAULT_LIMIT, KINDS_BY_TYPE, Order, search_query
from service.timeline import DEFAULT_DEPTH, LARGEST_DEPTH, TimelineQuery

Depth = Annotated[int, Field(ge=0, le=LARGEST_DEPTH)]


class Place(Parameters):
    """Where it is looked for. `cwd`: in the project of that folder."""

    project: Text = Field(None, description="by name or key")
    all_projects: bool = Field(False, description="in every project")
    cwd: Text = Field(None, description="in the project of this folder")


class SearchParameters(Place):
    """Lists are comma-separated; dates are ISO 8601 or milliseconds, inclusive. `cwd`: the project of that folder."""

    query: str = Field("", description='any words; "a phrase", prefix*, AND, OR, NOT work too; empty lists the newest')
    type: Text = Field(None, description=f"{', '.join(KINDS_BY_TYPE)}; observations unless told")
    obs_type: Text = Field(None, description=f"of {', '.join(ObservationType)}; several with commas")
    concepts: Text = Field(None, description="any of these; several with commas")
    files: Text = Field(None, description="ends of paths, as cart.py or shop/cart.py; several with commas")
    session: Text = Field(None, description="the client's session id")
    platform: Text = Field(None, description="the client, as claude-code")
    dateStart: Text = Field(None, description="from this date or time on (ISO 8601 or ms)")  # noqa: N815 - contract
    dateEnd: Text = Field(None, description="up to this date or time, inclusive")  # noqa: N815
    limit: Limit = DEFAULT_LIMIT
    offset: Offset = 0
    orderBy: Text = Field(None, description=", ".join(Order))  # noqa: N815
    age: Text = Field(None, description="on: by relevance, what is older ranks a little lower; off: age has no say")
    format: Literal["json", "markdown"] | None = Field(None, description="unless told, json over HTTP, a table by MCP")


class TimelineParameters(Place):
    """Either `anchor` (12, S12, P7, a session id, ISO 8601 or milliseconds) or `query`. Without a project the anchor's
    own is shown."""

    anchor: Text = Field(None, description="12, S12, P7, a session id, or a time (ISO 8601 or ms)")
    query: Text = Field(None, description="instead of an anchor: around its best hit")
    depth_before: Depth = DEFAULT_DEPTH
    depth_after: Depth = DEFAULT_DEPTH


async def search(call: Call[SearchParameters, Nothing]) -> object:
    given = call.query.model_dump(exclude={"project", "all_projects", "cwd", "format"})
    core = call.edge.core
    query = replace(search_query(given), project=await project_of(core.database, call.query))
    answer = await searches.search(core.database, query, vectors=core.vectors)
    if call.query.format == "markdown":
        return Response(searches.markdown(answer), media_type="text/markdown")
    return asdict(answer)


async def timeline(call: Call[TimelineParameters, Nothing]) -> object:
    asked, core = call.query, call.edge.core
    query = TimelineQuery(
        anchor=asked.anchor,
        query=asked.query,
        depth_before=asked.depth_before,
        depth_after=asked.depth_after,
        project=await project_of(core.database, asked),
        all_projects=asked.all_projects,
    )
    return asdict(await timelines.timeline(core.database, query, now=now_ms(), vectors=core.vectors))


async def project_of(database: Database, asked: Place) -> str | None:
    """None: every project, which is also what a caller gets that says nothing of a project."""
    if asked.all_projects or asked.project or not asked.cwd:
        return None if asked.all_projects else asked.project
    ref = read_folder(asked.cwd, ()) or projects.ProjectRef(folder=asked.cwd)
    return await database.read(lambda reader: projects.of_folder(reader, ref)) or asked.cwd
