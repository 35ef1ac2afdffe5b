"""Cursor: hooks in hooks.json, one flat list an event; the MCP server in mcp.json."""

from functools import partial
from itertools import pairwise

from service.installing import json_text, plain_json, servers
from service.installing.program import Client, Machine, Program, SettingsFile

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


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    folder = machine.home / ".cursor"
    return [
        plain_json.settings_file(
            folder / "hooks.json",
            install=partial(_with_hooks, program=program),
            uninstall=partial(_without_hooks, program=program),
        ),
        plain_json.settings_file(
            folder / "mcp.json",
            install=partial(servers.install, program=program),
            uninstall=partial(servers.uninstall, program=program),
        ),
    ]


def _with_hooks(text: str, program: Program) -> str:
    line = program.hook_line(CURSOR.name)
    if [(event, command) for event, _, command in _ours(text, program)] == [(event, line) for event in EVENTS]:
        return text
    text = _without_hooks(text, program)
    for event in EVENTS:
        text = json_text.append(text, ("hooks", event), {"command": line})
    return text if "version" in json_text.parse(text) else json_text.put(text, ("version",), FORMAT)


def _without_hooks(text: str, program: Program) -> str:
    """A version that stands right behind hooks which are all ours was put there with them, and goes with them."""
    names = list(json_text.parse(text))
    for event, number, _ in reversed(_ours(text, program)):
        text = json_text.remove(text, ("hooks", event, number))
    came_with_hooks = ("hooks", "version") in pairwise(names) and "hooks" not in json_text.parse(text)
    return json_text.remove(text, ("version",)) if came_with_hooks else text


def _ours(text: str, program: Program) -> list[tuple[str, int, str]]:
    """Event, position and command line of each hook of ours."""
    found = json_text.parse(text).get("hooks")
    return [
        (event, number, hook["command"])
        for event, hooks in (found.items() if isinstance(found, dict) else ())
        for number, hook in enumerate(hooks if isinstance(hooks, list) else ())
        if program.owns_hook(hook)
    ]


CURSOR = Client(
    name="cursor",
    title="Cursor",
    files=_files,
    note="If Cursor also runs Claude Code's hooks (third-party hooks), one of the two is enough.",
)
