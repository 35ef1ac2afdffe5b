"""Search over HTTP: the parameters of the contract, JSON or a table for reading."""

from dataclasses import asdict, replace
from typing import Literal

from starlette.responses import Response

from service import projects
from service import search as searches
from service.core import read_folder
from service.database import Reader
from service.edge.operations import Call, Nothing, Parameters
from service.edge.parameters import Limit, Offset, Text
from service.searching.request import DEFAULT_LIMIT, search_query


class SearchParameters(Parameters):
    """Lists are comma-separated; dates are ISO 8601 or milliseconds, inclusive. `cwd`: the project of that folder."""

    query: str = ""
    project: Text = None
    all_projects: bool = False
    cwd: Text = None
    type: Text = None
    obs_type: Text = None
    concepts: Text = None
    files: Text = None
    session: Text = None
    platform: Text = None
    dateStart: Text = None  # noqa: N815 - the contract's names
    dateEnd: Text = None  # noqa: N815
    limit: Limit = DEFAULT_LIMIT
    offset: Offset = 0
    orderBy: Text = None  # noqa: N815
    format: Literal["json", "markdown"] = "json"


async def search(call: Call[SearchParameters, Nothing]) -> object:
    given = call.query.model_dump(exclude={"project", "all_projects", "cwd", "format"})
    query = search_query(given)
    async with call.edge.core.database.reader() as reader:
        answer = await searches.search(reader, replace(query, project=await _project(reader, call.query)))
    if call.query.format == "markdown":
        return Response(searches.markdown(answer), media_type="text/markdown")
    return asdict(answer)


async def _project(reader: Reader, asked: SearchParameters) -> str | None:
    """None: every project, which is also what a caller gets that says nothing of a project."""
    if asked.all_projects or asked.project or not asked.cwd:
        return None if asked.all_projects else asked.project
    ref = read_folder(asked.cwd, ()) or projects.ProjectRef(folder=asked.cwd)
    return await projects.of_folder(reader, ref) or asked.cwd
