"""Chats of Gemini CLI: one JSON document a session, or its messages as lines."""

import json
from pathlib import Path
from typing import Any

from service.portability.transcripts.recording import (
    Record,
    Telling,
    Transcript,
    at_of,
    items,
    mapping,
    records,
    text_of,
)

PLATFORM = "gemini"


def read(path: Path) -> Transcript:
    unusable: list[str] = []
    whole = [record for _, record in records(path, unusable)]
    head = whole[0] if whole and "messages" in whole[0] else {}
    messages = [mapping(message) for message in items(head.get("messages"))] if head else whole
    telling = Telling(session_id=str(head.get("sessionId") or path.name.split(".")[0]))
    started = at_of(head, "startTime")
    at = started or 0
    for number, message in enumerate(messages):
        at = at_of(message) or at
        started = at if started is None else started
        _read(telling, message, at, str(message.get("id") or f"{at}-{number}"))
    return telling.ended(PLATFORM, unusable, started_at=started)


def _read(telling: Telling, message: Record, at: int, delivery: str) -> None:
    said = _said(message.get("content"))
    if message.get("type") == "user" and said.strip():
        telling.prompt(said, at, delivery)
    elif message.get("type") == "gemini":
        telling.say(said, at)
        for number, call in enumerate(map(mapping, items(message.get("toolCalls")))):
            call_id = str(call.get("id") or f"{delivery}-{number}")
            fields = {"tool_name": str(call.get("name") or "?"), "tool_input": mapping(call.get("args"))}
            answer, when = _answer(call.get("result")), at_of(call) or at
            if call.get("status") in (None, "success"):
                telling.tell("PostToolUse", when, call_id, **fields, tool_use_id=call_id, tool_response=answer)
            else:
                error = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
                telling.tell("PostToolUseFailure", when, call_id, **fields, tool_use_id=call_id, error=error)


def _said(content: Any) -> str:
    return text_of(content) or " ".join(str(mapping(part).get("text", "")) for part in items(content)).strip()


def _answer(result: Any) -> Any:
    answers = [mapping(mapping(part).get("functionResponse")).get("response", part) for part in items(result)]
    return result if not answers else answers[0] if len(answers) == 1 else answers
