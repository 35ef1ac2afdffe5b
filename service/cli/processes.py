"""Starting and ending: the service in the foreground or the background, and workers on their own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli import serving
from service.cli.options import Json
from service.cli.output import complain, print_json, print_line

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
    serving.serve(flags={"host": host, "port": port}, with_workers=not no_workers)


def work() -> None:
    """Run workers only, beside a service started with --no-workers."""
    serving.work()


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
    if process is not None and not started:  # another was first; ours would take its place when that ends
        process.terminate()
        process.wait()
    if as_json:
        print_json({"started": started, "pid": found and found.pid, "address": found and found.address})
    else:
        pid, address = (found.pid, found.address) if found else (None, None)
        print_line(f"{'started' if started else 'already running'}: {address}, pid {pid}")


def down(*, as_json: Json = False) -> None:
    """End the service, if it runs."""
    from service.settings import load

    pid = end(load())
    if as_json:
        print_json({"stopped": pid is not None, "pid": pid})
    else:
        print_line("it was not running" if pid is None else f"stopped, pid was {pid}")


def end(configuration: "Configuration") -> int | None:
    """End the service of a data folder and wait until it has; its pid, None when it did not run. Exits 1 when it
    does not end."""
    from service.cli import live

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
    return signalled


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
