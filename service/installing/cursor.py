"""Cursor: hooks in hooks.json, one flat list an event; the MCP server in mcp.json."""

from functools import partial

from service.installing import json_text
from service.installing.program import HOOK_SCRIPT, SERVER, Client, Machine, Program, SettingsFile

EVENTS = (
    "sessionStart",
    "beforeSubmitPrompt",
    "postToolUse",
    "postToolUseFailure",
    "subagentStop",
    "preCompact",
    "stop",
    "sessionEnd",
)
FORMAT = 1
"""The version of hooks.json; Cursor requires it."""
SERVER_PATH = ("mcpServers", SERVER)


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    folder = machine.home / ".cursor"
    return [
        SettingsFile(
            path=folder / "hooks.json",
            install=partial(_with_hooks, line=program.hook_line(CURSOR.name)),
            uninstall=_without_hooks,
        ),
        SettingsFile(
            path=folder / "mcp.json",
            install=partial(json_text.keep, path=SERVER_PATH, value=program.mcp_entry),
            uninstall=partial(json_text.remove, path=SERVER_PATH),
        ),
    ]


def _with_hooks(text: str, line: str) -> str:
    if [(event, command) for event, _, command in _ours(text)] == [(event, line) for event in EVENTS]:
        return text
    text = _without_hooks(text)
    if "version" not in json_text.parse(text):
        text = json_text.put(text, ("version",), FORMAT)
    for event in EVENTS:
        text = json_text.append(text, ("hooks", event), {"command": line})
    return text


def _without_hooks(text: str) -> str:
    for event, number, _ in reversed(_ours(text)):
        text = json_text.remove(text, ("hooks", event, number))
    return text


def _ours(text: str) -> list[tuple[str, int, str]]:
    """Event, position and command line of each hook of ours."""
    found = json_text.parse(text).get("hooks")
    return [
        (event, number, hook["command"])
        for event, hooks in (found.items() if isinstance(found, dict) else ())
        for number, hook in enumerate(hooks if isinstance(hooks, list) else ())
        if isinstance(hook, dict) and HOOK_SCRIPT in str(hook.get("command"))
    ]


CURSOR = Client(
    name="cursor",
    title="Cursor",
    files=_files,
    note="If Cursor also runs Claude Code's hooks (third-party hooks), one of the two is enough.",
)
