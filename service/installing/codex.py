"""Codex CLI: hooks in hooks.json, the MCP server in config.toml, both in CODEX_HOME."""

import json
import re
import tomllib
from functools import partial
from typing import Any

from service.errors import InvalidInput
from service.installing import groups
from service.installing.program import SERVER, Client, Machine, Program, SettingsFile

TIMEOUTS_S = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "PostToolUse": 10,
    "SubagentStop": 5,
    "PreCompact": 5,
    "Stop": 5,
    "SessionEnd": 5,
}
TABLE = re.compile(
    rf"(?:(?<=\n)\n)?^[ \t]*\[mcp_servers\.{SERVER}(?:\.[^\]\n]*)?\][^\n]*(?:\n[^\[\s#][^\n]*)*(?:\n|\Z)", re.MULTILINE
)
"""Our table and those below it, each up to an empty line, a comment or a header; with the empty line before it."""


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    folder = machine.folder("CODEX_HOME", ".codex")
    line = program.hook_line(CODEX.name)
    wanted: dict[str, dict[str, Any]] = {
        event: {"hooks": [{"type": "command", "command": line, "timeout": limit}]}
        for event, limit in TIMEOUTS_S.items()
    }
    return [
        SettingsFile(
            path=folder / "hooks.json", install=partial(groups.install, wanted=wanted), uninstall=groups.uninstall
        ),
        SettingsFile(
            path=folder / "config.toml", install=partial(_with_server, program=program), uninstall=_without_server
        ),
    ]


def _with_server(text: str, program: Program) -> str:
    """The table is added at the end: comments and the order of everything else stay."""
    entry = program.mcp_entry
    if _servers(text).get(SERVER) == entry:
        return text
    rest = _without_server(text)
    lines = [f"[mcp_servers.{SERVER}]", *(f"{name} = {_written(entry[name])}" for name in ("command", "args"))]
    if "env" in entry:
        lines.append(f"env = {{ GAPLESS_HOME = {_written(entry['env']['GAPLESS_HOME'])} }}")
    gap = "" if not rest else "\n" if rest.endswith("\n") else "\n\n"
    new = f"{rest}{gap}{chr(10).join(lines)}\n"
    if _servers(new).get(SERVER) != entry:
        raise InvalidInput(f"`mcp_servers` is written in a way that can't be added to; add there: {lines}")
    return new


def _without_server(text: str) -> str:
    if SERVER not in _servers(text):
        return text
    new = TABLE.sub("", text)
    if SERVER in _servers(new):
        raise InvalidInput(f"`mcp_servers.{SERVER}` is not a table of its own there; take it out by hand")
    return new


def _servers(text: str) -> dict[str, Any]:
    servers = _parsed(text).get("mcp_servers")
    return servers if isinstance(servers, dict) else {}


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"it is not valid TOML ({error}); correct it first, nothing was changed") from None


def _written(value: Any) -> str:
    """JSON's strings and lists of them are TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


CODEX = Client(
    name="codex",
    title="Codex CLI",
    files=_files,
    note="Codex runs a new hook only after you have trusted it: open `/hooks` in Codex once.",
)
