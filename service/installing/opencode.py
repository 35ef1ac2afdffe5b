"""opencode: a plugin file of our own, which also tells it of the MCP server."""

import json
from importlib.resources import files as resources

from service.installing.program import Client, Machine, Program, SettingsFile

HOOK_MARK = '["HOOK"]'
SERVER_MARK = '["SERVER"]'
ENVIRONMENT_MARK = '{"ENVIRONMENT": ""}'


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    folder = machine.folder("XDG_CONFIG_HOME", ".config") / "opencode" / "plugins"
    plugin = _plugin(program)
    return [SettingsFile(path=folder / "gapless.js", install=lambda _: plugin, uninstall=lambda _: None)]


def _plugin(program: Program) -> str:
    text = resources(__package__).joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    values = {
        HOOK_MARK: program.hook(OPENCODE.name),
        SERVER_MARK: program.mcp,
        ENVIRONMENT_MARK: program.mcp_entry.get("env", {}),
    }
    for mark, value in values.items():
        text = text.replace(mark, json.dumps(value))
    return text


OPENCODE = Client(name="opencode", title="opencode", files=_files)
