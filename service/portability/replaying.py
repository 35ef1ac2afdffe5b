"""Recorded sessions through the same door as live ones: turn by turn, and nothing that was captured already."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

import orjson

from service import sessions
from service.core import Core, Incoming
from service.database import Reader
from service.errors import InvalidInput
from service.intake import PROMPT_LIMIT, Envelope, Receipt
from service.portability.transcripts.recording import Recorded, Transcript
from service.shaping import clean_text, shape

SAME_EVENT_MS = 60_000
"""A client's own record and its hook's clock differ by less; the same words so close, captured, are the same event."""
KNOWN_SESSION = "SELECT 1 FROM sessions WHERE session_id = :session_id"
KNOWN_END = "SELECT 1 FROM sessions WHERE session_id = :session_id AND ended_at_epoch BETWEEN :since AND :until"
CAPTURED_PROMPT = """
SELECT 1 FROM user_prompts
WHERE session_id = :session_id AND text = :text AND created_at_epoch BETWEEN :since AND :until
  AND event_key NOT LIKE :ours LIMIT 1
"""
CAPTURED_STOPS = """
SELECT payload FROM pending_messages LEFT JOIN message_payloads ON message_id = id
WHERE state IN ('pending', 'processing', 'done', 'skipped', 'failed') AND session_id = :session_id
  AND hook_event = :event AND captured_at_epoch BETWEEN :since AND :until AND event_key NOT LIKE :ours
"""
WITHOUT_IDS = ("Stop", "SubagentStop", "PreCompact")
"""Events that a recording cannot name as the hook did: they are known by session, words and time."""


async def replay(core: Core, transcript: Transcript, *, project: str | None) -> list[str]:
    """Hand a session over, each turn in a commit of its own: half a turn would be compressed as a whole one.

    What became of each event, in no order: queued, recorded, duplicate, skipped, error; why it is an error is added to
    the transcript's `unusable`.
    """
    statuses: list[str] = []
    for turn in _turns(transcript.events):
        fresh = await core.database.read(partial(_uncaptured, transcript=transcript, turn=turn))
        statuses += ["duplicate"] * (len(turn) - len(fresh))
        receipts = await core.ingest_many([_incoming(transcript, event, project) for event in fresh])
        for event, receipt in zip(fresh, receipts, strict=True):
            statuses.append(receipt.status if isinstance(receipt, Receipt) else "error")
            if isinstance(receipt, InvalidInput):
                name = event.payload["hook_event_name"]
                transcript.unusable.append(f"{transcript.session_id}, {name} at {event.at}: {receipt}")
    return statuses


def _turns(events: Sequence[Recorded]) -> Iterator[list[Recorded]]:
    number = 0

    def turn(event: Recorded) -> int:
        nonlocal number
        number += bool(event.payload["hook_event_name"] == "UserPromptSubmit")
        return number

    for _, some in groupby(events, key=turn):
        yield list(some)


def _incoming(transcript: Transcript, event: Recorded, project: str | None) -> Incoming:
    envelope = Envelope(platform=transcript.platform, captured_at=event.at, delivery=event.delivery, project=project)
    return Incoming(payload=event.payload, size=_size(event.payload), envelope=envelope)


def _size(payload: object) -> int:
    """Bytes of it as JSON; 0 of what can't be JSON, which is refused for that."""
    try:
        return len(orjson.dumps(payload))
    except TypeError:  # half a surrogate, which is mended, is one of the reasons
        with contextlib.suppress(ValueError, RecursionError):
            return len(json.dumps(payload, default=str))
        return 0


def _uncaptured(reader: Reader, transcript: Transcript, turn: Sequence[Recorded]) -> list[Recorded]:
    def was_captured(event: Recorded) -> bool:
        try:
            return _was_captured(reader, transcript, event)
        except InvalidInput:  # which taking it in will say
            return False

    return [event for event in turn if not was_captured(event)]


def _was_captured(reader: Reader, transcript: Transcript, event: Recorded) -> bool:
    """Tool events say so by their key; others are matched by session, words and time. A session that is known is not
    opened again. What an import brought has a key of its own."""
    name = event.payload["hook_event_name"]
    session_id = clean_text(transcript.session_id)
    near = {"since": event.at - SAME_EVENT_MS, "until": event.at + SAME_EVENT_MS}
    params = {"session_id": session_id, "event": name, "ours": f"%/delivery-{name}-%", **near}
    if name in ("SessionStart", "SessionEnd"):
        return reader.value(KNOWN_SESSION if name == "SessionStart" else KNOWN_END, params) is not None
    if name == "UserPromptSubmit":
        text = clean_text(str(shape(event.payload).payload.get("prompt", "")))[:PROMPT_LIMIT]
        captured = reader.value(CAPTURED_PROMPT, params | {"text": text}) is not None
        return captured or sessions.forgot_a_prompt(reader, session_id, **near)
    if name not in WITHOUT_IDS:
        return False
    said = shape(event.payload).payload.get("last_assistant_message")
    payloads = [row["payload"] for row in reader.all(CAPTURED_STOPS, params)]
    return any(payload is None or orjson.loads(payload).get("last_assistant_message") == said for payload in payloads)
