"""What a client is told to run, and where its own files are."""

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from hooks.command import hook_arguments

HOOK_SCRIPT = "gapless_hook.py"
"""The file whose run tells a hook entry of ours from anybody else's."""
SERVER = "gapless"
"""The name of our MCP server in clients' settings; that of a second data folder adds a number."""


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

    def owns_hook(self, entry: Any) -> bool:
        """Whether a client's hook entry runs our script for this data folder."""
        words = _words(entry)
        runs_hook = any(PurePath(word).name == HOOK_SCRIPT for word in words)
        return runs_hook and _data_folder(words) == self.data_folder

    def owns_server(self, entry: Any) -> bool:
        """Whether an MCP server of our name is this data folder's."""
        environment = entry.get("env") if isinstance(entry, dict) else None
        named = environment.get("GAPLESS_HOME") if isinstance(environment, dict) else None
        return (named or "") == self.data_folder


def _data_folder(words: list[str]) -> str:
    """What a hook's command line names, in any of the ways that the hook reads."""
    for word, following in pairwise([*words, ""]):
        if word == "--home":
            return following
        if word.startswith(("--home=", "GAPLESS_HOME=")):
            return word.partition("=")[2]
    return ""


def _words(entry: Any) -> list[str]:
    """Program and arguments of a hook entry, be they one line for a shell or a list; [] when it has none."""
    command, arguments = (entry.get("command"), entry.get("args")) if isinstance(entry, dict) else (None, None)
    if not isinstance(command, str):
        return []
    if isinstance(arguments, list):
        return [command, *(argument for argument in arguments if isinstance(argument, str))]
    try:
        return shlex.split(command)
    except ValueError:  # no shell runs it either
        return []


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


Change = Callable[[str], str]
"""From a file's text to what it shall be; "" stands for no file on both sides."""


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
