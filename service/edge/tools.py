"""The MCP tools: each an operation of the HTTP API as a model calls it, with its parameters and its answer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from service.edge import errors, memories, openapi, reading, searching
from service.edge.operations import Call, Nothing, Parameters, names
from service.edge.parameters import ObservationIds
from service.mcp import texts
from service.mcp.rpc import Json
from service.searching.request import Kind
from service.timeline import is_time

WORKFLOW = """\
Recall works in three layers. Each costs more than the one before: narrow down first, read last.
1. search(query) lists what fits: id, time, type, title and ~tokens of the whole, about 30 tokens a line. Filter by \
type, files, concepts, dates.
2. timeline(anchor=id) lists what happened just before and after one of them, in lines of the same kind.
3. get_observations(ids=[…]) reads the few that matter in full, all in one call; mostly 50 to 450 tokens each, as \
~tokens said.
Never read in full what its title rules out. An id is a number, S12 for a session summary, P12 for a prompt."""

READS = {"readOnlyHint": True, "openWorldHint": False}
ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
REMOVES = ADDS | {"destructiveHint": True}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """`answer` is the operation's; `text` makes what a model reads of its JSON object.

    `is_local` says of a call whether it is about the caller's own project, for want of another; `makes_project`: even
    when nothing is known of that yet. `shown` are the observations that an answer shows in full.
    """

    name: str
    title: str
    description: str
    answer: Callable[[Call[Any, Any]], Awaitable[object]]
    parameters: type[Parameters] = Nothing
    in_body: bool = False
    text: Callable[[Json], str] = str
    is_local: Callable[[Any], bool] = lambda _: False
    makes_project: bool = False
    shown: Callable[[Json], Sequence[int]] = lambda _: ()
    hints: Json

    @cached_property
    def listed(self) -> Json:
        """As `tools/list` shows it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": openapi.input_schema(self.parameters),
            "annotations": self.hints,
        }

    def understood(self, arguments: Json) -> Parameters:
        """Raises `InvalidInput` that names the parameter."""
        known = self.listed["inputSchema"]["properties"]
        spelled = {
            name: _spelled(value, known.get(name, {}).get("type"))
            for name, value in arguments.items()
            if value is not None
        }
        try:
            return self.parameters.model_validate(spelled)
        except ValidationError as error:
            raise errors.invalid(error, names(self.parameters), where="parameter") from None


def _spelled(value: Any, kind: str | None) -> Any:
    """Models write lists as text, and numbers and lists where a query string has text."""
    match kind, value:
        case "array", str():
            return [part.strip(" \"'") for part in value.strip("[] ").split(",")]
        case "array", int():
            return [value]
        case "string", list():
            return ",".join(map(str, value))
        case "string", bool():
            return value
        case "string", int() | float():
            return str(value)
    return value


async def _workflow(_: Call[Nothing, Nothing]) -> object:
    return WORKFLOW


def _has_no_place(asked: Any) -> bool:
    return not (asked.project or asked.all_projects or asked.cwd)


def _selects(asked: Any) -> bool:
    """A project that nobody named must not be all that is to be forgotten."""
    return bool(asked.session or asked.before is not None or asked.query)


def _observations(found: Json) -> list[int]:
    return [record["id"] for record in found["results"] if record["kind"] == Kind.OBSERVATION]


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(name="__IMPORTANT", title="How to recall", description=WORKFLOW, answer=_workflow, hints=READS),
        Tool(
            name="search",
            title="Search memory",
            description="Layer 1. Find memories of past sessions by any words: a line each, with ids for the other"
            " layers. In this project unless told otherwise; without a query it lists the newest.",
            answer=searching.search,
            parameters=searching.SearchParameters,
            text=texts.search,
            is_local=_has_no_place,
            hints=READS,
        ),
        Tool(
            name="timeline",
            title="What happened around it",
            description="Layer 2. What happened before and after a memory (anchor: its id), a session (anchor: its id),"
            " a time, or the best hit of a query: observations, summaries and prompts, a line each, oldest first.",
            answer=searching.timeline,
            parameters=searching.TimelineParameters,
            text=texts.timeline,
            is_local=lambda asked: _has_no_place(asked) and (asked.query is not None or is_time(asked.anchor or "")),
            hints=READS,
        ),
        Tool(
            name="get_observations",
            title="Read memories",
            description="Layer 3. Read memories in full by their ids: observations, S12 summaries, P12 prompts.",
            answer=reading.show_observations,
            parameters=ObservationIds,
            in_body=True,
            text=texts.observations,
            shown=_observations,
            hints=READS,
        ),
        Tool(
            name="remember",
            title="Remember",
            description="Keep a text word for word, to be found in later sessions: what the user asks to remember, a"
            ' decision with its reason, a preference. One matter each. In this project; project="global": everywhere.',
            answer=memories.remember,
            parameters=memories.Memory,
            in_body=True,
            text=texts.remembered,
            is_local=lambda asked: not asked.project,
            makes_project=True,
            hints=ADDS,
        ),
        Tool(
            name="forget",
            title="Forget",
            description="Forget for good what fulfils everything that is given: ids, or what matches all words of a"
            " query, a session, what was before a time, in this project or another. Look first, with dry_run=true.",
            answer=memories.forget,
            parameters=memories.Forget,
            in_body=True,
            text=texts.forgotten,
            is_local=lambda asked: not asked.project and not asked.ids and _selects(asked),
            hints=REMOVES,
        ),
    )
}
