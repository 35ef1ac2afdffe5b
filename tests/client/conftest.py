"""An account of its own: a home folder whose name is no easy one, and a data folder in it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command_line import Command, Outcome
from tests.cli.conftest import command

__all__ = ["account", "command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    home: Path
    data: Path
    gapless: Callable[..., Outcome]

    def file(self, name: str, text: str | None = None) -> Path:
        """A file below the home folder, written if a text is given."""
        path = self.home / name
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, newline="")
        return path

    def start_nothing(self) -> None:
        """Let what sessions start be a program that does nothing."""
        (self.data / "run" / "python").write_text("/bin/true")

    def files(self) -> dict[str, bytes]:
        """Every file of the account but the data folder's."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in self.home.rglob("*")
            if path.is_file() and not path.is_relative_to(self.data)
        }


@pytest.fixture
def account(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, command: Command) -> Account:
    home = tmp_path_factory.mktemp("a") / 'J "D" é$x'  # the service's socket has to fit below it
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    data = home / ".gapless"
    return Account(home=home, data=data, gapless=lambda *arguments: command(data, *arguments))
