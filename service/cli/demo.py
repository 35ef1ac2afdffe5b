"""`gapless demo`: a service in a throw-away data folder, a session played into it, and what is remembered then."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.output import complain, print_line, print_table
from service.cli.processes import log_file
from service.private_files import make_folder

if TYPE_CHECKING:
    from service.context.start import Context
    from service.core import Core
    from service.searching.request import SearchAnswer
    from service.settings import Configuration

START_WITHIN_S = 30.0
DRAIN_WITHIN_S = 60.0
END_WITHIN_S = 35.0
LOOK_AGAIN_S = 0.02
ROWS = 50
HITS = 5


def demo(
    *,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep the demo's data here.", show_default="a temporary folder, removed at the end"),
    ] = None,
    exit_at_end: Annotated[
        bool, typer.Option("--exit", envvar="DEMO_EXIT", help="Exit instead of keeping the service running.")
    ] = False,
) -> None:
    """Play a bundled session through the real hooks and show what Gapless makes of it."""
    from service import demo as bundled
    from service.cli import live
    from service.settings import load

    with _workplace(folder) as place:
        configuration = load(home=place / "data", environment={})
        with _service(configuration) as process:
            found = live.find(configuration)
            print_line(f"The service runs at {found and found.address}, data folder {configuration.home}.")
            _show(configuration, place / bundled.PROJECT)
            if not exit_at_end:
                print_line(f"It keeps running: GAPLESS_HOME={configuration.home} for other commands, Ctrl-C ends it.")
                sys.stdout.flush()
                process.wait()


@contextmanager
def _workplace(folder: Path | None) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="gapless-demo-")) if folder is None else folder.absolute()
    try:
        yield place
    finally:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _service(configuration: "Configuration") -> Iterator[subprocess.Popen[bytes]]:
    """Started as `gapless serve` on a free port, ready, and ended with its caller."""
    from service.cli import live

    command = [sys.executable, "-I", "-m", "service.cli", "serve", "--port", "0"]
    environment = _environment(configuration.home)
    path = log_file(configuration.home)
    make_folder(path.parent)
    with path.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_WITHIN_S
        while not live.readiness(configuration).ready:
            if process.poll() is not None or time.monotonic() > deadline:
                complain(f"the service did not start: {path.read_text(errors='replace').strip()}")
                raise typer.Exit(1)
            time.sleep(LOOK_AGAIN_S)
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C; the first reached the service as well
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()


def _show(configuration: "Configuration", project: Path) -> None:
    from service import demo as bundled
    from service.cli.queue import with_core

    played = bundled.play(project, _environment(configuration.home))
    print_line(f"Played {played} hook events of a session in the project {project.name}.")
    observations, summaries, answer, told = with_core(lambda core: _remembered(core, project), configuration)
    print_table(
        ("id", "type", "title", "files changed"),
        ((row["id"], row["type"], row["title"], ", ".join(row["files_modified"])) for row in reversed(observations)),
        title="What is remembered",
    )
    print_table(
        ("id", "request", "next"),
        ((f"S{row['id']}", row["request"], row["next_steps"]) for row in reversed(summaries)),
        title="Summaries, one a turn",
    )
    print_table(
        ("id", "type", "title", "~tokens"),
        ((hit.id, hit.type, hit.title, hit.tokens) for hit in answer.results),
        title=f'gapless search "{bundled.QUESTION}"',
    )
    print_line(f"What the next session in {project.name} is told at its start (gapless context):")
    print_line(told.text)


async def _remembered(
    core: "Core", project: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], "SearchAnswer", "Context"]:
    from service import demo as bundled
    from service import observations
    from service.cli.queue import until_drained
    from service.clock import now_ms
    from service.context.asking import Asked, at_start
    from service.projects import ProjectRef
    from service.search import search
    from service.searching.request import search_query

    if (reason := await until_drained(core, timeout_s=DRAIN_WITHIN_S)) is not None:
        complain(reason)
        raise typer.Exit(1)
    read, now = core.database.read, now_ms()
    asked = Asked(ref=ProjectRef(folder=str(project)))
    _, rows = await read(lambda reader: observations.newest(reader, project=None, limit=ROWS, offset=0, now=now))
    _, summaries = await read(lambda reader: observations.newest_summaries(reader, project=None, limit=ROWS, offset=0))
    told = await read(lambda reader: at_start(reader, asked, core.configuration, source=None, now=now))
    query = search_query({"query": bundled.QUESTION, "limit": HITS})
    return rows, summaries, await search(core.database, query, vectors=core.vectors), told


def _environment(home: Path) -> dict[str, str]:
    """What children inherit: no setting of the user's own installation."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("GAPLESS_")}  # noqa: TID251
    return {**theirs, "GAPLESS_HOME": str(home)}
