"""What was looked up or found out by others: the web, issue trackers, subagents, questions to the user, plans."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from service.models import ObservationDraft, ObservationType
from workers.compressors.rules.edits import TITLE_LIMIT
from workers.compressors.rules.payload import items, record, string, text_of
from workers.compressors.rules.text import clip, essence, first_sentence, one_line, prose_lines, take
from workers.compressors.rules.turns import Said, ToolUse, Turn

_REPORT_LIMIT = 2500
_PLAN_LIMIT = 3000
_PAGE_LIMIT = 700
_ISSUE_LIMIT = 1500
_TRACKER = re.compile(r"^mcp__.*(?:issue|ticket|comment|pull_request|document|page|card)", re.IGNORECASE)
_TRACKER_LIST = re.compile(r"__(?:list|search)_", re.IGNORECASE)
_REPORT_SHORT = 80


def research_observations(turn: Turn) -> Iterator[ObservationDraft]:
    for use in turn.uses:
        if use.error:
            continue
        if use.tool in {"WebFetch", "WebSearch"}:
            yield from _web(use)
        elif use.tool == "AskUserQuestion":
            yield from _answers(use)
        elif use.tool == "ExitPlanMode":
            yield from _plan(use)
        elif _TRACKER.match(use.tool) and not _TRACKER_LIST.search(use.tool):
            yield from _issue(use)
    yield from _reports(turn)


def _web(use: ToolUse) -> Iterator[ObservationDraft]:
    asked = string(use.input, "query", "prompt")
    where = string(use.input, "url")
    found = text_of(record(use.response).get("results") or use.response)
    if not (asked or where):
        return
    yield ObservationDraft(
        type=ObservationType.DISCOVERY,
        title=clip(f"Web: {asked or where}", TITLE_LIMIT),
        subtitle=clip(where, 160),
        narrative=essence(found, _PAGE_LIMIT),
        concepts=("research",),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


def _answers(use: ToolUse) -> Iterator[ObservationDraft]:
    """The user's choices among the options that the agent offered."""
    answers = record(record(use.response).get("answers") or use.input.get("answers"))
    chosen = [(one_line(question), one_line(answer)) for question, answer in answers.items() if isinstance(answer, str)]
    if not chosen:
        return
    question, answer = chosen[0]
    yield ObservationDraft(
        type=ObservationType.DECISION,
        title=clip(f"User chose: {answer}", TITLE_LIMIT),
        narrative=clip(question, 240),
        facts=take([f"{question} -> {answer}" for question, answer in chosen[1:]] + _described(use, dict(chosen)), 500),
        concepts=("decision",),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


def _described(use: ToolUse, chosen: dict[str, str]) -> list[str]:
    options = (
        record(option) for item in items(use.input.get("questions")) for option in items(record(item).get("options"))
    )
    wanted = set(chosen.values())
    return [string(option, "description") for option in options if string(option, "label") in wanted]


def _plan(use: ToolUse) -> Iterator[ObservationDraft]:
    text = string(record(use.response), "plan") or string(use.input, "plan")
    title = first_sentence(text, TITLE_LIMIT - 6)
    if not title:
        return
    yield ObservationDraft(
        type=ObservationType.DECISION,
        title=f"Plan: {title.removeprefix('Plan: ')}",
        facts=take(list(prose_lines(text))[1:], _PLAN_LIMIT),
        concepts=("plan",),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


def _issue(use: ToolUse) -> Iterator[ObservationDraft]:
    issue = _merged(use)
    title = string(issue, "title", "name", "subject")
    body = string(issue, "body", "description", "content")
    key = string(issue, "identifier", "key", "id", "issueId")
    if not (title or body):
        return
    verb = use.tool.rsplit("__", 1)[-1].replace("_", " ")
    yield ObservationDraft(
        type=ObservationType.DISCOVERY,
        title=clip(f"{key} {title}".strip() if title else f"{verb} {key}: {first_sentence(body, 80)}", TITLE_LIMIT),
        subtitle=verb,
        narrative=essence(body, _ISSUE_LIMIT),
        concepts=("issue",),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


def _merged(use: ToolUse) -> dict[str, Any]:
    """The issue's fields: those that came back before those that were sent."""
    text = use.response if isinstance(use.response, str) else text_of(use.response)
    try:
        answer = record(json.loads(text))
    except (ValueError, RecursionError):
        answer = {}
    return {**use.input, **answer}


def _reports(turn: Turn) -> Iterator[ObservationDraft]:
    """What subagents found: one record each, though both their stop and the tool that started them tell it."""
    told: set[str] = set()
    tasks = [use for use in turn.named("Task") if not use.error]
    for said in turn.reports:
        if len(said.text) < _REPORT_SHORT:
            continue
        told.add(said.text.strip()[:400])
        task = next(
            (use for use in tasks if said.agent_id and record(use.response).get("agentId") == said.agent_id), None
        )
        yield _report(said, string(task.input, "description") if task else "", [task] if task else [])
    for use in tasks:
        text = text_of(record(use.response).get("content") or use.response)
        if len(text) >= _REPORT_SHORT and text.strip()[:400] not in told:
            said = Said(message_id=use.message_id, text=text, agent_id="", tokens=use.tokens)
            yield _report(said, string(use.input, "description"), [])


def _report(said: Said, asked: str, tasks: Iterable[ToolUse]) -> ObservationDraft:
    tasks = list(tasks)
    return ObservationDraft(
        type=ObservationType.DISCOVERY,
        title=clip(asked or first_sentence(said.text, TITLE_LIMIT), TITLE_LIMIT) or "Subagent's report",
        subtitle="subagent",
        facts=take(prose_lines(said.text), _REPORT_LIMIT),
        concepts=("research",),
        message_ids=tuple(dict.fromkeys([said.message_id, *(use.message_id for use in tasks)])),
        discovery_tokens=said.tokens + sum(use.tokens for use in tasks),
    )
