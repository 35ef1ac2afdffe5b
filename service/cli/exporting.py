"""`gapless export` and `gapless import`: memory as files, out and in."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.output import complain
from service.cli.queue import with_core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.core import Core
    from service.portability.lines import AnyLine

LINES_PER_COMMIT = 200
COMPLAINTS_SHOWN = 10
MONTH = "%Y-%m"


def export(
    *,
    project: Annotated[str | None, typer.Option(help="Only this project, by name or key.")] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="A file, or a folder (it exists, or ends with /) for a file a month."),
    ] = None,
) -> None:
    """Write what is remembered as JSON lines, oldest first; to standard output without -o."""
    lines = _exported(project)
    if output is None:
        from service.portability.lines import written

        sys.stdout.buffer.writelines(map(written, lines))
        return
    path = Path(output).expanduser()
    number = _by_month(lines, path) if path.is_dir() or output.endswith("/") else _to_file(lines, path)
    complain(f"{number} records in {output}")


def _exported(project: str | None) -> "Iterator[AnyLine]":
    from service import projects
    from service.clock import now_ms
    from service.portability import export as exporting
    from service.settings import load

    async def name(core: "Core") -> str | None:
        return await core.database.read(lambda reader: projects.find(reader, project or "")) or project

    return exporting.lines(load().database, project=with_core(name), now=now_ms())


def _to_file(lines: "Iterator[AnyLine]", path: Path) -> int:
    """Whole or not there; the number of lines."""
    from service.portability.lines import written
    from service.private_files import PRIVATE_FILE

    half = path.with_name(f"{path.name}.part")
    number = 0
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb") as file:
        for line in lines:
            file.write(written(line))
            number += 1
    half.replace(path)
    return number


def _by_month(lines: "Iterator[AnyLine]", folder: Path) -> int:
    """`2026-11.jsonl` and so on, in UTC; the number of lines. Records come in the order of time."""
    from datetime import UTC, datetime
    from itertools import groupby

    from service.portability.lines import SessionLine
    from service.private_files import make_folder

    make_folder(folder)

    latest = 0

    def month(line: "AnyLine") -> str:
        nonlocal latest
        latest = max(latest, line.started_at_epoch if isinstance(line, SessionLine) else line.created_at_epoch)
        return datetime.fromtimestamp(latest / 1000, UTC).strftime(MONTH)

    return sum(_to_file(some, folder / f"{name}.jsonl") for name, some in groupby(lines, key=month))
