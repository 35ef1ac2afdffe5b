"""Files of events that wait for the service (`spool/`) or that it will never take (`spool/rejected/`).

A file is one event, written whole or not at all; its name sorts by the moment of capture. The service drains with
`pending`, `read` and then `remove` or `set_aside`.
"""

from __future__ import annotations

import os

from hooks import envelope
from hooks.envelope import Envelope

SUFFIX = ".event"
REJECTED_FILES_MAX = 200
REJECTED_BYTES_MAX = 20_000_000


def write(home: str, event: Envelope) -> str:
    """Keep the event through a power cut; the path of its file. Raises OSError when that can't be done."""
    _make_folder(home)
    return _write(_make_folder(_spool(home)), _name(event), event.to_bytes())


def write_rejected(home: str, event: Envelope, *, reason: str) -> None:
    """Keep an event for a person to look at; the oldest such files make room. Raises OSError."""
    _make_folder(home)
    _reject(home, _name(event), event.to_bytes(), reason)


def pending(home: str) -> list[str]:
    """Paths of the waiting events, in the order of their capture."""
    return _events_in(_spool(home))


def rejected(home: str) -> list[str]:
    """Paths of the events set aside, oldest first."""
    return _events_in(_rejected(home))


def read(path: str) -> Envelope:
    """Raises OSError, or ValueError when the file isn't a spooled event."""
    with open(path, "rb") as file:
        return Envelope.from_bytes(file.read())


def remove(path: str) -> None:
    """Forget a file, also one that is gone already."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def set_aside(home: str, path: str, *, reason: str) -> None:
    """Move a waiting event, readable or not, to the rejected ones. Raises OSError."""
    with open(path, "rb") as file:
        _reject(home, os.path.basename(path), file.read(), reason)
    remove(path)


def _reject(home: str, name: str, data: bytes, reason: str) -> None:
    _make_folder(_spool(home))
    label = f"{envelope.REJECTED}: {envelope.quote(reason)}\n".encode("ascii")
    _write(_make_folder(_rejected(home)), name, label + data)
    _make_room(home)


def _write(folder: str, name: str, data: bytes) -> str:
    path = os.path.join(folder, name)
    draft = os.path.join(folder, f".{name}.tmp")
    try:
        descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, path)
    except OSError:
        remove(draft)
        raise
    _sync_folder(folder)
    return path


def _name(event: Envelope) -> str:
    return f"{int(event.headers[envelope.CAPTURED_AT]):015d}-{event.headers[envelope.DELIVERY]}{SUFFIX}"


def _sync_folder(folder: str) -> None:
    if os.name != "posix":  # Windows has no such call
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: str) -> str:
    try:
        os.makedirs(folder, mode=0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    return folder


def _make_room(home: str) -> None:
    files = rejected(home)
    sizes = [os.path.getsize(path) for path in files]
    while files and (len(files) > REJECTED_FILES_MAX or sum(sizes) > REJECTED_BYTES_MAX):
        remove(files.pop(0))
        sizes.pop(0)


def _events_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [os.path.join(folder, name) for name in sorted(names) if name.endswith(SUFFIX) and not name.startswith(".")]


def _spool(home: str) -> str:
    return os.path.join(home, "spool")


def _rejected(home: str) -> str:
    return os.path.join(home, "spool", "rejected")
