"""`gapless import`: what was remembered or recorded elsewhere."""

import contextlib
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Json
from service.cli.output import complain, print_json, print_line, print_table
from service.cli.queue import with_core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.core import Core
    from service.portability.reading import Format
    from service.portability.taking_in import TakingIn

COMPLAINTS_SHOWN = 10
ENDINGS = (".jsonl", ".json", ".db", ".jsonl.xz", ".jsonl.gz")
"""Of the files that are looked for in a folder."""
OUTCOMES = ("new", "known", "skipped", "unusable")


def import_(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Files, or folders that hold them.")],
    *,
    form: Annotated[
        str | None,
        typer.Option(
            "--from", help="claude-code, codex, gemini, claude-mem or jsonl.", show_default="what is in the file"
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option(envvar="GAPLESS_PROJECT", help="Put all of it into this project.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be taken in.")] = False,
    as_json: Json = False,
) -> None:
    """Take in exports, transcripts, databases of claude-mem. Again, it adds nothing; stopped half-way, it goes on."""
    files, unreadable = _files(paths, form)
    taken = _run(files, project, dry_run=dry_run)
    taken.unusable = unreadable + taken.unusable
    if as_json:
        whats = sorted({what for what, _ in taken.counts})
        told = {what: {outcome: taken.counts[what, outcome] for outcome in OUTCOMES} for what in whats}
        print_json({"dry_run": dry_run, "files": len(files), "records": told, "unusable": taken.unusable})
    else:
        _print(taken.counts, dry_run=dry_run)
    for complaint in taken.unusable[:COMPLAINTS_SHOWN]:
        complain(complaint)
    if lines := len(taken.unusable) - len(unreadable):
        complain(f"{lines} lines could not be read and were left out; all others were taken")
    if unreadable:
        complain(f"{len(unreadable)} files or folders could not be read; all others were taken")
        raise typer.Exit(1)


def _run(files: "list[tuple[Path, Format]]", project: str | None, *, dry_run: bool) -> "TakingIn":
    from service.portability.taking_in import TakingIn, scratch
    from service.settings import load

    async def work(core: "Core") -> "TakingIn":
        taken = TakingIn(core, project)
        with _progress(len(files)) as advance:
            for path, form in files:
                await taken.file(path, form, progress=lambda records: advance(records, 0))
                advance(0, 1)
        return taken

    configuration = load()
    if not dry_run:
        return with_core(work, configuration)
    with_core(_nothing, configuration)  # makes the database, if there is none
    with scratch(configuration) as copy:
        return with_core(work, copy)


async def _nothing(_: "Core") -> None:
    return


def _print(counts: Counter[tuple[str, str]], *, dry_run: bool) -> None:
    whats = sorted({what for what, _ in counts})
    rows = ((_plural(what), *(counts[what, outcome] for outcome in OUTCOMES)) for what in whats)
    print_table(("", "to take in" if dry_run else "new", "known already", "skipped", "unusable"), rows)
    if counts["event", "new"] and not dry_run:
        print_line("the service compresses the events; `gapless queue wait` waits for it")


def _plural(what: str) -> str:
    return f"{what.removesuffix('y')}{'ies' if what.endswith('y') else 's'}"


def _files(paths: list[Path], form: str | None) -> "tuple[list[tuple[Path, Format]], list[str]]":
    """What is to be taken in, and of folders what could not be read, with the reason."""
    from service.errors import InvalidInput
    from service.portability.reading import Format, format_of, need_format

    if form is not None and form not in set(Format):
        raise InvalidInput(f"--from takes {', '.join(Format)}, not {form}", field="from")
    wanted = Format(form) if form else None
    files: list[tuple[Path, Format]] = []
    unreadable: list[str] = []
    for path in (path.expanduser() for path in paths):
        if path.is_dir():
            for file in _below(path, unreadable):
                try:
                    found = wanted or format_of(file)
                except (InvalidInput, OSError) as error:
                    unreadable.append(str(error))
                    continue
                files += [(file, found)] if found is not None else []
        elif path.is_file():
            files.append((path, need_format(path, wanted)))
        else:
            raise InvalidInput(f"there is no file {path}", field="paths")
    return files, unreadable


def _below(folder: Path, unreadable: list[str]) -> list[Path]:
    walked = os.walk(folder, onerror=lambda error: unreadable.append(str(error)))
    files = (Path(parent, name) for parent, _, names in walked for name in names if name.endswith(ENDINGS))
    return sorted(file for file in files if file.is_file())


@contextlib.contextmanager
def _progress(files: int) -> "Iterator[Callable[[int, int], None]]":
    """How many records and files are done, on a terminal; standard output stays free."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.completed}/{task.total} files, {task.fields[records]} records"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task, records = progress.add_task("", total=files, records=0), 0

        def advance(more_records: int, more_files: int) -> None:
            nonlocal records
            records += more_records
            progress.update(task, advance=more_files, records=records)

        yield advance
