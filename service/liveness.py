"""Who is alive: a process holds a lock file as long as it lives; a pid proves nothing."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from service.errors import GaplessError

PRIVATE_FILE = 0o600
PROBE_S = 0.5
"""Who looks whether a lock is free holds it for an instant; whoever wants to keep it outlasts that."""


class AlreadyRunning(GaplessError):
    pass


@contextmanager
def only_service(run: Path) -> Iterator[None]:
    """Hold the data folder's service lock. Raises `AlreadyRunning` when another process has it."""
    lock = FileLock(run / "service.lock", mode=PRIVATE_FILE)
    try:
        lock.acquire(timeout=PROBE_S, poll_interval=0.01)
    except Timeout:
        raise AlreadyRunning(
            f"a service already runs on {run.parent}; `gapless status` shows it, `gapless down` ends it"
        ) from None
    try:
        yield
    finally:
        lock.release()


def service_is_alive(run: Path) -> bool:
    return not _is_free(run / "service.lock")


@contextmanager
def worker_identity(run: Path) -> Iterator[str]:
    """A name for this process's claims, alive as long as the lock of that name is held."""
    folder = run / "workers"
    folder.mkdir(mode=0o700, exist_ok=True)
    worker = f"{os.getpid()}-{secrets.token_hex(4)}"
    path = folder / f"{worker}.lock"
    with FileLock(path, mode=PRIVATE_FILE):
        yield worker
    path.unlink(missing_ok=True)


class Turn:
    """A job that only one process of a data folder does at a time; another's turn comes when it ends."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path, mode=PRIVATE_FILE)

    def is_mine(self) -> bool:
        """Takes it when nobody has it."""
        if not self._lock.is_locked:
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                return False
        return True

    def close(self) -> None:
        self._lock.release()


def live_workers(run: Path) -> int:
    """How many processes work on this data folder."""
    return sum(not _is_free(path) for path in (run / "workers").glob("*.lock"))


def dead_workers(run: Path, workers: list[str]) -> list[str]:
    """Those of the named workers whose process is provably gone."""
    dead = [worker for worker in workers if _is_free(run / "workers" / f"{worker}.lock")]
    for worker in dead:
        (run / "workers" / f"{worker}.lock").unlink(missing_ok=True)
    return dead


def _is_free(path: Path) -> bool:
    if not path.exists():
        return True
    lock = FileLock(path, mode=PRIVATE_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    lock.release()
    return True
