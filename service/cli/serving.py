"""The composition root: puts settings, edge and workers together and runs them in this process."""

import contextlib
import signal
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.output import print_line
from service.version import VERSION

if TYPE_CHECKING:
    from service.settings import Configuration


def serve(*, flags: Mapping[str, Any], with_workers: bool) -> None:
    """Run the service until SIGTERM or Ctrl-C. `flags` are settings by field name, None where not given."""
    from service.logs import logging_to  # first: it loads structlog without what that would load
    from service.edge.server import run_service  # isort: skip
    from service.settings import load
    from workers.supervisor import Workers

    configuration = load(flags=flags)
    with logging_to(configuration.home):
        _run(
            run_service(
                configuration,
                make_workers=Workers if with_workers else None,
                started=lambda where: _announce(configuration.home, where.address),
            )
        )


def work() -> None:
    """Run workers until SIGTERM or Ctrl-C."""
    from service.logs import logging_to
    from service.settings import load

    configuration = load()
    with logging_to(configuration.home):
        _run(_work(configuration))


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
        print_line(f"Gapless {VERSION} works on {configuration.home}. Ctrl-C ends it.")
        sys.stdout.flush()
        await workers.run()
    finally:
        await core.close()


def _run(main: Coroutine[Any, Any, None]) -> None:
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
    print_line(
        "Next: `gapless install --client claude-code` (or codex, gemini, cursor, opencode) lets that client use it."
    )
    sys.stdout.flush()
