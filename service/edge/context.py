"""Context over HTTP: by its own routes, and in the answer to the events that a client waits for."""

import asyncio
from functools import partial
from typing import Any

import structlog
from pydantic import Field

from hooks.privacy import strip_text
from service.clock import now_ms
from service.context import asking, given
from service.context.asking import Asked
from service.context.start import Context
from service.core import Core
from service.edge.operations import Call, Nothing, Parameters
from service.edge.parameters import Text
from service.edge.state import Edge
from service.errors import InvalidInput, StoreError
from service.intake import Envelope, Receipt, project_ref
from service.projects import ProjectRef
from service.shaping import clean_text

log = structlog.get_logger()

EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse"})
"""Those whose answer may tell the client something."""
WITHIN_S = 1.2
"""A hook waits 1.5 s for an answer with context (semantics: Where hooks go); what takes longer is not told."""
SHORTEST_PROMPT = 20
"""Characters; a shorter one says too little to recall by (mission H3)."""
FILE_TOOLS = frozenset({"Read", "Edit", "MultiEdit", "NotebookEdit"})


class InjectParameters(Parameters):
    """Of a session that begins: its folder or project, and as the client has it, `source` (startup, resume, clear,
    compact) and `session`."""

    cwd: Text = None
    project: Text = None
    source: Text = None
    session: Text = None


class Question(Parameters):
    """What is asked about, as an agent or a person would say it: in a project, that of a folder, or in all of them."""

    q: str
    project: Text = None
    cwd: Text = None
    limit: int = Field(asking.NOTES_A_PROMPT, ge=1, le=20)


async def inject(call: Call[InjectParameters, Nothing]) -> object:
    """Only looks: what is shown here counts as given to no session."""
    asked, core = call.query, call.edge.core
    if not (asked.cwd or asked.project):
        raise InvalidInput("say where: cwd (a folder) or project (a name or key)", field="cwd")
    who = Asked(ref=ProjectRef(override=asked.project, folder=asked.cwd or ""), session_id=asked.session or "")
    read = partial(asking.at_start, asked=who, configuration=core.configuration, source=asked.source, now=now_ms())
    return _shown(await core.database.read(read))


async def recall(call: Call[Nothing, Question]) -> object:
    """What is known of a question; nothing when nothing is about it."""
    asked, core = call.body, call.edge.core
    ref = ProjectRef(override=asked.project, folder=asked.cwd or "")
    who = Asked(ref=ref, everywhere=ref.is_silent)
    context = await asking.at_prompt(
        core.database, who, core.configuration, asked.q, vectors=core.vectors, limit=asked.limit, now=now_ms()
    )
    return _shown(context)


async def for_event(edge: Edge, payload: dict[str, Any], envelope: Envelope, receipt: Receipt) -> dict[str, Any]:
    """`hookSpecificOutput` for the answer to an event that was taken; {} when there is nothing to tell."""
    if receipt.status != "recorded" and receipt.reason != "ignored":  # private, excluded, a retry
        return {}
    event: str = payload["hook_event_name"]
    tell = {"SessionStart": _at_start, "UserPromptSubmit": _at_prompt, "PreToolUse": _at_file}[event]
    who = Asked(ref=project_ref(payload, envelope), session_id=clean_text(payload["session_id"]))
    try:
        async with asyncio.timeout(WITHIN_S):
            text = await tell(edge.core, payload, who)
    except (StoreError, TimeoutError) as error:  # the event itself is safe
        log.warning("context.failed", hook_event=event, error=str(error) or type(error).__name__)
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}} if text else {}


async def _at_start(core: Core, payload: dict[str, Any], who: Asked) -> str:
    now, source = now_ms(), clean_text(_text(payload, "source"))
    read = partial(asking.at_start, asked=who, configuration=core.configuration, source=source, now=now)
    context = await core.database.read(read)
    items = [str(row_id) for row_id in context.given]
    is_new = not context.shown or await core.database.write(
        lambda tx: given.begin(tx, who.session_id, source, items, now=now)
    )
    return context.text if is_new else ""


async def _at_prompt(core: Core, payload: dict[str, Any], who: Asked) -> str:
    prompt = strip_text(_text(payload, "prompt"))[0].strip()
    if core.settings.semantic_inject == "off" or len(prompt) < SHORTEST_PROMPT:
        return ""
    now = now_ms()
    context = await asking.at_prompt(core.database, who, core.configuration, prompt, vectors=core.vectors, now=now)
    if context.shown:
        await core.database.write(lambda tx: given.add(tx, who.session_id, map(str, context.given), now=now))
    return context.text


async def _at_file(core: Core, payload: dict[str, Any], who: Asked) -> str:
    path = _text(payload.get("tool_input"), "file_path") or _text(payload.get("tool_input"), "notebook_path")
    if core.settings.file_inject == "off" or _text(payload, "tool_name") not in FILE_TOOLS or not path:
        return ""
    now = now_ms()
    read = partial(asking.at_file, asked=who, configuration=core.configuration, path=path, now=now)
    context = await core.database.read(read)
    if context.shown:
        items = [given.file_item(path), *map(str, context.given)]
        await core.database.write(lambda tx: given.add(tx, who.session_id, items, now=now))
    return context.text


def _text(record: object, name: str) -> str:
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, str) else ""


def _shown(context: Context) -> dict[str, Any]:
    return {"text": context.text, "tokens": context.tokens, "left_out": context.left_out}
