"""README.md is complete and up to date: every setting, route and command is in it, and none that is not there."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from service.cli.app import app
from service.edge.app import OPERATIONS
from service.settings import Settings
from service.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = {name.upper() for name in Settings.model_fields}
ROUTES = {f"{operation.method} {operation.path}" for operation in OPERATIONS}


def commands() -> Iterator[str]:
    """As `serve` and `queue list`."""
    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from (f"{name} {inner}" for inner in command.commands)
        else:
            yield name


def options(name: str) -> set[str]:
    command = typer.main.get_command(app)
    for part in name.split():
        command = command.commands[part]  # type: ignore[attr-defined]
    return {option for parameter in command.params for option in parameter.opts if option.startswith("--")}


def described(pattern: str) -> set[str]:
    """What stands as code at the beginning of table rows."""
    return set(re.findall(rf"^\| `({pattern})` \|", README, re.MULTILINE))


def test_the_readme_has_every_setting_and_no_other() -> None:
    assert described(r"[A-Z][A-Z_]+") == SETTINGS


def test_the_readme_has_every_route_and_no_other() -> None:
    assert described(r"(?:GET|POST|PATCH|PUT|DELETE) /[^` ]*") == ROUTES


def test_the_readme_has_every_command_and_no_other() -> None:
    names = set(commands())
    rows = re.findall(r"^\| `gapless ([^`]+)` \|", README, re.MULTILINE)
    documented = {next(name for name in (" ".join(row.split()[:2]), row.split()[0]) if name in names) for row in rows}
    assert documented == names


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_readme_has_every_option_of_a_command(name: str) -> None:
    row = next(line for line in README.splitlines() if re.match(rf"\| `gapless {name}\b", line))
    assert options(name) - {"--json", "--help"} <= set(re.findall(r"--[a-z-]+", row))


def test_every_command_that_prints_data_can_print_json() -> None:
    acts = {"serve", "work", "demo", "mcp", "queue pause", "queue resume", "export"}
    assert {name for name in commands() if "--json" not in options(name)} == acts


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("version", VERSION) == VERSION
