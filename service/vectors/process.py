"""The vector process: `python -I -m service.vectors.process HOME CHROMA`, one for a data folder, ends with its parent.

It owns Chroma's files and the embedder, so that what they take, hold and break stays out of the service. It listens on
run/vectors.sock; its standard input is a pipe from its parent, whose end is the parent's end.
"""

import argparse
import asyncio
import faulthandler
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from service.private_files import PRIVATE_FILE
from service.vectors import frames
from service.vectors.address import reachable
from service.vectors.child import LOCKED, TOO_LARGE
from service.vectors.chroma_index import ChromaIndex
from service.vectors.desk import Desk
from service.vectors.exact import StoredVectors
from service.vectors.protocol import VectorsUnavailable

LOCK_S = 2.0
"""A predecessor that ends lets go within this time."""
PRIVATE_UMASK = 0o077
"""Files 0600, folders 0700, whatever Chroma asks for."""
QUERY_THREADS = 4
EMBEDDING_THREADS = 2
NICENESS = 15
"""Of the embedding threads: the service and its searches go first."""
FINISH_S = 10.0
"""How long a write under way may take at the end; cut off, it may break the index."""
LOOK_AT_MEMORY_S = 10.0
MEMORY_BASE_BYTES = 1_500 * 1024 * 1024
MEMORY_PER_DOCUMENT_BYTES = 6 * 1024
"""Twice what was measured: 0.9 GB with 300,000 vectors after adding them, 0.4 GB of it without any."""


@dataclass(slots=True)
class Pools:
    """Who does what: a query never waits for a batch of embeddings or for a write."""

    queries: ThreadPoolExecutor
    writes: ThreadPoolExecutor
    embedding: ThreadPoolExecutor
    batches: ThreadPoolExecutor

    def of(self, operation: str) -> ThreadPoolExecutor:
        if operation == "nearest":
            return self.queries
        return self.embedding if operation == "embed" else self.writes


class Connection(asyncio.Protocol):
    """One that asks; answers go back in the order they are ready."""

    def __init__(self, desk: Desk, pools: Pools) -> None:
        self._desk = desk
        self._pools = pools
        self._unpacker = frames.Unpacker()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for header, blob in self._unpacker.feed(data):
                pool = self._pools.of(header["do"])
                answering = asyncio.get_running_loop().run_in_executor(pool, self._answer, header, blob)
                answering.add_done_callback(self._send)
        except ValueError:
            self._transport.close()

    def _answer(self, header: dict[str, Any], blob: bytes) -> bytes:
        try:
            answer, vectors = self._desk.answer(header, blob)
        except VectorsUnavailable as error:
            return frames.pack({"id": header["id"], "unavailable": str(error)})
        except BaseException as error:  # noqa: BLE001 - Rust parts panic with one; other callers live on
            sys.excepthook(type(error), error, error.__traceback__)
            return frames.pack({"id": header["id"], "unavailable": f"{type(error).__name__}: {error}"})
        return frames.pack({"id": header["id"], **answer}, vectors)

    def _send(self, answering: asyncio.Future[bytes]) -> None:
        if not self._transport.is_closing():
            self._transport.write(answering.result())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="service.vectors.process")
    parser.add_argument("home", type=Path)
    parser.add_argument("chroma")
    parser.add_argument("--anew", action="store_true", help="drop the index: it killed this process's predecessors")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    os.umask(PRIVATE_UMASK)
    os.putenv("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads: threads make a small dot product ten times dearer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this one
    with _lock(options.home / "run" / "vectors.lock") as is_ours:
        if not is_ours:
            print(f"another process has the vector index of {options.home}", file=sys.stderr)  # noqa: T201 - its log
            return LOCKED
        return asyncio.run(_serve(options))


@contextmanager
def _lock(path: Path) -> Iterator[bool]:
    lock = FileLock(path, mode=PRIVATE_FILE)
    try:
        lock.acquire(timeout=LOCK_S)
    except Timeout:
        yield False
        return
    with lock:
        yield True


async def _serve(options: argparse.Namespace) -> int:
    """Answer until the parent ends or asks for the end; the exit status."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[int] = loop.create_future()
    pools = Pools(
        queries=ThreadPoolExecutor(QUERY_THREADS),
        writes=ThreadPoolExecutor(1),
        embedding=ThreadPoolExecutor(1),
        batches=ThreadPoolExecutor(EMBEDDING_THREADS, initializer=_go_last),
    )
    stored = StoredVectors(options.home / "gapless.db")
    index = ChromaIndex(options.home, options.chroma, stored, anew=options.anew)
    desk = Desk(index, stored, loading=pools.queries, embedding=pools.batches)
    path = options.home / "run" / "vectors.sock"
    path.unlink(missing_ok=True)  # left behind: the lock is ours
    with reachable(path) as address:
        os.umask(PRIVATE_UMASK | 0o100)
        server = await loop.create_unix_server(lambda: Connection(desk, pools), address)
        os.umask(PRIVATE_UMASK)
    loop.add_reader(sys.stdin.fileno(), _end, over, 0)
    loop.add_signal_handler(signal.SIGTERM, _end, over, 0)
    loop.call_later(LOOK_AT_MEMORY_S, _look_at_memory, loop, index, over)
    status = await over
    server.close()
    path.unlink(missing_ok=True)
    await _finish(pools)
    index.leave()
    sys.stderr.flush()
    os._exit(status)  # threads of Chroma or a query that hangs must not hold the end up


async def _finish(pools: Pools) -> None:
    writing = asyncio.get_running_loop().run_in_executor(None, lambda: pools.writes.shutdown(cancel_futures=True))
    await asyncio.wait([writing], timeout=FINISH_S)


def _end(over: asyncio.Future[int], status: int) -> None:
    if not over.done():
        over.set_result(status)


def _go_last() -> None:
    if hasattr(os, "setpriority") and sys.platform == "linux":  # elsewhere it would be the whole process
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _look_at_memory(loop: asyncio.AbstractEventLoop, index: ChromaIndex, over: asyncio.Future[int]) -> None:
    """Chroma's memory grows in the field; a process that took far more than its index needs begins anew."""
    if _resident_bytes() > MEMORY_BASE_BYTES + MEMORY_PER_DOCUMENT_BYTES * index.documents:
        _end(over, TOO_LARGE)
    loop.call_later(LOOK_AT_MEMORY_S, _look_at_memory, loop, index, over)


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # not Linux: unknown
        return 0
    return pages * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
