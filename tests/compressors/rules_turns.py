"""Builders of tool calls as the client reports them, and the rules' answer to them."""

from typing import Any

from service.models import Compressed, Message, Observation, Prompt
from tests.compressors.batches import make_batch, make_message
from workers.compressors.rules.compressor import compress


def bash(message_id: int, command: str, stdout: str = "") -> Message:
    payload = {"tool_input": {"command": command}, "tool_response": {"stdout": stdout, "stderr": ""}}
    return make_message(message_id, payload=payload)


def failed(message_id: int, command: str, error: str, tool: str = "Bash") -> Message:
    payload = {"tool_input": {"command": command}, "error": error}
    return make_message(message_id, hook_event="PostToolUseFailure", tool_name=tool, payload=payload)


def edit(message_id: int, path: str, old: str, new: str) -> Message:
    asked = {"file_path": path, "old_string": old, "new_string": new}
    return make_message(
        message_id, tool_name="Edit", payload={"tool_input": asked, "tool_response": {"filePath": path}}
    )


def write(message_id: int, path: str, content: str) -> Message:
    answered = {"type": "create", "filePath": path, "structuredPatch": []}
    asked = {"file_path": path, "content": content}
    return make_message(message_id, tool_name="Write", payload={"tool_input": asked, "tool_response": answered})


def tool(message_id: int, name: str, asked: Any, answered: Any) -> Message:
    return make_message(message_id, tool_name=name, payload={"tool_input": asked, "tool_response": answered})


def report(message_id: int, text: str, agent_id: str = "a1") -> Message:
    payload = {"agent_id": agent_id, "last_assistant_message": text}
    return make_message(message_id, hook_event="SubagentStop", tool_name=None, agent_id=agent_id, payload=payload)


def rules(*messages: Message, prompts: tuple[Prompt, ...] = (), earlier: tuple[Observation, ...] = ()) -> Compressed:
    return compress(make_batch(*messages, prompts=prompts, earlier=earlier))
