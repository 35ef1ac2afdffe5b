"""What each session was given already: the table `injected`, emptied when the client empties its context window."""

import hashlib
from collections.abc import Iterable

from service.database import Reader, Tx

START = "start-"
"""With the source of a session's start: stands for the context that it was given then."""
DOUBLED_MS = 5_000
"""The same start of a session within this time is one event, told by two hooks."""
SOURCE_CHARS = 40
ROWS_PER_SWEEP = 1_000

ITEMS = "SELECT item FROM injected WHERE session_id = :session_id"
LAST = "SELECT at_epoch FROM injected WHERE session_id = :session_id AND item = :item"
ADD = """
INSERT INTO injected (session_id, item, at_epoch) VALUES (:session_id, :item, :now)
ON CONFLICT (session_id, item) DO UPDATE SET at_epoch = :now
"""
CLEAR = "DELETE FROM injected WHERE session_id = :session_id"
TRIM = """
DELETE FROM injected WHERE (session_id, item) IN (
    SELECT session_id, item FROM injected WHERE at_epoch < :before LIMIT :limit)
"""


def items(reader: Reader, session_id: str) -> set[str]:
    return {row["item"] for row in reader.all(ITEMS, {"session_id": session_id})}


def has_start(known: Iterable[str]) -> bool:
    return any(item.startswith(START) for item in known)


def begin(tx: Tx, session_id: str, source: str, given: Iterable[str], *, now: int) -> bool:
    """A context window begins with the context of a session's start. False: it has just begun so."""
    item = f"{START}{source[:SOURCE_CHARS]}"
    last = tx.value(LAST, {"session_id": session_id, "item": item})
    if last is not None and now - last < DOUBLED_MS:
        return False
    tx.run(CLEAR, {"session_id": session_id})
    add(tx, session_id, [item, *given], now=now)
    return True


def add(tx: Tx, session_id: str, given: Iterable[str], *, now: int) -> None:
    for item in given:
        tx.run(ADD, {"session_id": session_id, "item": item, "now": now})


def trim(tx: Tx, *, before: int) -> int:
    """Forget what was given before a time; the number of items."""
    return tx.run(TRIM, {"before": before, "limit": ROWS_PER_SWEEP})


def file_item(path: str) -> str:
    """How a file stands in the table: without its name, which is the user's."""
    return f"file-{hashlib.sha256(path.encode('utf-8', 'replace')).hexdigest()[:16]}"
