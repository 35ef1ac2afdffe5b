"""The service's process: sockets, what `run/` says about them, and everything that lives as long as they do."""

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog
import uvicorn
from starlette.types import ASGIApp

from service import private_files
from service.core import Core
from service.edge.app import build_app, make_edge
from service.edge.security import read_token
from service.edge.state import Edge
from service.edge.tools import TOOLS
from service.edge.wire import Wire
from service.errors import SettingsError
from service.liveness import only_service
from service.mcp import catalogue
from service.settings import Configuration
from service.version import VERSION

log = structlog.get_logger()

BACKLOG = 1024
GARBAGE_THRESHOLDS = (50_000, 50, 100)
"""Objects of the youngest generation before it is looked through, and how many such looks make one at the next."""
IDLE_CONNECTION_S = 65
FINISH_S = 5
"""How long answers under way may take after the stop; a reader that takes nothing is cut off then."""
UNIX_PATH_BYTES = 100
"""Linux takes 107 bytes, macOS 103."""


class Background(Protocol):
    """The workers of this process, as the edge knows them."""

    wake: asyncio.Event
    stop: asyncio.Event

    async def run(self) -> None: ...

    def reload(self) -> None: ...


MakeWorkers = Callable[[Core, Callable[[int], None]], Background]
"""From the core and who is to be told how many messages came to an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the service listens. `path` is None where there is no Unix socket or its path is too long."""

    host: str
    port: int
    path: Path | None
    sockets: list[socket.socket]

    @property
    def address(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


async def run_service(
    configuration: Configuration,
    *,
    make_workers: MakeWorkers | None,
    started: Callable[[Listening], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT. Without `make_workers` events are taken and left to other processes.

    `started` is told when requests are taken. Raises `AlreadyRunning`, `SettingsError`, `StoreError`.
    """
    run = configuration.run
    private_files.make_folder(configuration.home)
    private_files.make_folder(run)
    with only_service(run):
        core = Core.open(configuration)
        _collect_garbage_seldom()
        try:
            edge = make_edge(core, read_token(configuration.home), has_workers=make_workers is not None)
            with listening(configuration) as where, _recorded(run, where), _ended_by_signals(edge):
                log.info("service.started", address=where.address, version=VERSION, workers=edge.has_workers)
                started(where)
                await _live(edge, where, make_workers)
        finally:
            await core.close()
        log.info("service.stopped")


def _collect_garbage_seldom() -> None:
    """Parsed payloads are many small objects and no cycles: looking for those took a fifth of the time of an event."""
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


async def serve(app: ASGIApp, sockets: list[socket.socket], *, stop: asyncio.Event) -> None:
    """Answer requests until `stop`, and finish those under way."""
    config = uvicorn.Config(
        app,
        http=Wire,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_CONNECTION_S,
    )
    await _Server(config, stop).serve(sockets)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._stop = stop

    async def main_loop(self) -> None:
        """Wakes up once a second, for the Date header, and at the stop; uvicorn's own looks ten times a second."""
        while not self._stop.is_set():
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, without its tenth of a second for connections that there may not be."""
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wait_tasks_to_complete(), FINISH_S)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours: uvicorn would raise them again after its end."""
        yield


async def _live(edge: Edge, where: Listening, make_workers: MakeWorkers | None) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(build_app(edge), where.sockets, stop=edge.stop))
        if make_workers is not None:
            tasks.create_task(_work(edge, make_workers))


async def _work(edge: Edge, make_workers: MakeWorkers) -> None:
    """Run workers until the service ends."""
    workers = make_workers(edge.core, edge.traffic.count_completed)
    edge.wake, edge.reload = workers.wake.set, workers.reload
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(workers.run())
        await edge.stop.wait()
        workers.stop.set()


@contextlib.contextmanager
def listening(configuration: Configuration) -> Iterator[Listening]:
    """Bind the TCP port and the Unix socket; connections wait until they are served."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(_bind_tcp(configuration))
        host, port = tcp.getsockname()[:2]
        sockets, path = [tcp], configuration.run / "gapless.sock"
        fits = hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= UNIX_PATH_BYTES
        if fits:
            sockets.append(stack.enter_context(_bind_unix(path)))
            stack.callback(path.unlink, missing_ok=True)
        yield Listening(host=host, port=port, path=path if fits else None, sockets=sockets)


def _bind_tcp(configuration: Configuration) -> socket.socket:
    """On PORT. A default port that a stranger has moves to a free one; a port that someone chose does not."""
    host, port = configuration.settings.host, configuration.settings.port
    try:
        return _bound(host, port)
    except OSError as error:
        if configuration.sources["port"] != "default" or error.errno != errno.EADDRINUSE:
            raise SettingsError(
                f"cannot listen on {host} port {port}: {error.strerror or error}; "
                "set PORT to a free one (0 takes any) or HOST to an address of this machine"
            ) from error
    log.warning("port.taken", port=port)
    return _bound(host, 0)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _bind_unix(path: Path) -> socket.socket:
    """A file that is there was left behind: the service lock is ours."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(os.fspath(path))
    path.chmod(private_files.PRIVATE_FILE)
    listener.listen(BACKLOG)
    return listener


@contextlib.contextmanager
def _recorded(run: Path, where: Listening) -> Iterator[None]:
    """Tell hooks and commands where we are, as long as we are there; with what to start us again, and our tools."""
    private_files.write(run / "python", sys.executable)
    private_files.write(run / catalogue.NAME, catalogue.written([tool.listed for tool in TOOLS.values()]))
    facts = {"port": str(where.port), "pid": str(os.getpid()), "version": VERSION}
    for name, value in facts.items():
        private_files.write(run / name, value)
    (run / "avoid").unlink(missing_ok=True)
    try:
        yield
    finally:
        for name in facts:
            (run / name).unlink(missing_ok=True)


@contextlib.contextmanager
def _ended_by_signals(edge: Edge) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    try:
        for number in signals:
            loop.add_signal_handler(number, edge.end)
    except NotImplementedError:  # Windows: Ctrl-C cancels the main task instead
        yield
        return
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
