"""Gemini CLI: hooks and the MCP server in one settings.json, with comments. Its time limits are in milliseconds."""

from typing import Any

from service.installing import groups, servers
from service.installing.program import SERVER, Client, Machine, Program, SettingsFile

TIMEOUTS_MS = {
    "SessionStart": 10_000,
    "BeforeAgent": 5_000,
    "AfterTool": 10_000,
    "PreCompress": 5_000,
    "AfterAgent": 5_000,
    "SessionEnd": 5_000,
}


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    line = program.hook_line(GEMINI.name)
    wanted: dict[str, dict[str, Any]] = {
        event: {"hooks": [{"name": SERVER, "type": "command", "command": line, "timeout": limit}]}
        for event, limit in TIMEOUTS_MS.items()
    }

    def install(text: str) -> str:
        return servers.install(groups.install(text, program, wanted), program)

    def uninstall(text: str) -> str:
        return servers.uninstall(groups.uninstall(text, program), program)

    folder = machine.folder("GEMINI_CLI_HOME", ".") / ".gemini"
    return [SettingsFile(path=folder / "settings.json", install=install, uninstall=uninstall)]


GEMINI = Client(name="gemini", title="Gemini CLI", files=_files)
