"""The stdio transport: a JSON document a line, in and out."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO

from service.mcp import rpc
from service.mcp.dialogue import Tools, answer
from service.mcp.rpc import Code, RpcError

LINE_LIMIT_BYTES = 16 * 1024 * 1024
"""As of the bodies of HTTP requests."""


async def serve(tools: Tools, *, source: int, sink: int) -> None:
    """Answer what comes on one file descriptor on another, several messages at a time, until the first ends or nobody
    listens to the second; what is under way is finished."""
    try:
        async with asyncio.TaskGroup() as tasks:
            async for line in _lines(source):
                tasks.create_task(_answer(line, tools, sink))
    except* BrokenPipeError:
        pass


async def _answer(line: bytes, tools: Tools, sink: int) -> None:
    if len(line) > LINE_LIMIT_BYTES:
        error = RpcError(Code.INVALID_REQUEST, f"a message has at most {LINE_LIMIT_BYTES} bytes")
        given = rpc.as_bytes([rpc.failure(error)], as_array=False)
    else:
        given = (await answer(line, tools)).body
    if given is not None:
        _write(sink, given + b"\n")


def _write(sink: int, left: bytes) -> None:
    """In one go: nothing else runs on the loop until the line is whole."""
    while left:
        left = left[os.write(sink, left) :]


async def _lines(source: int) -> AsyncIterator[bytes]:
    """Those that are not empty; of one that is too long the beginning, which is still too long."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        with os.fdopen(source, "rb", closefd=False) as file, contextlib.suppress(RuntimeError):  # the loop has ended
            for line in _read(file):
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    # A thread that the end of the process does not wait for, as it would for one of the loop's own.
    threading.Thread(target=read, name="gapless-stdin", daemon=True).start()
    while line := await lines.get():
        yield line


def _read(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LINE_LIMIT_BYTES + 1):
        beginning = line
        if len(line) > LINE_LIMIT_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_LIMIT_BYTES)
        if beginning.strip():
            yield beginning
