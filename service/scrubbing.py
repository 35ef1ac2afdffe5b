"""Deleted bytes: what was deleted stays readable in the database's files until they are written anew."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from service import fulltext
from service.database import open_writable, translated
from service.errors import StoreUnavailable

PATIENCE_MS = 60_000
"""How long other writers and readers are waited for."""
TRUNCATED_WITHIN_S = 10.0
LOOK_AGAIN_S = 0.05

HAS_INDEX = "SELECT 1 FROM sqlite_master WHERE name = '{table}_fts_insert' AND type = 'trigger'"
OPTIMIZE = "INSERT INTO {table}_fts ({table}_fts) VALUES ('optimize')"


def scrub(path: Path) -> None:
    """Write the database anew from what it still holds, and empty its log.

    Blocks, and lets other writers wait, as long as copying the file takes. The text index is merged first: until then
    it holds the words of deleted rows beside a mark that they are gone. Raises `StoreUnavailable` when another process
    does not let go of the file.
    """
    try:
        with closing(open_writable(path)) as connection:
            connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
            for table in fulltext.INDEXED:
                if connection.execute(HAS_INDEX.format(table=table)).fetchone():
                    connection.execute(OPTIMIZE.format(table=table))
            connection.execute("VACUUM")
            _empty_log(connection)
    except sqlite3.Error as error:
        raise translated(error) from error


def _empty_log(connection: sqlite3.Connection) -> None:
    deadline = time.monotonic() + TRUNCATED_WITHIN_S
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > deadline:
            raise StoreUnavailable("the log is in use, so deleted bytes may still be in it; vacuum again in a moment")
        time.sleep(LOOK_AGAIN_S)
