"""Gemini CLI: hooks and the MCP server in one settings.json. Its time limits are in milliseconds."""

from typing import Any

from service.installing import groups, json_text
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
        return json_text.keep(groups.install(text, wanted), ("mcpServers", SERVER), program.mcp_entry)

    def uninstall(text: str) -> str:
        return json_text.remove(groups.uninstall(text), ("mcpServers", SERVER))

    folder = machine.folder("GEMINI_CLI_HOME", ".") / ".gemini"
    return [SettingsFile(path=folder / "settings.json", install=install, uninstall=uninstall)]


GEMINI = Client(name="gemini", title="Gemini CLI", files=_files)
