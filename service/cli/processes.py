"""Starting and ending: the service in the foreground or the background, and workers on their own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooks.command import hook_command
from service.cli.output import Json, complain, print_json, print_line
from service.version import VERSION

if TYPE_CHECKING:
    from service.settings import Configuration

READY_WITHIN_S = 30.0
END_WITHIN_S = 35.0
"""The service ends within 30 s of a SIGTERM; what is left over is for a busy machine."""
LOOK_AGAIN_S = 0.02
LOG_LINES = 15


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes any free port.")] = None,
    *,
    no_workers: Annotated[bool, typer.Option("--no-workers", help="Leave the work to `gapless work`.")] = False,
) -> None:
    """Run the service in the foreground."""
    from service.edge.server import run_service
    from service.logs import logging_to
    from service.settings import load
    from workers.supervisor import Workers

    configuration = load(flags={"host": host, "port": port})
    with logging_to(configuration.home):
        run_loop(
            run_service(
                configuration,
                make_workers=None if no_workers else Workers,
                started=lambda where: _announce(configuration.home, where.address),
            )
        )


def work() -> None:
    """Run workers only, beside a service started with --no-workers."""
    from service.logs import logging_to
    from service.settings import load

    configuration = load()
    with logging_to(configuration.home):
        run_loop(_work(configuration))


async def _work(configuration: "Configuration") -> None:
    import asyncio

    from service.core import Core
    from workers.supervisor import Workers

    core = Core.open(configuration)
    try:
        workers = Workers(core)
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C cancels the task instead
                asyncio.get_running_loop().add_signal_handler(number, workers.stop.set)
        print_line(f"working on {configuration.home}")
        sys.stdout.flush()
        await workers.run()
    finally:
        await core.close()


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:  # Windows
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main)


def _announce(home: Path, address: str) -> None:
    print_line(f"Gapless {VERSION} listens on {address}, data folder {home}. Ctrl-C ends it.")
    print_line("Next: let your client run this command for its hook events (`gapless hook-command` prints it again):")
    print_line(f"  {hook_command('claude-code')}")
    sys.stdout.flush()


def up(*, as_json: Json = False) -> None:
    """Start the service in the background, if it does not run, and wait until it is ready."""
    from service.cli import live
    from service.settings import load

    configuration = load()
    process = None if live.find(configuration) else _start(configuration.home)
    readiness = live.Readiness(ready=False)
    deadline = time.monotonic() + READY_WITHIN_S
    while not (readiness := live.readiness(configuration)).ready:
        died = process is not None and process.poll() is not None and live.find(configuration) is None
        if died or time.monotonic() > deadline:
            _explain(configuration.home, "it ended at once" if died else "; ".join(readiness.reasons))
            raise typer.Exit(1)
        time.sleep(LOOK_AGAIN_S)
    found = live.find(configuration)
    started = process is not None and found is not None and found.pid == process.pid
    if as_json:
        print_json({"started": started, "pid": found and found.pid, "address": found and found.address})
    else:
        pid, address = (found.pid, found.address) if found else (None, None)
        print_line(f"{'started' if started else 'already running'}: {address}, pid {pid}")


def down(*, as_json: Json = False) -> None:
    """End the service, if it runs."""
    from service.cli import live
    from service.settings import load

    configuration = load()
    deadline = time.monotonic() + END_WITHIN_S
    signalled = None
    while (found := live.find(configuration)) is not None:
        if signalled is None and live.has_settled(configuration):
            signalled = found.pid
            if signalled is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(signalled, signal.SIGTERM)
        if time.monotonic() > deadline:
            complain(f"the service (pid {found.pid}) does not end; see {configuration.home / 'logs'}")
            raise typer.Exit(1)
        time.sleep(LOOK_AGAIN_S)
    if as_json:
        print_json({"stopped": signalled is not None, "pid": signalled})
    else:
        print_line("it was not running" if signalled is None else f"stopped, pid was {signalled}")


def log_file(home: Path) -> Path:
    """Where a service in the background leaves what it prints; its log proper is beside it."""
    return home / "logs" / "serve.out"


def _start(home: Path) -> subprocess.Popen[bytes]:
    """In a session of its own, so that it outlives the terminal, and isolated from the folder it was started in."""
    from service.private_files import PRIVATE_FILE, make_folder

    make_folder(home)
    make_folder(log_file(home).parent)
    output = os.open(log_file(home), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, PRIVATE_FILE)
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-m", "service.cli", "serve"],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)


def _explain(home: Path, reason: str) -> None:
    complain(f"the service did not become ready: {reason}")
    path = log_file(home)
    with contextlib.suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
        sys.stderr.write("".join(f"  {line}\n" for line in [f"the end of {path}:", *lines]))
