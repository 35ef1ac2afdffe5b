"""What other clients call our events, fields and tools: a table of adapters to the words of Claude Code.

Hooks use it before anything else looks at a payload, the service for payloads that came without a hook of ours; what is
in our words already stays as it is. Versions read: Codex CLI 0.171, Gemini CLI 0.61, Cursor 2.4, opencode 1.18.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Payload = dict[str, Any]

_GEMINI_EVENTS = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
    "PreCompress": "PreCompact",
}
_CURSOR_EVENTS = {
    "sessionStart": "SessionStart",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "afterShellExecution": "PostToolUse",
    "afterFileEdit": "PostToolUse",
    "afterMCPExecution": "PostToolUse",
    "subagentStop": "SubagentStop",
    "preCompact": "PreCompact",
    "stop": "Stop",
    "sessionEnd": "SessionEnd",
}
_TOOLS = {
    "run_shell_command": "Bash",
    "shell": "Bash",
    "Shell": "Bash",
    "bash": "Bash",
    "read_file": "Read",
    "read": "Read",
    "write_file": "Write",
    "write": "Write",
    "replace": "Edit",
    "edit": "Edit",
    "list_directory": "LS",
    "list": "LS",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "grep": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "webfetch": "WebFetch",
    "google_web_search": "WebSearch",
    "write_todos": "TodoWrite",
    "todowrite": "TodoWrite",
    "todoread": "TodoRead",
    "task": "Task",
}
_INPUT_FIELDS = {
    "absolute_path": "file_path",
    "filePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replaceAll": "replace_all",
}


def in_our_words(client: str, raw: bytes) -> bytes:
    """The payload's bytes; unchanged where the client uses our words or the bytes are no JSON object."""
    if client not in ADAPTERS:
        return raw
    import json

    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    return json.dumps(translated(client, payload)).encode("ascii") if isinstance(payload, dict) else raw


def translated(client: str, payload: Payload) -> Payload:
    """A payload of any client in our words."""
    adapter = ADAPTERS.get(client)
    return payload if adapter is None else adapter(payload)


def context_answer(client: str, event: str, context: str) -> Payload:
    """The object by which a hook of this client adds text to what the model reads. `event` is in our words."""
    if client == "cursor":
        return {"additional_context": context}
    theirs = {ours: name for name, ours in _GEMINI_EVENTS.items()} if client == "gemini" else {}
    return {"hookSpecificOutput": {"hookEventName": theirs.get(event, event), "additionalContext": context}}


def _codex(payload: Payload) -> Payload:
    ours = _with(payload, prompt_id=payload.get("turn_id"))
    given = payload.get("tool_input")
    if payload.get("tool_name") == "apply_patch" and isinstance(given, dict) and "command" in given:
        ours["tool_input"] = {"patch": given["command"]}
    return ours


def _gemini(payload: Payload) -> Payload:
    event = _GEMINI_EVENTS.get(_text(payload, "hook_event_name"))
    if event is None:
        return payload
    if event == "Stop":
        return _with(payload, hook_event_name=event, last_assistant_message=payload.get("prompt_response"))
    response = payload.get("tool_response")
    if not isinstance(response, dict) or "llmContent" not in response:
        return _with_tool({**payload, "hook_event_name": event})
    if response.get("error"):
        error = _said(response["error"]) or _said(response["llmContent"])
        return _with_tool({**payload, "hook_event_name": "PostToolUseFailure", "error": error})
    return _with_tool({**payload, "hook_event_name": event, "tool_response": {"content": response["llmContent"]}})


def _cursor(payload: Payload) -> Payload:
    theirs = _text(payload, "hook_event_name")
    roots = payload.get("workspace_roots")
    ours = _with(
        {**payload, "hook_event_name": _CURSOR_EVENTS.get(theirs, theirs)},
        session_id=payload.get("conversation_id"),
        prompt_id=payload.get("generation_id"),
        cwd=_folder(roots[0]) if isinstance(roots, list) and roots else None,
        tool_response=_parsed(payload.get("tool_output")),
        error=payload.get("error_message"),
        last_assistant_message=payload.get("summary") or payload.get("result"),
    )
    if theirs == "afterShellExecution":
        ours = _with(
            ours,
            tool_name="Bash",
            tool_input={"command": payload.get("command")},
            tool_response={"stdout": payload.get("output")},
        )
    elif theirs == "afterFileEdit":
        ours = _with(ours, tool_name="MultiEdit", tool_input=_only(payload, "file_path", "edits"), tool_response="")
    elif theirs == "afterMCPExecution":
        ours = _with(
            {**ours, "tool_input": _parsed(payload.get("tool_input"))}, tool_response=payload.get("result_json")
        )
    return _with_tool(ours)


def _opencode(payload: Payload) -> Payload:
    """Our plugin for it speaks in our events; the tools are its own."""
    return _with_tool(payload)


ADAPTERS: dict[str, Callable[[Payload], Payload]] = {
    "codex": _codex,
    "gemini": _gemini,
    "cursor": _cursor,
    "opencode": _opencode,
}


def _with(payload: Payload, **fields: Any) -> Payload:
    """With fields that have a value; one that the payload has already stays."""
    found = {name: value for name, value in fields.items() if value is not None}
    fixed = {name: payload[name] for name in found if payload.get(name) and name != "hook_event_name"}
    return {**payload, **found, **fixed}


def _with_tool(payload: Payload) -> Payload:
    name = payload.get("tool_name")
    if not isinstance(name, str):
        return payload
    given = payload.get("tool_input")
    if isinstance(given, dict):
        given = {_INPUT_FIELDS.get(field, field): value for field, value in given.items()}
    return {**payload, "tool_name": _tool(name), "tool_input": given}


def _tool(name: str) -> str:
    """Also of our own MCP server, so that memory never remembers itself."""
    for prefix in ("mcp_gapless_", "gapless_"):
        if name.startswith(prefix):
            return f"mcp__gapless__{name[len(prefix) :].lstrip('_')}"
    return _TOOLS.get(name, name)


def _folder(root: Any) -> str | None:
    """`c:/work` for the `/c:/work` of a Windows workspace."""
    if not isinstance(root, str):
        return None
    return root[1:] if root[:1] == "/" and root[2:3] == ":" else root


def _only(payload: Payload, *names: str) -> Payload:
    return {name: payload[name] for name in names if name in payload}


def _parsed(text: Any) -> Any:
    import json

    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return _text(value, "message")
    return value if isinstance(value, str) else ""


def _text(source: Payload, name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""
