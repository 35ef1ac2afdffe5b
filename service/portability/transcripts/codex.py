"""Rollouts of Codex CLI: a JSON line an item of the conversation."""

import json
import re
from pathlib import Path
from typing import Any

from service.portability.transcripts.recording import Record, Telling, Transcript, at_of, mapping, records

PLATFORM = "codex"
KINDS = frozenset(("session_meta", "response_item", "event_msg", "turn_context"))
CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call"))
ANSWERS = frozenset(("function_call_output", "custom_tool_call_output"))
EXIT_CODE = re.compile(r"(?:exited with code|Exit code:|exit_code[\"\s:]+)\s*(-?\d+)")
HEAD = 400
"""Characters of an output in which its exit code is told."""


def read(path: Path) -> Transcript:
    unusable: list[str] = []
    telling = Telling(session_id=path.name.split(".")[0])
    calls: dict[str, tuple[str, Any]] = {}
    started: int | None = None
    at = 0
    for number, (_, record) in enumerate(records(path, unusable)):
        at = at_of(record) or at
        payload = mapping(record.get("payload"))
        if record.get("type") == "session_meta" and started is None:
            telling.session_id = str(payload.get("id") or telling.session_id)
        telling.cwd = str(payload.get("cwd") or telling.cwd)
        started = at if started is None else started
        _read(telling, calls, payload, at, f"{at}-{number}")
    return telling.ended(PLATFORM, unusable, started_at=started)


def _read(telling: Telling, calls: dict[str, tuple[str, Any]], payload: Record, at: int, delivery: str) -> None:
    kind, call_id = str(payload.get("type")), str(payload.get("call_id") or payload.get("id") or delivery)
    if kind == "user_message":
        telling.prompt(str(payload.get("message") or ""), at, delivery)
    elif kind == "agent_message":
        telling.say(str(payload.get("message") or ""), at)
    elif kind == "turn_aborted":
        telling.interrupt()
    elif kind == "task_complete":
        telling.say(str(payload.get("last_agent_message") or ""), at)
        telling.stop(at)
    elif kind in CALLS:
        calls[call_id] = (_name(payload), _input(payload))
    elif kind in ANSWERS:
        name, asked = calls.get(call_id, ("?", {}))
        answer = _output(payload.get("output"))
        fields = {"tool_name": name, "tool_input": asked, "tool_use_id": call_id}
        code = EXIT_CODE.search(answer[:HEAD]) if isinstance(answer, str) else None
        if code is not None and code[1] != "0":
            telling.tell("PostToolUseFailure", at, call_id, **fields, error=answer, is_interrupt=False)
        else:
            telling.tell("PostToolUse", at, call_id, **fields, tool_response=answer)


def _name(payload: Record) -> str:
    name = str(payload.get("name") or str(payload.get("type")).removesuffix("_call"))
    return f"{payload['namespace']}__{name.lstrip('_')}" if payload.get("namespace") else name


def _input(payload: Record) -> Any:
    given: Any = next((payload[name] for name in ("arguments", "input", "action") if name in payload), {})
    if not isinstance(given, str):
        return given if isinstance(given, dict) else {"input": given}
    try:
        parsed = json.loads(given)
    except ValueError:
        return {"input": given}
    return parsed if isinstance(parsed, dict) else {"input": given}


def _output(output: Any) -> Any:
    """The text of an answer; some are JSON around it."""
    if isinstance(output, str) and output.startswith("{"):
        try:
            inner = json.loads(output)
        except ValueError:
            return output
        return inner.get("output", inner) if "metadata" in inner else output
    return output
