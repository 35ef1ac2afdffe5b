"""The stdio transport: a JSON document a line, in and out."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from service.mcp import rpc
from service.mcp.dialogue import Tools, answer, answer_at_once
from service.mcp.rpc import Code, RpcError

if TYPE_CHECKING:
    import asyncio

LINE_LIMIT_BYTES = 16 * 1024 * 1024
"""As of the bodies of HTTP requests."""


def serve(tools: Tools, *, source: int, sink: int) -> None:
    """Answer what comes on one file descriptor on another, until the first ends or nobody listens to the second.

    Before the first call of a tool nothing waits for anything, and asyncio is not even loaded: a client waits for these
    answers when it starts. From then on several messages are answered at a time, and what is under way is finished.
    """
    lines = _lines(os.fdopen(source, "rb", closefd=False))
    with contextlib.suppress(BrokenPipeError):
        for line in lines:
            if len(line) > LINE_LIMIT_BYTES:
                _write(sink, _too_long())
                continue
            given = answer_at_once(line, tools)
            if given is None:
                import asyncio

                asyncio.run(_converse(line, lines, tools, sink))
                return
            _write(sink, given.body)


async def _converse(first: bytes, lines: Iterator[bytes], tools: Tools, sink: int) -> None:
    import asyncio

    arrived = asyncio.Queue[bytes]()
    _read_beside(lines, arrived)
    line = first
    try:
        async with asyncio.TaskGroup() as tasks:
            while line:
                tasks.create_task(_answer(line, tools, sink))
                line = await arrived.get()
    except* BrokenPipeError:
        pass


def _read_beside(lines: Iterator[bytes], arrived: "asyncio.Queue[bytes]") -> None:
    """Lines as they come, and an empty one at the end, from a thread that the end of the process does not wait for, as
    it would for one of the loop's own."""
    import asyncio
    import threading

    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in lines:
                loop.call_soon_threadsafe(arrived.put_nowait, line)
            loop.call_soon_threadsafe(arrived.put_nowait, b"")

    threading.Thread(target=read, name="gapless-stdin", daemon=True).start()


async def _answer(line: bytes, tools: Tools, sink: int) -> None:
    _write(sink, _too_long() if len(line) > LINE_LIMIT_BYTES else (await answer(line, tools)).body)


def _too_long() -> bytes | None:
    error = RpcError(Code.INVALID_REQUEST, f"a message has at most {LINE_LIMIT_BYTES} bytes")
    return rpc.as_bytes([rpc.failure(error)], as_array=False)


def _write(sink: int, given: bytes | None) -> None:
    """In one go: nothing else runs on the loop until the line is whole."""
    left = b"" if given is None else given + b"\n"
    while left:
        left = left[os.write(sink, left) :]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Those that are not empty; of one that is too long the beginning, which is still too long."""
    while line := file.readline(LINE_LIMIT_BYTES + 1):
        beginning = line
        if len(line) > LINE_LIMIT_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_LIMIT_BYTES)
        if beginning.strip():
            yield beginning
