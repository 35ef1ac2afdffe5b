"""opencode: a plugin file of our own, which also tells it of the MCP server."""

import json
import re
from importlib.resources import files as resources
from typing import Any

from service.errors import InvalidInput
from service.installing import files, json_text, servers
from service.installing.program import SERVER, Client, Machine, Program, SettingsFile

FIRST_LINE = "// Gapless for opencode"
ENVIRONMENT = re.compile(r"^const environment = (\{.*\})$", re.MULTILINE)
NAME_MARK = '"NAME"'
HOOK_MARK = '["HOOK"]'
SERVER_MARK = '["SERVER"]'
ENVIRONMENT_MARK = '{"ENVIRONMENT": ""}'


def _files(machine: Machine, program: Program) -> list[SettingsFile]:
    folder = machine.folder("XDG_CONFIG_HOME", ".config") / "opencode" / "plugins"
    plugins = [path for path in folder.glob(f"{SERVER}*.js") if servers.NAME.fullmatch(path.stem)]
    name = servers.name_for({path.stem: _entry(files.read(path)) for path in plugins}, program)
    plugin = _plugin(program, name)

    def install(text: str) -> str:
        if text and not text.startswith(FIRST_LINE):
            raise InvalidInput("it is no plugin of Gapless; rename it first, nothing was changed")
        return plugin

    def uninstall(text: str) -> str:
        return "" if text.startswith(FIRST_LINE) else text

    return [SettingsFile(path=folder / f"{name}.js", install=install, uninstall=uninstall)]


def _entry(plugin: str) -> dict[str, Any]:
    """What tells whose plugin it is, as an entry of MCP servers has it."""
    found = ENVIRONMENT.search(plugin)
    return {"env": json_text.parse(found[1])} if found else {}


def _plugin(program: Program, name: str) -> str:
    text = resources(__package__).joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    values = {
        NAME_MARK: name,
        HOOK_MARK: program.hook(OPENCODE.name),
        SERVER_MARK: program.mcp,
        ENVIRONMENT_MARK: program.mcp_entry.get("env", {}),
    }
    for mark, value in values.items():
        text = text.replace(mark, json.dumps(value))
    return text


OPENCODE = Client(name="opencode", title="opencode", files=_files)
