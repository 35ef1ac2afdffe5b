"""Reading the payload from a client that may send too much, nothing, or never close its end."""

from __future__ import annotations

import os
import time

DEADLINE_S = 2.5
IDLE_S = 0.4  # after this silence a document that is whole is taken without waiting for the end
READ_MAX = 64_000_000  # bytes kept; what comes beyond is read, so that the sender isn't stopped, and dropped
CHUNK = 65_536


def read(descriptor: int) -> tuple[bytes, bool]:
    """The bytes that came, and whether they are all: the sender closed its end, or they are one whole JSON document."""
    chunks: list[bytes] = []
    size = 0
    checked = 0
    until = time.monotonic() + DEADLINE_S
    while (left_s := until - time.monotonic()) > 0:
        if not _is_ready(descriptor, min(left_s, IDLE_S)):
            if size > checked and _is_document(b"".join(chunks)):
                return b"".join(chunks), size <= READ_MAX
            checked = size
            continue
        chunk = _read_some(descriptor)
        if not chunk:
            return b"".join(chunks), size <= READ_MAX
        if size < READ_MAX:
            chunks.append(chunk)
        size += len(chunk)
    raw = b"".join(chunks)
    return raw, size <= READ_MAX and _is_document(raw)


def _is_ready(descriptor: int, timeout_s: float) -> bool:
    if os.name != "posix":  # elsewhere select takes sockets only: read and trust the host's own time limit
        return True
    import select

    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    except (OSError, ValueError):  # closed: the read will tell
        return True


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:  # closed or broken: what came is all
        return b""


def _is_document(raw: bytes) -> bool:
    if not raw.rstrip().endswith(b"}"):
        return False
    import json

    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True
