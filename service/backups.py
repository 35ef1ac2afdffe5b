"""Copies of the database: made while it is in use, checked before they are trusted, put back when nothing runs."""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from migrations import runner
from service.core import prepare_database
from service.database import open_writable, translated
from service.errors import SchemaError, StoreError
from service.liveness import AlreadyRunning, live_workers, only_service
from service.private_files import make_folder
from service.settings import Configuration

PAGES_PER_STEP = 2_000
"""8 MB; writers get their turn between two steps."""
REPLACED = "replaced"
HALF = ".part"
"""Of the name of a copy that is not whole yet."""
BESIDE = ("", "-wal", "-shm")
"""The files that make up a database."""
FORGET_INDEX = "DELETE FROM watermarks"
"""The vector index speaks of the database that was replaced: without a mark it is made anew from the stored vectors."""


def back_up(database: Path, folder: Path, *, now: int) -> Path:
    """A checked copy of the database in `folder`; works while others write. Raises `StoreError`."""
    make_folder(folder)
    copy = _free_name(folder, "gapless", now)
    half = copy.with_name(copy.name + HALF)
    try:
        with closing(sqlite3.connect(_reading(database), uri=True)) as source:
            _copy(source, half)
        _check(half)
        half.replace(copy)
    except sqlite3.Error as error:
        raise translated(error) from error
    finally:
        _remove(half)
    return copy


def restore(configuration: Configuration, backup: Path, *, now: int) -> Path | None:
    """Put a backup in the place of the database; where the one that was there is kept now, None when there was none.

    Raises `AlreadyRunning` while the service or workers run, `StoreError` and `SchemaError` when the file is no sound
    database of ours, or newer than this code: then nothing is changed.
    """
    make_folder(configuration.run)
    with only_service(configuration.run):
        if live_workers(configuration.run):
            raise AlreadyRunning("workers run on this data folder; end `gapless work` first")
        database = configuration.database
        made_new = database.with_name(f"{database.name}.restored{HALF}")
        try:
            _take_in(configuration, backup, made_new)
            kept = _put_aside(database, make_folder(configuration.home / "backups"), now=now)
            made_new.replace(database)
        finally:
            _remove(made_new)
    return kept


def newest(folder: Path) -> Path | None:
    """The last copy that was made, by hand or before an upgrade; none of what a restore replaced."""
    made = (path for path in folder.glob("*.db") if not path.name.startswith(REPLACED))
    return max(made, key=lambda path: path.stat().st_mtime, default=None)


def _take_in(configuration: Configuration, backup: Path, place: Path) -> None:
    """A checked copy of the backup in this code's schema, as one file."""
    if not backup.is_file():
        raise StoreError(f"there is no file {backup}; `gapless backup` makes one, {configuration.home / 'backups'}")
    _remove(place)
    try:
        with closing(sqlite3.connect(_at_rest(backup), uri=True)) as source:
            _copy(source, place)
        _check(place)
        prepare_database(place, settings=configuration.settings, backups=configuration.home / "backups")
        with closing(open_writable(place)) as connection:
            connection.execute(FORGET_INDEX)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{backup} cannot be restored: {error}; take another backup") from error


def _copy(source: sqlite3.Connection, place: Path) -> None:
    with closing(open_writable(place)) as copy:
        source.backup(copy, pages=PAGES_PER_STEP)


def _check(path: Path) -> None:
    """Raises `StoreError` when the file is damaged, `SchemaError` when it is not ours."""
    with closing(open_writable(path)) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StoreError(f"the copy is damaged: {found}")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchone():
            raise SchemaError("this is no database of Gapless; give a file that `gapless backup` made")
        try:
            runner.due(connection)
        except runner.MigrationError as error:
            raise SchemaError(str(error)) from error


def _put_aside(database: Path, folder: Path, *, now: int) -> Path | None:
    """Move the database away with its log, whatever state it is in."""
    if not database.exists():
        return None
    kept = _free_name(folder, REPLACED, now)
    for ending in reversed(BESIDE):
        with suppress(FileNotFoundError):
            Path(f"{database}{ending}").replace(f"{kept}{ending}")
    return kept


def _free_name(folder: Path, word: str, now: int) -> Path:
    stem = f"{word}-{datetime.fromtimestamp(now / 1000, UTC):%Y%m%d-%H%M%S}"
    names = (f"{stem}{more}.db" for more in ("", *(f"-{number}" for number in range(2, 1_000))))
    return next(path for name in names if not (path := folder / name).exists())


def _remove(path: Path) -> None:
    for ending in BESIDE:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def _at_rest(path: Path) -> str:
    """Without a log beside it nobody writes to it, its folder may be read-only, and nothing is left there."""
    has_log = Path(f"{path}-wal").exists()
    return _reading(path) if has_log else f"{path.absolute().as_uri()}?immutable=1"


def _reading(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"
