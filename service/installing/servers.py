"""Our MCP server among a client's: one entry for each data folder, the first under the plain name."""

import re
from itertools import chain, count
from typing import Any

from service.installing import json_text
from service.installing.program import SERVER, Program

SERVERS = "mcpServers"
NAME = re.compile(rf"{SERVER}(_\d+)?")


def name_for(servers: dict[str, Any], program: Program) -> str:
    """The name under which the data folder's server is there, else the first that is free."""
    ours = (name for name, entry in servers.items() if NAME.fullmatch(name) and program.owns_server(entry))
    names = chain([SERVER], (f"{SERVER}_{number}" for number in count(2)))
    return next(chain(ours, (name for name in names if name not in servers)))


def install(text: str, program: Program, **more: str) -> str:
    """`more` are members that a client wants in the entry besides the usual ones."""
    return json_text.keep(text, _path(text, program), {**more, **program.mcp_entry})


def uninstall(text: str, program: Program) -> str:
    return json_text.remove(text, _path(text, program))


def _path(text: str, program: Program) -> json_text.Path:
    servers = json_text.parse(text).get(SERVERS)
    return (SERVERS, name_for(servers if isinstance(servers, dict) else {}, program))
