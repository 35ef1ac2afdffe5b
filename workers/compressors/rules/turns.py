"""A batch as turns: what happened between one prompt of the user and the next."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from service.models import Batch, Message, Prompt
from workers.compressors.rules.payload import record, size_of, string, text_of

CHARS_PER_TOKEN = 4  # mission.md, H2

_CANONICAL_TOOL = {
    "replace": "Edit",
    "edit_file": "Edit",
    "edit": "Edit",
    "str_replace_editor": "Edit",
    "write_file": "Write",
    "write": "Write",
    "create_file": "Write",
    "read_file": "Read",
    "read": "Read",
    "run_shell_command": "Bash",
    "shell": "Bash",
    "bash": "Bash",
    "exec_command": "Bash",
    "local_shell": "Bash",
    "Agent": "Task",
    "google_web_search": "WebSearch",
    "web_search": "WebSearch",
    "web_fetch": "WebFetch",
    "grep": "Grep",
    "search_file_content": "Grep",
}
"""Names that other clients give to the same tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One finished tool call. `error` is the client's word for why it failed, empty when it did not."""

    message_id: int
    tool: str
    input: dict[str, Any]
    response: Any
    error: str
    cwd: str
    tokens: int

    @property
    def output(self) -> str:
        return self.error or text_of(self.response)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something an agent said at the end of its work."""

    message_id: int
    text: str
    agent_id: str
    tokens: int


@dataclass(slots=True, kw_only=True)
class Turn:
    """Everything between two prompts, in order. `closings` are the session's own stops, `reports` its subagents'."""

    prompt: Prompt | None
    uses: list[ToolUse] = field(default_factory=list)
    reports: list[Said] = field(default_factory=list)
    closings: list[Said] = field(default_factory=list)

    def named(self, *tools: str) -> Iterable[ToolUse]:
        return (use for use in self.uses if use.tool in tools)

    @property
    def last_message(self) -> str:
        """What the agent said last at a stop of this turn; empty when it never stopped."""
        return next((said.text for said in reversed(self.closings) if said.text.strip()), "")


def turns_of(batch: Batch) -> list[Turn]:
    """The batch's turns in order. A message belongs to the prompt whose client id it carries, else to the newest
    prompt at or before its captured time."""
    prompts = sorted(batch.prompts, key=lambda prompt: (prompt.created_at_epoch, prompt.prompt_number))
    times = [prompt.created_at_epoch for prompt in prompts]
    by_client_id = {p.client_prompt_id: i for i, p in enumerate(prompts) if p.client_prompt_id}
    turns: dict[int, Turn] = {}
    for message in batch.messages:
        latest = bisect_right(times, message.captured_at_epoch) - 1
        index = by_client_id.get(message.client_prompt_id or "", latest)
        turn = turns.setdefault(index, Turn(prompt=prompts[index] if index >= 0 else None))
        _add(turn, message)
    return [turns[index] for index in sorted(turns)]


def _add(turn: Turn, message: Message) -> None:
    payload = record(message.payload)
    if message.hook_event in {"PostToolUse", "PostToolUseFailure"}:
        turn.uses.append(_tool_use(message, payload))
        return
    text = string(payload, "last_assistant_message")
    said = Said(
        message_id=message.message_id,
        text=text,
        agent_id=message.agent_id or string(payload, "agent_id"),
        tokens=len(text) // CHARS_PER_TOKEN,
    )
    (turn.reports if message.hook_event == "SubagentStop" else turn.closings).append(said)


def _tool_use(message: Message, payload: dict[str, Any]) -> ToolUse:
    name = message.tool_name or string(payload, "tool_name")
    failed = message.hook_event == "PostToolUseFailure"
    tool_input, response = payload.get("tool_input"), payload.get("tool_response")
    return ToolUse(
        message_id=message.message_id,
        tool=_CANONICAL_TOOL.get(name, name),
        input=tool_input if isinstance(tool_input, dict) else {"input": tool_input},
        response=response,
        error=(text_of(payload.get("error")) or text_of(response) or "failed") if failed else "",
        cwd=string(payload, "cwd"),
        tokens=(size_of(tool_input) + size_of(response)) // CHARS_PER_TOKEN,
    )
