"""`gapless install` and `gapless uninstall`: a client's settings, and the data folder when it is to go too."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Json
from service.cli.output import print_json, print_line

if TYPE_CHECKING:
    from service.installing.files import Edit
    from service.installing.program import Machine, Program
    from service.settings import Configuration


class Name(StrEnum):
    """As `--client` takes them."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"
    CURSOR = "cursor"
    OPENCODE = "opencode"


ClientOption = Annotated[Name, typer.Option("--client", help="Whose settings to change.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes as a diff and make none.")]


def install(client: ClientOption, *, dry_run: DryRun = False, as_json: Json = False) -> None:
    """Let a client run Gapless: its hooks and its MCP server. What else is in its settings stays as it is."""
    from service.installing import files
    from service.installing.clients import CLIENTS
    from service.settings import load

    configuration = load()
    edits = _edits(client, configuration, undo=False)
    if dry_run:
        _show(client, edits, as_json=as_json)
        return
    _record_interpreter(configuration.run)
    changed = files.apply(edits)
    if as_json:
        print_json({"client": client, "dry_run": False, "changed": list(map(str, changed))})
        return
    chosen = CLIENTS[client]
    print_line(f"{chosen.title}: changed {_listed(changed)}" if changed else f"{chosen.title} is set up already")
    if chosen.note:
        print_line(chosen.note)
    print_line("The next session starts the service by itself; `gapless status` shows what is remembered.")


def uninstall(
    client: ClientOption,
    *,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the data folder too, with every memory.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before that.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take Gapless out of a client's settings. The service ends when no client uses it any more; memories stay."""
    from service.installing import files
    from service.installing.clients import CLIENTS
    from service.settings import load

    configuration = load()
    edits = _edits(client, configuration, undo=True)
    if dry_run:
        _show(client, edits, as_json=as_json)
        return
    if purge and not yes:
        typer.confirm(f"Delete {configuration.home} with every memory in it?", abort=True)
    changed = files.apply(edits)
    is_unused = not any(_is_installed(name, configuration) for name in Name)
    if purge or is_unused:
        _end_service(configuration)
    purged = purge and _purge(configuration.home)
    if as_json:
        print_json({"client": client, "dry_run": False, "changed": list(map(str, changed)), "purged": purged})
        return
    title = CLIENTS[client].title
    print_line(f"{title}: changed {_listed(changed)}" if changed else f"{title} had nothing of Gapless")
    if purged:
        print_line(f"{configuration.home} is deleted")
    elif configuration.home.exists():
        print_line(f"your memories are still in {configuration.home}; --purge deletes them")


def _edits(name: Name, configuration: "Configuration", *, undo: bool) -> "list[Edit]":
    from service.installing import files
    from service.installing.clients import CLIENTS

    settings_files = CLIENTS[name].files(_machine(configuration), _program(configuration))
    return [files.planned(file.path, file.uninstall if undo else file.install) for file in settings_files]


def _is_installed(name: Name, configuration: "Configuration") -> bool:
    from service.errors import InvalidInput

    try:
        return any(edit.changes for edit in _edits(name, configuration, undo=True))
    except (InvalidInput, OSError):  # a file that can't be understood may hold something of ours
        return True


def _machine(configuration: "Configuration") -> "Machine":
    from service.installing.program import Machine

    return Machine(
        home=Path.home(),
        environment=os.environ,  # noqa: TID251 - where other programs keep their settings is none of ours
        file_memory=configuration.settings.file_inject == "on",
    )


def _program(configuration: "Configuration") -> "Program":
    from service.installing.program import Program

    usual = configuration.home == (Path.home() / ".gapless").absolute()
    return Program(data_folder="" if usual else str(configuration.home))


def _record_interpreter(run: Path) -> None:
    """For hooks, which start the service with it."""
    from hooks import installed
    from service import private_files

    private_files.make_folder(run.parent)
    private_files.make_folder(run)
    private_files.write(run.parent / installed.RECORD, sys.executable)


def _end_service(configuration: "Configuration") -> None:
    from service.cli.processes import end

    end(configuration)


def _purge(home: Path) -> bool:
    """Whether there was a data folder. Raises `InvalidInput` for a folder that is none."""
    import shutil

    from service.errors import InvalidInput

    if not home.exists():
        return False
    if home.is_symlink() or not ((home / "gapless.db").exists() or (home / "run" / "python").exists()):
        raise InvalidInput(f"{home} does not look like a data folder of Gapless; delete it by hand if it is one")
    shutil.rmtree(home)
    return True


def _show(name: Name, edits: "list[Edit]", *, as_json: bool) -> None:
    if as_json:
        changes = [{"path": str(edit.path), "diff": edit.diff()} for edit in edits if edit.changes]
        print_json({"client": name, "dry_run": True, "changes": changes})
        return
    diff = "".join(edit.diff() for edit in edits if edit.changes)
    print_line(diff.rstrip("\n") or "nothing would change")


def _listed(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))
