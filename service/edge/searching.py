"""Search over HTTP: the parameters of the contract, JSON or a table for reading."""

from dataclasses import asdict
from typing import Literal

from starlette.responses import Response

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
    from service import search as searches

    given = call.query.model_dump(exclude={"all_projects", "cwd", "format"})
    if call.query.all_projects:
        given["project"] = None
    query = search_query(given)
    async with call.edge.core.database.reader() as reader:
        answer = await searches.search(reader, query)
    if call.query.format == "markdown":
        return Response(searches.markdown(answer), media_type="text/markdown")
    return asdict(answer)
