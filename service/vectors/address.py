"""Where the vector process listens: a Unix socket in the data folder, also when its path is too long for one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.vectors.protocol import VectorsUnavailable

UNIX_PATH_BYTES = 100
"""Linux takes 107 bytes, macOS 103."""
OPEN_FILES = Path("/proc/self/fd")


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A name for the socket that is short enough, good until the end of the block. Raises `VectorsUnavailable`."""
    if len(os.fsencode(path)) <= UNIX_PATH_BYTES:
        yield os.fspath(path)
        return
    if not OPEN_FILES.exists():
        raise VectorsUnavailable(f"the path {path} is too long for a socket: choose a shorter GAPLESS_HOME")
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        yield f"{OPEN_FILES}/{folder}/{path.name}"
    finally:
        os.close(folder)
