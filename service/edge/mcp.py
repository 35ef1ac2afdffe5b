"""POST /mcp, the streamable HTTP transport without sessions or streams, and the box of tools behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
import structlog
from pydantic import BaseModel, ConfigDict
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from service import envelopes, feedback, projects
from service.clock import now_ms
from service.edge import bodies, errors
from service.edge.operations import Call, Nothing, Parameters
from service.edge.state import Edge
from service.edge.tools import TOOLS, Tool
from service.errors import GaplessError
from service.feedback import Signal
from service.mcp import dialogue
from service.mcp.rpc import Json
from service.projects import ProjectRef
from service.shaping import check_limits

log = structlog.get_logger()

SCOPE = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": []}
"""What operations see of the request: nothing, as a tool call brings all it says in its arguments."""


class RpcRequest(BaseModel):
    """A JSON-RPC request of the Model Context Protocol."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    jsonrpc: str = "2.0"
    id: int | str | None = None
    method: str
    params: dict[str, object] = {}


async def take(call: Call[Nothing, Nothing]) -> Response:
    headers = call.request.headers
    toolbox = Toolbox(edge=call.edge, caller=caller(headers))
    raw = await bodies.read(call.request)
    answer = await dialogue.answer(raw, toolbox, version=headers.get("mcp-protocol-version"))
    return Response(
        answer.body,
        status_code=202 if answer.body is None else 400 if answer.is_refusal else 200,
        media_type="application/json",
        background=BackgroundTask(toolbox.count_fetched),
    )


def caller(headers: Mapping[str, str]) -> ProjectRef:
    """The project that the caller's headers name, as a hook's do; one that names none asks of all."""
    given = envelopes.from_headers(headers)
    if given.project_key is None or given.project:
        return ProjectRef(override=given.project or given.project_name)
    return ProjectRef(key=given.project_key, name=given.project_name or given.project_key)


@dataclass(kw_only=True)
class Toolbox:
    """The tools as one caller sees them."""

    edge: Edge
    caller: ProjectRef
    fetched: set[int] = field(default_factory=set)

    def listed(self) -> list[Json]:
        return [tool.listed for tool in TOOLS.values()]

    async def call(self, name: str, arguments: Json) -> Json:
        tool = TOOLS.get(name)
        if tool is None:
            return dialogue.told(f"there is no tool {name[:100]!r}; there are {', '.join(TOOLS)}", failed=True)
        try:
            check_limits(arguments)
            return await self._answered(tool, tool.understood(arguments))
        except Exception as error:  # noqa: BLE001 - as the edge's 500 handler, which turns it into words
            return dialogue.told(errors.in_words(error, method="tools/call", path=name), failed=True)

    async def count_fetched(self) -> None:
        """Note which observations were read in full, when the answer is on its way."""
        if not self.fetched:
            return
        try:
            await self.edge.core.database.write(
                lambda tx: feedback.note(tx, sorted(self.fetched), Signal.FETCHED, now=now_ms())
            )
        except GaplessError as error:
            log.warning("feedback.lost", error=str(error))

    async def _answered(self, tool: Tool, asked: Parameters) -> Json:
        if tool.is_local(asked) and (project := await self._own_project(make=tool.makes_project)):
            asked = asked.model_copy(update={"project": project})
        query, body = (Nothing(), asked) if tool.in_body else (asked, Nothing())
        given = await tool.answer(Call(edge=self.edge, request=Request(dict(SCOPE)), query=query, body=body))
        if isinstance(given, Response):
            text = bytes(given.body).decode()
            given = orjson.loads(text) if given.media_type == "application/json" else text
        if not isinstance(given, dict):
            return dialogue.told(str(given))
        self.fetched.update(tool.shown(given))
        if getattr(asked, "format", None) == "json":
            return dialogue.told(orjson.dumps(given).decode(), document=given)
        return dialogue.told(tool.text(given))

    async def _own_project(self, *, make: bool) -> str | None:
        """Its name; what matches nothing when nothing is known of it; None for a caller that is nowhere."""
        ref, database = self.caller, self.edge.core.database
        if ref.is_silent:
            return None
        name = await database.read(lambda reader: projects.of_folder(reader, ref))
        if name is None and make:
            name = await database.write(lambda tx: projects.resolve(tx, ref, fallback=None, now=now_ms()))
        return name or ref.override or ref.key
