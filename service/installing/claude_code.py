"""Claude Code: hooks in settings.json, the MCP server in .claude.json; neither, as far as our plugin brings them."""

from functools import partial
from pathlib import Path
from typing import Any

from service.errors import InvalidInput
from service.installing import files, groups, json_text, plain_json, servers
from service.installing.program import SERVER, Client, Machine, Program, SettingsFile

TIMEOUTS_S = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "PostToolUse": 10,
    "PostToolUseFailure": 10,
    "SubagentStop": 5,
    "PreCompact": 5,
    "Stop": 5,
    "SessionEnd": 5,
}
"""Every event that becomes something, with what its hook may take at worst; tool events carry whole files."""
FILE_MEMORY = ("PreToolUse", "Read|Edit|MultiEdit", 5)
"""Event, matcher and seconds of what is known about a file, told before it is opened."""


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    folder = machine.folder("CLAUDE_CONFIG_DIR", ".claude")
    own = machine.environment.get("CLAUDE_CONFIG_DIR")
    has_plugin = _has_plugin(folder / "settings.json")
    wanted = _wanted(program, machine, has_plugin=has_plugin)
    without_server = partial(servers.uninstall, program=program)
    return [
        plain_json.settings_file(
            folder / "settings.json",
            install=partial(groups.install, program=program, wanted=wanted),
            uninstall=partial(groups.uninstall, program=program),
        ),
        plain_json.settings_file(
            (folder if own else machine.home) / ".claude.json",
            install=without_server if has_plugin else partial(servers.install, program=program, type="stdio"),
            uninstall=without_server,
        ),
    ]


def _wanted(program: Program, machine: Machine, *, has_plugin: bool) -> dict[str, dict[str, Any]]:
    line = program.hook_line(CLAUDE_CODE.name)
    wanted: dict[str, dict[str, Any]] = (
        {} if has_plugin else {event: {"hooks": [_hook(line, limit)]} for event, limit in TIMEOUTS_S.items()}
    )
    if machine.file_memory:
        event, matcher, limit = FILE_MEMORY
        wanted[event] = {"matcher": matcher, "hooks": [_hook(line, limit)]}
    return wanted


def _hook(line: str, limit_s: int) -> dict[str, Any]:
    return {"type": "command", "command": line, "timeout": limit_s}


def _has_plugin(settings: Path) -> bool:
    try:
        enabled = json_text.parse(files.read(settings)).get("enabledPlugins")
    except InvalidInput:  # whoever changes the file says so
        return False
    return isinstance(enabled, dict) and any(on and name.startswith(f"{SERVER}@") for name, on in enabled.items())


CLAUDE_CODE = Client(name="claude-code", title="Claude Code", files=_files)
