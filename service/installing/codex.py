"""Codex CLI: hooks in hooks.json, the MCP server in config.toml, both in CODEX_HOME."""

import json
import re
import tomllib
from functools import partial
from itertools import groupby, pairwise
from typing import Any

from service.errors import InvalidInput
from service.installing import groups, plain_json, servers
from service.installing.program import Client, Machine, Program, SettingsFile

TIMEOUTS_S = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "PostToolUse": 10,
    "SubagentStop": 5,
    "PreCompact": 5,
    "Stop": 5,
    "SessionEnd": 5,
}
SERVERS = "mcp_servers"
HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    folder = machine.folder("CODEX_HOME", ".codex")
    line = program.hook_line(CODEX.name)
    wanted: dict[str, dict[str, Any]] = {
        event: {"hooks": [{"type": "command", "command": line, "timeout": limit}]}
        for event, limit in TIMEOUTS_S.items()
    }
    return [
        plain_json.settings_file(
            folder / "hooks.json",
            install=partial(groups.install, program=program, wanted=wanted),
            uninstall=partial(groups.uninstall, program=program),
        ),
        SettingsFile(
            path=folder / "config.toml",
            install=partial(_with_server, program=program),
            uninstall=partial(_without_server, program=program),
        ),
    ]


def _with_server(text: str, program: Program) -> str:
    """The table is added at the end: comments and the order of everything else stay."""
    entry, present = program.mcp_entry, _servers(_parsed(text))
    name = servers.name_for(present, program)
    if present.get(name) == entry:
        return text
    rest = _without_server(text, program)
    lines = [f"[mcp_servers.{name}]", *(f"{key} = {_written(entry[key])}" for key in ("command", "args"))]
    if "env" in entry:
        lines.append(f"env = {{ GAPLESS_HOME = {_written(entry['env']['GAPLESS_HOME'])} }}")
    table = "\n".join(lines)
    new = f"{rest}\n{table}\n" if rest else f"{table}\n"
    if not _differs_in_servers(text, new, {**present, name: entry}):
        raise InvalidInput(
            f"`mcp_servers` is written in a way that can't be added to; nothing was changed, add by hand:\n{table}"
        )
    return new


def _without_server(text: str, program: Program) -> str:
    present = _servers(_parsed(text))
    name = servers.name_for(present, program)
    if name not in present:
        return text
    new = _without_tables(text, name)
    if not _differs_in_servers(text, new, {other: entry for other, entry in present.items() if other != name}):
        raise InvalidInput(f"`mcp_servers.{name}` is no table of its own; nothing was changed, take it out by hand")
    return new


def _without_tables(text: str, name: str) -> str:
    """Without the server's table and those below it; with the comments after them, and without the line before."""
    starts = [found.start() for found in HEADER.finditer(text) if _is_toml(text[: found.start()])]
    first, *tables = (text[start:end] for start, end in pairwise([0, *starts, len(text)]))
    kept = [first]
    for is_ours, run in groupby(tables, key=partial(_is_below, name=name)):
        lines = "".join(run)
        if not is_ours:
            kept.append(lines)
            continue
        follows = _comments_after(lines)
        is_last = text.endswith(lines) and not follows
        if is_last or kept[-1].endswith(("\n\n", "\n\r\n")):
            kept[-1] = re.sub(r"\r?\n\Z", "", kept[-1])
        kept.append(follows)
    return "".join(kept)


def _is_below(table: str, name: str) -> bool:
    """Whether it is the server's own table or one in that, by its header."""
    header = tomllib.loads(table.partition("\n")[0].strip())
    return name in _servers(header)


def _comments_after(table: str) -> str:
    """The comments and empty lines below its last key: they belong to what follows."""
    lines = re.split(r"(?<=\n)", table)
    last = max(number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
    return "".join(lines[last + 1 :])


def _differs_in_servers(text: str, new: str, expected: dict[str, Any]) -> bool:
    """Whether the new text says what the old one does, but for these servers."""
    return _is_toml(new) and {**_parsed(new), SERVERS: _servers(_parsed(new))} == {**_parsed(text), SERVERS: expected}


def _servers(document: dict[str, Any]) -> dict[str, Any]:
    found = document.get(SERVERS)
    return found if isinstance(found, dict) else {}


def _is_toml(text: str) -> bool:
    try:
        _parsed(text)
    except InvalidInput:
        return False
    return True


def _parsed(text: str) -> dict[str, Any]:
    """Fractions as they are written: what is no number would not even equal itself."""
    try:
        return tomllib.loads(text, parse_float=str)
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
