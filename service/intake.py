"""From a raw hook payload to a committed row: `prepare` judges and cleans it, `accept` writes it.

`prepare` needs no database and runs on the event loop; `accept` runs inside a write transaction, many of them in one
commit.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hooks import clients
from hooks import project as folders
from service import due, pending, projects, sessions
from service.clock import epoch_ms
from service.database import Row, Tx
from service.due import FlushPolicy
from service.errors import InvalidInput
from service.models import MessageType, Session
from service.noise import file_read, is_bookkeeping
from service.pending import NewMessage
from service.projects import ProjectRef
from service.protocol import is_ours, is_protocol
from service.sessions import Turn
from service.shaping import Shaped, clean_text, shape

FUTURE_MS = 86_400_000
"""A captured time further ahead than a day is a broken clock: arrival counts instead."""
SAME_PAYLOAD_MS = 30_000
"""Without ids of the client's, the same payload within this time is the same event (semantics: Identity)."""
ID_LIMIT = 512
"""Characters of an id; a longer one is refused, it is no id."""
CHARACTERS_PER_TOKEN = 4
EVENT_TOKENS = 1_200
"""What an event counts in a batch at most: a longer one is shown to a model by its head and tail."""
PATH_LIMIT = 4_096
PROMPT_LIMIT = 64_000
"""Characters of a stored prompt."""

# of an event before it is written, in one statement: each costs the thread a hand-over of the interpreter
KNOWN = """
SELECT coalesce(
           (SELECT max(event_key) FROM {table} WHERE event_key BETWEEN :first_key AND :last_key),
           (SELECT max(event_key) FROM forgotten WHERE event_key BETWEEN :first_key AND :last_key)) AS event_key,
       EXISTS (
           SELECT 1 FROM private_turns WHERE session_id = :session_id AND CASE
               WHEN client_prompt_id IS NOT NULL AND :client_prompt_id IS NOT NULL
                   THEN client_prompt_id = :client_prompt_id
               ELSE from_epoch <= :at AND (until_epoch IS NULL OR :at < until_epoch) END) AS in_private_turn,
       EXISTS (SELECT 1 FROM pending_messages WHERE session_id = :session_id AND subject = :subject) AS was_read,
       (SELECT due_at_epoch FROM sessions WHERE session_id = :session_id) AS due_at
"""
KNOWN_MESSAGE, KNOWN_PROMPT = (KNOWN.format(table=table) for table in ("pending_messages", "user_prompts"))

TOOL_EVENTS = frozenset({"PostToolUse", "PostToolUseFailure"})
SUMMARY_EVENTS = frozenset({"Stop", "PreCompact", "SessionEnd"})


class Kind(StrEnum):
    START = "start"
    PROMPT = "prompt"
    TOOL = "tool"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What came with the payload: from headers, the query string, or a batch item. Times in ms since the epoch."""

    platform: str = "claude-code"
    captured_at: int | None = None
    delivery: str | None = None
    project: str | None = None
    project_name: str | None = None
    project_key: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """An event that leaves no row: `reason` is private, excluded, protocol, self or ignored."""

    reason: str
    event_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A judged and cleaned event, ready to be written. `event_key` ends with `:` when it is a payload's hash, to which
    the captured time is still to be added."""

    kind: Kind
    hook_event: str
    event_key: str
    session_id: str
    platform: str
    project: ProjectRef
    captured_at: int
    payload: str
    payload_bytes: int
    text: str = ""
    tool_name: str | None = None
    subject: str | None = None
    client_prompt_id: str | None = None
    agent_id: str | None = None
    noise: bool = False
    private: bool = False

    @property
    def whole_key(self) -> str:
        return self.key_at(self.captured_at)

    def key_at(self, captured_at: int) -> str:
        """The whole key, had the event come at this time."""
        return f"{self.event_key}{captured_at:015d}" if self.event_key.endswith(":") else self.event_key

    @property
    def turn(self) -> Turn:
        return Turn(session_id=self.session_id, client_prompt_id=self.client_prompt_id, at=self.captured_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """`status`: queued, recorded (a session or prompt, no message), duplicate, skipped. `due`: work waits for a
    consumer now."""

    status: str
    event_key: str | None
    message_id: int | None = None
    reason: str | None = None
    due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What `prepare` knows of this installation. `locate` adds what a folder says of its project, None: excluded."""

    own_folder: str
    skip_tools: frozenset[str]
    locate: Callable[[ProjectRef], ProjectRef | None]


def prepare(payload: Any, size: int, envelope: Envelope, house: House, *, now: int) -> Event | Skip:
    """Judge and clean one payload of `size` bytes. Raises `InvalidInput` when it is no hook payload."""
    if not isinstance(payload, dict):
        raise InvalidInput("an event is a JSON object, as the client gives it to a hook", status=400)
    payload = clients.translated(envelope.platform, payload)
    hook_event, session_id = _id(payload, "hook_event_name"), _id(payload, "session_id")
    kind = _kind(hook_event, payload)
    if kind is None:
        return Skip(reason="ignored")
    if is_ours(payload, house.own_folder):
        return Skip(reason="self")
    project = house.locate(project_ref(payload, envelope))
    if project is None:
        return Skip(reason="excluded")
    shaped = shape(payload)
    clean = shaped.payload
    private = shaped.private or envelope.private
    if kind is Kind.PROMPT and not private:
        text = clean_text(_text(clean, "prompt"))
        if is_protocol(text):
            return Skip(reason="protocol")
    else:
        text = ""
    captured_at = _captured_at(payload, envelope, now)
    tool_name, tool_input = _optional_id(clean, "tool_name"), clean.get("tool_input")
    tool_input = tool_input if isinstance(tool_input, dict) else {}
    return Event(
        kind=kind,
        hook_event=hook_event,
        event_key=_event_key(payload, hook_event, session_id, envelope, shaped),
        session_id=session_id,
        platform=envelope.platform,
        project=project,
        captured_at=captured_at,
        payload=shaped.encoded.decode(),
        payload_bytes=size,
        text=text[:PROMPT_LIMIT],
        tool_name=tool_name,
        subject=file_read(tool_name, tool_input) if hook_event == "PostToolUse" else None,
        client_prompt_id=_optional_id(clean, "prompt_id"),
        agent_id=_optional_id(clean, "agent_id"),
        noise=kind is Kind.TOOL and tool_name is not None and is_bookkeeping(tool_name, tool_input, house.skip_tools),
        private=private,
    )


def accept(tx: Tx, event: Event, policy: FlushPolicy, *, now: int) -> Receipt:
    """Write one event; the same event again is a duplicate, whenever it comes."""
    known = _known(tx, event)
    if (event_key := known["event_key"]) is not None:
        return Receipt(status="duplicate", event_key=event_key, message_id=pending.by_key(tx, event_key))
    event_key = event.whole_key
    if _leaves_nothing(tx, event, policy, now, in_private_turn=bool(known["in_private_turn"])):
        return Receipt(status="skipped", event_key=event_key, reason="private")
    fallback = sessions.project_of(tx, event.session_id) if event.project.is_silent else None
    project = projects.resolve(tx, event.project, fallback=fallback, now=now)
    session = Session(
        session_id=event.session_id,
        project=project,
        platform=event.platform,
        cwd=event.project.folder,
        started_at_epoch=event.captured_at,
    )
    noise = event.noise or bool(known["was_read"])
    is_news = bool(event.text.strip()) if event.kind is Kind.PROMPT else event.kind is Kind.TOOL and not noise
    sessions.touch(tx, session, at=event.captured_at, is_news=is_news, now=now)
    match event.kind:
        case Kind.START:
            return Receipt(status="recorded", event_key=event_key)
        case Kind.PROMPT:
            return _accept_prompt(tx, event, event_key, project, now)
        case Kind.TOOL:
            message = _message(event, event_key, project, MessageType.OBSERVATION, noise=noise)
            message_id = pending.enqueue(tx, message, now=now)
            is_due = not noise and due.after_event(tx, event.session_id, policy, due_at=known["due_at"], now=now)
            return Receipt(status="queued", event_key=event_key, message_id=message_id, due=is_due)
        case Kind.SUMMARY:
            return _accept_summary(tx, event, event_key, project, policy, now)


def _leaves_nothing(tx: Tx, event: Event, policy: FlushPolicy, now: int, *, in_private_turn: bool) -> bool:
    """Whether the event is private, by itself or by its turn. A session's start and end say nothing and pass."""
    if event.kind is Kind.START or event.hook_event == "SessionEnd":
        return False
    if event.kind is not Kind.PROMPT:
        return event.private or in_private_turn
    due.after_prompt(tx, event.session_id, policy, at=event.captured_at, now=now)
    if not event.private:
        sessions.end_private_turn(tx, event.turn)
        return False
    until = sessions.open_private_turn(tx, event.turn)
    pending.forget_private(tx, event.session_id, event.client_prompt_id, at=event.captured_at, until=until, now=now)
    return True


def _accept_prompt(tx: Tx, event: Event, event_key: str, project: str, now: int) -> Receipt:
    if not event.text.strip():
        return Receipt(status="skipped", event_key=event_key, reason="ignored")
    sessions.add_prompt(tx, event.turn, event_key=event_key, project=project, text=event.text, now=now)
    return Receipt(status="recorded", event_key=event_key, due=True)


def _accept_summary(tx: Tx, event: Event, event_key: str, project: str, policy: FlushPolicy, now: int) -> Receipt:
    if event.hook_event == "SessionEnd":
        sessions.close(tx, event.session_id, at=event.captured_at)
    if not (sessions.take_new(tx, event.session_id) or _ends_a_turn(tx, event)):
        due.if_waiting(tx, event.session_id, at=event.captured_at, now=now)
        return Receipt(status="skipped", event_key=event_key, reason="ignored", due=True)
    message = _message(event, event_key, project, MessageType.SUMMARY, noise=False)
    message_id = pending.enqueue(tx, message, now=now)
    due.after_stop(tx, event.session_id, policy, now=now)
    return Receipt(status="queued", event_key=event_key, message_id=message_id, due=True)


def _ends_a_turn(tx: Tx, event: Event) -> bool:
    """Whether something was captured since the summary before: one that came late may have taken it as its own."""
    newest = pending.newest_until(tx, event.session_id, at=event.captured_at)
    after = newest["summary_at"]
    return newest["event_at"] > after or sessions.has_prompt_between(
        tx, event.session_id, after=after, until=event.captured_at
    )


def _message(event: Event, event_key: str, project: str, message_type: MessageType, *, noise: bool) -> NewMessage:
    return NewMessage(
        event_key=event_key,
        session_id=event.session_id,
        project=project,
        message_type=message_type,
        hook_event=event.hook_event,
        payload=event.payload,
        payload_bytes=event.payload_bytes,
        tokens=min(len(event.payload) // CHARACTERS_PER_TOKEN, EVENT_TOKENS),
        captured_at=event.captured_at,
        tool_name=event.tool_name,
        subject=event.subject,
        client_prompt_id=event.client_prompt_id,
        agent_id=event.agent_id,
        noise=noise,
    )


def _known(tx: Tx, event: Event) -> Row:
    """What is known of an event before it is written: `event_key`, not NULL if it or the same payload came before,
    `in_private_turn`, `was_read`, and when its session is due."""
    params = {
        "first_key": event.key_at(event.captured_at - SAME_PAYLOAD_MS),
        "last_key": event.key_at(event.captured_at + SAME_PAYLOAD_MS),
        "session_id": event.session_id,
        "client_prompt_id": event.client_prompt_id,
        "at": event.captured_at,
        "subject": event.subject,
    }
    return tx.all(KNOWN_PROMPT if event.kind is Kind.PROMPT else KNOWN_MESSAGE, params)[0]


def project_ref(payload: dict[str, Any], envelope: Envelope) -> ProjectRef:
    """What an event says of its project."""
    return ProjectRef(
        override=_name(envelope.project),
        key=envelope.project_key and clean_text(envelope.project_key)[:PATH_LIMIT],
        name=_name(envelope.project_name),
        folder=folders.local(clean_text(_text(payload, "cwd")))[:PATH_LIMIT],
    )


def _name(given: str | None) -> str | None:
    """Of a project; one that says nothing is none."""
    return (clean_text(given).strip()[:ID_LIMIT] or None) if given else None


def _kind(hook_event: str, payload: dict[str, Any]) -> Kind | None:
    if hook_event in TOOL_EVENTS:
        return Kind.TOOL
    if hook_event == "SubagentStop":
        return Kind.TOOL if _text(payload, "last_assistant_message").strip() else None
    if hook_event in SUMMARY_EVENTS:
        return Kind.SUMMARY
    return {"SessionStart": Kind.START, "UserPromptSubmit": Kind.PROMPT}.get(hook_event)


def _event_key(payload: dict[str, Any], hook_event: str, session_id: str, envelope: Envelope, shaped: Shaped) -> str:
    """The idempotency key (semantics: Identity). Ids come from the payload as sent, texts from the cleaned one: they
    are the same whether the event came over HTTP or, redacted, from the spool."""
    prompt_id, agent_id = _optional_id(payload, "prompt_id"), _optional_id(payload, "agent_id")
    if hook_event in TOOL_EVENTS and (tool_use_id := _optional_id(payload, "tool_use_id")):
        return _key(hook_event, session_id, tool_use_id)
    if hook_event == "UserPromptSubmit" and prompt_id:
        return _key(hook_event, session_id, prompt_id)
    if hook_event in ("Stop", "SubagentStop") and prompt_id:
        message = hashlib.sha256(_text(shaped.payload, "last_assistant_message").encode()).hexdigest()[:16]
        return _key(hook_event, session_id, prompt_id, agent_id or "-", message)
    if envelope.delivery:
        return _key(hook_event, session_id, f"delivery-{envelope.delivery}")
    return _key(hook_event, session_id, f"payload-{hashlib.sha256(shaped.encoded).hexdigest()[:32]}") + ":"


def _key(*parts: str) -> str:
    """Parts can't run into each other, and none can look like the end of a payload's hash."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F").replace(":", "%3A") for part in parts)


def _captured_at(payload: dict[str, Any], envelope: Envelope, now: int) -> int:
    for stamp in (envelope.captured_at, payload.get("timestamp")):
        at = epoch_ms(stamp)
        if at is not None and 0 < at <= now + FUTURE_MS:
            return at
    return now


def _id(payload: dict[str, Any], name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > ID_LIMIT:
        raise InvalidInput(f"{name} must be a string of 1 to {ID_LIMIT} characters", field=name)
    return clean_text(value)


def _optional_id(payload: dict[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return clean_text(value)[:ID_LIMIT] if isinstance(value, str) and value else None


def _text(payload: dict[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""
