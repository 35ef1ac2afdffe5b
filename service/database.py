"""The SQLite file: one writer thread whose waiting jobs share a commit, and threads that read beside it.

Writes are functions that take a `Tx`; they run on the writer thread, so a cancelled caller can't leave a transaction
open. Everything that queued up during one commit goes into the next (a group commit without a timer: 17 times the
throughput of a commit each at 32 clients, no delay when idle), each job in a savepoint of its own. `synchronous=FULL`
is affordable that way and survives a power cut.

Reads are functions that take a `Reader`, on a thread of their own: all statements of one share a single hop between
threads, which costs as much as fifty short statements (150 us against 3).
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from service.errors import StoreError, StoreUnavailable

T = TypeVar("T")
Params = Mapping[str, Any]
Row = sqlite3.Row

BUSY_TIMEOUT_S = 5.0
TRY_AGAIN_S = 0.01
JOURNAL_LIMIT_BYTES = 4 * 1024 * 1024
JOBS_PER_COMMIT = 128
READERS = 4
INSTRUCTIONS_PER_LOOK = 5_000
"""Of SQLite's machine, between two looks at the clock."""
PRIVATE_FILE = 0o600


class Tx:
    """A write transaction in progress, on the writer thread. Only the database module commits."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, params: Params | None = None) -> int:
        """Execute; the number of rows changed."""
        return self._connection.execute(sql, params or {}).rowcount

    def insert(self, sql: str, params: Params) -> int:
        """Execute an INSERT; the new row's id."""
        return self._connection.execute(sql, params).lastrowid or 0

    def touch(self) -> None:
        """Write a page and change nothing: shows that the file can be written."""
        self._connection.execute("PRAGMA user_version = 0")

    def all(self, sql: str, params: Params | None = None) -> list[Row]:
        return self._connection.execute(sql, params or {}).fetchall()

    def one(self, sql: str, params: Params | None = None) -> Row | None:
        # fetchall, not fetchone: a statement with RETURNING ends only when it is stepped to its end
        rows = self._connection.execute(sql, params or {}).fetchall()
        return rows[0] if rows else None

    def value(self, sql: str, params: Params | None = None) -> Any:
        row = self.one(sql, params)
        return None if row is None else row[0]


class Reader:
    """A read-only connection, on one of the threads that read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, params: Params | None = None) -> list[Row]:
        return self._connection.execute(sql, params or {}).fetchall()

    def one(self, sql: str, params: Params | None = None) -> Row | None:
        rows = self.all(sql, params)
        return rows[0] if rows else None

    def value(self, sql: str, params: Params | None = None) -> Any:
        row = self.one(sql, params)
        return None if row is None else row[0]

    @contextlib.contextmanager
    def stopped_after(self, seconds: float) -> Iterator[None]:
        """Statements that run longer than that, all in all, raise TimeoutError."""
        end = time.monotonic() + seconds
        self._connection.set_progress_handler(lambda: time.monotonic() > end, INSTRUCTIONS_PER_LOOK)
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise TimeoutError from error
            raise
        finally:
            self._connection.set_progress_handler(None, 0)


class _Readers:
    """Threads that read, each with a connection of its own, opened when there is something to read."""

    def __init__(self, path: Path, threads: int) -> None:
        self._path = path
        self._own = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="gapless-reader")

    async def run(self, work: Callable[[Reader], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, work)

    def close(self) -> None:
        self._threads.shutdown()
        for connection in self._opened:
            connection.close()

    def _run(self, work: Callable[[Reader], T]) -> T:
        try:
            return work(self._reader())
        except sqlite3.Error as error:
            raise translated(error) from error

    def _reader(self) -> Reader:
        reader: Reader | None = getattr(self._own, "reader", None)
        if reader is None:
            connection = sqlite3.connect(
                f"{self._path.as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False
            )
            connection.row_factory = Row
            connection.execute("PRAGMA query_only = ON")
            self._opened.append(connection)
            reader = self._own.reader = Reader(connection)
        return reader


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[Tx], T]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    result: T | None = None
    error: Exception | None = None

    def deliver(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


class _Writer(threading.Thread):
    """Owns the one writing connection. Ends when it meets None in its queue."""

    def __init__(self, path: Path, repair_index: Callable[[sqlite3.Connection], None]) -> None:
        super().__init__(name="gapless-writer", daemon=True)
        self._repair_index = repair_index
        self._index_is_damaged = False
        self.jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self.written = 0
        self._connection = open_writable(path)
        self._tx = Tx(self._connection)

    def run(self) -> None:
        while (first := self.jobs.get()) is not None:
            group = [first]
            stop = False
            while len(group) < JOBS_PER_COMMIT and not self.jobs.empty():
                job = self.jobs.get()
                if job is None:
                    stop = True
                    break
                group.append(job)
            self._commit(group)
            self.written += len(group)
            _deliver(group)
            if self._index_is_damaged:
                self._heal()
            if stop:
                break
        self._connection.close()

    def _commit(self, group: list[_Job[Any]]) -> None:
        """All of them or, when one fails, once more with each for itself. A job may run twice, but commits once."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if not self._run_all(group):
                self._connection.execute("ROLLBACK")
                self._connection.execute("BEGIN IMMEDIATE")
                for job in group:
                    self._run_in_savepoint(job)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for job in group:
                job.error = self._noted(error)

    def _run_all(self, group: list[_Job[Any]]) -> bool:
        """Whether every job did its work."""
        try:
            for job in group:
                job.result = job.work(self._tx)
        except Exception as error:
            if self._connection.in_transaction:
                return False
            if isinstance(error, sqlite3.Error):  # full disk, I/O error
                raise
            raise sqlite3.OperationalError("SQLite gave up the transaction") from error
        return True

    def _run_in_savepoint(self, job: _Job[Any]) -> None:
        connection = self._connection
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(self._tx)
        except Exception as error:
            if not connection.in_transaction:  # SQLite gave up the whole transaction: full disk, I/O error
                raise
            connection.execute("ROLLBACK TO job")
            job.error = self._noted(error) if isinstance(error, sqlite3.Error) else error
        connection.execute("RELEASE job")

    def _noted(self, error: sqlite3.Error) -> StoreError:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB:
            self._index_is_damaged = True
        return translated(error)

    def _heal(self) -> None:
        """The text index holds nothing of its own; writes that failed over it succeed when they are tried again."""
        with contextlib.suppress(sqlite3.Error):  # the next failing write tries again
            self._repair_index(self._connection)
        self._index_is_damaged = False


def _deliver(group: list[_Job[Any]]) -> None:
    """Wake the callers, with one hop a loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in group:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop closed while its job ran
            loop.call_soon_threadsafe(_deliver_all, jobs)


def _deliver_all(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        job.deliver()


@dataclass(slots=True)
class Database:
    """Open with `Database.open`, close with `await close()`."""

    path: Path
    _writer: _Writer
    _readers: _Readers
    _urgent: _Readers

    @classmethod
    def open(
        cls, path: Path, *, repair_index: Callable[[sqlite3.Connection], None], readers: int = READERS
    ) -> "Database":
        """The file must exist and be migrated (`migrations.runner.migrate`). `repair_index` is called on the writer
        thread when a write failed over a damaged text index. Raises `StoreError`."""
        try:
            writer = _Writer(path, repair_index)
        except sqlite3.Error as error:
            raise translated(error) from error
        writer.start()
        return cls(path=path, _writer=writer, _readers=_Readers(path, readers), _urgent=_Readers(path, 1))

    @property
    def written(self) -> int:
        """How many writes were done since it was opened."""
        return self._writer.written

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in a transaction and return its result after the commit.

        An exception in `work` undoes its own changes only. Raises `StoreUnavailable` when the file is locked by
        another process for longer than the busy timeout, full or read-only.
        """
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(work, loop, loop.create_future())
        self._writer.jobs.put(job)
        return await job.future

    async def read(self, work: Callable[[Reader], T], *, urgent: bool = False) -> T:
        """Run `work` on a thread that reads, when one is free, and return its result.

        `urgent` reads have a thread apart, for health checks that a slow search must not delay. Raises `StoreError`
        when the file can't be read.
        """
        return await (self._urgent if urgent else self._readers).run(work)

    async def close(self) -> None:
        """Finish the writes that wait, then close every connection; the writer's last, which tidies the log away."""
        for readers in (self._readers, self._urgent):
            await asyncio.to_thread(readers.close)
        self._writer.jobs.put(None)
        await asyncio.to_thread(self._writer.join)


def open_writable(path: Path) -> sqlite3.Connection:
    """A connection with our pragmas, in autocommit mode; the file is made 0600 before SQLite touches it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = Row
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_LIMIT_BYTES}")
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Tries again by itself: SQLite waits for no process that turns the same new file to WAL at this moment."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(TRY_AGAIN_S)
        else:
            return


def translated(error: Exception) -> StoreError:
    """SQLite's error as ours: what a retry may cure is `StoreUnavailable`."""
    extended = getattr(error, "sqlite_errorcode", 0)
    if extended == sqlite3.SQLITE_CORRUPT_VTAB:
        return StoreUnavailable(f"the text index is damaged and is being rebuilt ({error}); try again")
    code = extended & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(f"the database is locked by another process ({error}); try again")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreUnavailable(f"the disk that holds the database is full or failing ({error}); free some space")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreUnavailable(f"the database cannot be written ({error}); check the data folder's permissions")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(f"the database file is damaged ({error}); `gapless doctor` says what can be saved")
    return StoreError(f"the database refused a statement: {error}")
