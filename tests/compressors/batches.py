"""Builders of messages, prompts and batches with unremarkable values."""

from typing import Any

from service.models import Batch, Message, MessageType, Observation, Prompt, Session

API_KEY = "test-key-0123456789"


def make_message(message_id: int = 1, **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "message_id": message_id,
        "event_key": f"key-{message_id}",
        "session_id": "s-1",
        "project": "demo",
        "message_type": MessageType.OBSERVATION,
        "hook_event": "PostToolUse",
        "tool_name": "Bash",
        "client_prompt_id": None,
        "agent_id": None,
        "payload": {"tool_input": {"command": "make test"}, "tool_response": {"stdout": "3 passed"}},
        "captured_at_epoch": 1_000 * message_id,
        "attempts": 0,
        "crashes": 0,
        "claim_no": 1,
    }
    return Message(**fields | changes)


def make_stop(message_id: int = 9, words: str = "All tests pass now.") -> Message:
    return make_message(
        message_id,
        message_type=MessageType.SUMMARY,
        hook_event="Stop",
        tool_name=None,
        payload={"last_assistant_message": words},
    )


def make_prompt(text: str = "make the tests pass", **changes: Any) -> Prompt:
    fields: dict[str, Any] = {
        "prompt_id": 1,
        "session_id": "s-1",
        "prompt_number": 1,
        "client_prompt_id": None,
        "text": text,
        "created_at_epoch": 500,
    }
    return Prompt(**fields | changes)


def make_batch(*messages: Message, prompts: tuple[Prompt, ...] = (), earlier: tuple[Observation, ...] = ()) -> Batch:
    session = Session(session_id="s-1", project="demo", platform="claude-code", cwd="/repo", started_at_epoch=0)
    return Batch(session=session, messages=messages or (make_message(),), prompts=prompts, earlier=earlier)
