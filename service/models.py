"""Records that travel between the stages. Times are integer milliseconds since the epoch, in UTC."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class MessageType(StrEnum):
    OBSERVATION = "observation"
    SUMMARY = "summary"


class MessageState(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class ObservationType(StrEnum):
    DECISION = "decision"
    BUGFIX = "bugfix"
    FEATURE = "feature"
    REFACTOR = "refactor"
    DISCOVERY = "discovery"
    CHANGE = "change"


class Layer(StrEnum):
    """How long and how widely a memory holds (mission I1)."""

    IDENTITY = "L1"
    PROJECT = "L2"
    SESSION = "L3"
    TRANSIENT = "L4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One client session; `session_id` is the client's own."""

    session_id: str
    project: str
    platform: str
    cwd: str
    started_at_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What the user said, in order: `prompt_number` counts from 1 within the session."""

    prompt_id: int
    session_id: str
    prompt_number: int
    client_prompt_id: str | None
    text: str
    created_at_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One row of `pending_messages` as its claimer sees it. `payload` is the cleaned hook payload
    (`hook_event_name`, `tool_name`, `tool_input`, `tool_response`, `error`, `last_assistant_message`, …)."""

    message_id: int
    event_key: str
    session_id: str
    project: str
    message_type: MessageType
    hook_event: str
    tool_name: str | None
    client_prompt_id: str | None
    agent_id: str | None
    payload: dict[str, Any]
    captured_at_epoch: int
    attempts: int
    crashes: int
    claim_no: int
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A stored observation."""

    observation_id: int
    session_id: str | None
    project: str
    type: str
    title: str
    subtitle: str
    narrative: str
    facts: tuple[str, ...]
    concepts: tuple[str, ...]
    files_read: tuple[str, ...]
    files_modified: tuple[str, ...]
    created_at_epoch: int
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one compression sees: everything it may use, all of it read from stored rows.

    `messages` are the claimed ones in the session's order (captured time, then id), at least one. `prompts` are the
    session's prompts from the one in force at the first message up to the last message. `earlier` are the newest
    observations of the same session stored before, oldest first (at most 20).
    """

    session: Session
    messages: tuple[Message, ...]
    prompts: tuple[Prompt, ...] = ()
    earlier: tuple[Observation, ...] = ()

    @property
    def wants_summary(self) -> bool:
        return any(m.message_type is MessageType.SUMMARY for m in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationDraft:
    """An observation before it has an id. `message_ids` are the messages of the batch that it came from, at least one.
    `created_at_epoch` is not here: the store takes it from the newest of those messages."""

    type: str
    title: str
    message_ids: tuple[int, ...]
    subtitle: str = ""
    narrative: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    discovery_tokens: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """A session summary before it has an id; every field may be empty, but not all of them."""

    message_ids: tuple[int, ...]
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    files_read: tuple[str, ...] = ()
    files_edited: tuple[str, ...] = ()
    notes: str = ""
    discovery_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a compression spent at a provider; all zero for the rules."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """A valid answer. No observation and no summary means: nothing worth recording."""

    observations: tuple[ObservationDraft, ...] = ()
    summary: SummaryDraft | None = None
    usage: Usage = field(default_factory=Usage)
