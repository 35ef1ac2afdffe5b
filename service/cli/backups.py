"""`gapless backup` and `gapless restore`: a checked copy of the database, and putting one back."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.options import Json
from service.cli.output import megabytes, print_json, print_line


def backup(*, as_json: Json = False) -> None:
    """Copy the database into the data folder's backups, while the service runs or not."""
    from service import backups
    from service.clock import now_ms
    from service.core import Core
    from service.settings import load

    configuration = load()
    if not configuration.database.exists():
        import asyncio

        asyncio.run(Core.open(configuration).close())
    path = backups.back_up(configuration.database, configuration.home / "backups", now=now_ms())
    size = path.stat().st_size
    if as_json:
        print_json({"path": str(path), "bytes": size})
    else:
        print_line(f"{path} ({megabytes(size)}); `gapless restore` puts it back")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `gapless backup` made.")], *, as_json: Json = False
) -> None:
    """Put a backup in the place of the database; the service must not run."""
    from service import backups
    from service.clock import now_ms
    from service.settings import load

    kept = backups.restore(load(), file.expanduser(), now=now_ms())
    if as_json:
        print_json({"restored": str(file), "replaced": None if kept is None else str(kept)})
        return
    print_line(f"restored {file}; the vector index is made anew when the service starts")
    if kept is not None:
        print_line(f"the database that was there is {kept}")
