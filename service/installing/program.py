"""What a client is told to run, and where its own files are."""

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hooks.command import hook_arguments

HOOK_SCRIPT = "gapless_hook.py"
"""What tells a hook entry of ours from anybody else's."""
SERVER = "gapless"
"""The name of our MCP server in clients' settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`data_folder` is empty when it is the usual one."""

    data_folder: str = ""

    def hook(self, client: str) -> list[str]:
        return hook_arguments(client, home=self.data_folder, start_service=True)

    def hook_line(self, client: str) -> str:
        return shlex.join(self.hook(client))

    @property
    def mcp(self) -> list[str]:
        return [sys.executable, "-I", "-m", "service.cli", "mcp"]

    @property
    def mcp_entry(self) -> dict[str, Any]:
        """The server as most clients write it."""
        command, *arguments = self.mcp
        entry: dict[str, Any] = {"command": command, "args": arguments}
        return entry | ({"env": {"GAPLESS_HOME": self.data_folder}} if self.data_folder else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where clients keep their settings on this account. `file_memory`: the setting FILE_INJECT is on."""

    home: Path
    environment: Mapping[str, str]
    file_memory: bool = False

    def folder(self, variable: str, usual: str) -> Path:
        """The folder that a variable names, else one below the home folder."""
        named = self.environment.get(variable)
        return Path(named).expanduser() if named else self.home / usual


Change = Callable[[str], str | None]
"""From a file's text, "" where there is no file, to what it shall be; None: no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    path: Path
    install: Change
    uninstall: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """`name` as `--client` takes it. `note` is what a person still has to do or know."""

    name: str
    title: str
    files: Callable[[Machine, Program], list[SettingsFile]]
    note: str = ""
