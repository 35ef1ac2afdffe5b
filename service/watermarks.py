"""How far the vector index has come: the sequence of changes, the mark on it, and the gaps behind the mark.

Triggers number every insert, edit and delete of a record. The index follows that sequence: at any time each change up
to the mark is in the index or is one of the gaps. Only the backfill worker moves the mark.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from service import outbox
from service.database import Reader, Row, Tx
from service.errors import FenceLost

NAME = "vectors"
FIRST_RETRY_MS = 60_000
LONGEST_RETRY_MS = 6 * 3_600_000
ATTEMPTS = 10
"""Of one record, over half a day; then it is given up until it changes or a person asks for it."""
FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 60_000
BROKEN_AFTER = 3
"""Failures of the whole index in a row: what a restart of its process cures is over by then."""

MARK = """
SELECT seq, index_id, model, failures, coalesce(retry_at_epoch, 0) AS retry_at_epoch
FROM watermarks WHERE name = :name
"""
NEWEST = "SELECT coalesce(max(seq), 0) FROM changes"
ABOVE = "SELECT seq, doc_type, record_id FROM changes WHERE seq > :seq ORDER BY seq LIMIT :limit"
DUE_GAPS = """
SELECT c.seq, doc_type, record_id FROM gaps JOIN changes c USING (doc_type, record_id)
WHERE not_before_epoch <= :now AND c.seq <= :seq ORDER BY not_before_epoch LIMIT :limit
"""
STILL_THERE = "SELECT seq FROM changes WHERE seq IN (SELECT value FROM json_each(:seqs))"
BEGIN = """
INSERT INTO watermarks (name, index_id, model) VALUES (:name, :index_id, :model)
ON CONFLICT (name) DO UPDATE SET seq = 0, index_id = :index_id, model = :model
"""
FORGET_GAPS = "DELETE FROM gaps"
ADVANCE = """
UPDATE watermarks SET seq = :to, failures = 0, error = NULL, failing_epoch = NULL, retry_at_epoch = NULL
WHERE name = :name AND seq = :seq AND index_id = :index_id
"""
SEEN = "UPDATE watermarks SET seen_at_epoch = :at WHERE name = :name"
LEAVE_GAP = """
INSERT INTO gaps (doc_type, record_id, attempts, error, not_before_epoch, first_failed_epoch)
VALUES (:doc_type, :record_id, :attempts, :error, :not_before, :first_failed)
ON CONFLICT (doc_type, record_id) DO UPDATE SET attempts = :attempts, error = :error, not_before_epoch = :not_before,
    first_failed_epoch = :first_failed
"""
GAP = "SELECT attempts, first_failed_epoch FROM gaps WHERE doc_type = :doc_type AND record_id = :record_id"
CLOSE_GAP = "DELETE FROM gaps WHERE doc_type = :doc_type AND record_id = :record_id"
TRY_AGAIN = "UPDATE gaps SET attempts = 0, not_before_epoch = :now"
FAIL = """
INSERT INTO watermarks (name, failures, error, failing_epoch, retry_at_epoch)
VALUES (:name, :failures, :error, :now, :retry_at)
ON CONFLICT (name) DO UPDATE SET failures = :failures, error = :error, retry_at_epoch = :retry_at,
    failing_epoch = coalesce(failing_epoch, :now)
"""
REPORT = """
SELECT
    max((SELECT count(*) FROM changes WHERE seq > coalesce(mark.seq, 0)),
        mark.name IS NOT NULL AND mark.seen_at_epoch IS NULL) AS behind,
    (SELECT count(*) FROM gaps) AS gaps,
    (SELECT count(*) FROM gaps WHERE not_before_epoch <= :now) AS due,
    (SELECT count(*) FROM gaps WHERE not_before_epoch IS NULL) AS given_up,
    mark.failures, mark.error, mark.failing_epoch, mark.retry_at_epoch
FROM (SELECT 1) LEFT JOIN watermarks mark ON mark.name = :name
"""
BROKEN = "SELECT failing_epoch, error FROM watermarks WHERE name = :name AND failures >= :failures"
GIVEN_UP = "SELECT doc_type, record_id, error FROM gaps WHERE not_before_epoch IS NULL ORDER BY first_failed_epoch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The last insert, edit or delete of a record. `seq` is its name: once the record changes again, no row has it."""

    seq: int
    doc_type: str
    record_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where the index stands; `index_id` is '' before there ever was one. `newest` is the last change there is. After
    `failures` in a row of the whole index nothing is tried before `retry_at_epoch`."""

    seq: int = 0
    index_id: str = ""
    model: str = ""
    newest: int = 0
    failures: int = 0
    retry_at_epoch: int = 0


NOT_IN_USE: dict[str, Any] = {"in_use": False, "lag": 0, "gaps": 0, "given_up": 0, "failing": None}
"""The report where there is no index: CHROMA=off."""


def mark(reader: Reader) -> Mark:
    row = reader.one(MARK, {"name": NAME})
    return Mark(**dict(row or {}), newest=reader.value(NEWEST))


def above(reader: Reader, seq: int, *, limit: int) -> list[Change]:
    """The next changes after `seq`, in order."""
    return [_change(row) for row in reader.all(ABOVE, {"seq": seq, "limit": limit})]


def due_gaps(reader: Reader, seq: int, *, limit: int, now: int) -> list[Change]:
    """Records behind the mark `seq` that are to be tried again, longest due first."""
    return [_change(row) for row in reader.all(DUE_GAPS, {"seq": seq, "limit": limit, "now": now})]


def current(tx: Tx, changes: Iterable[Change]) -> set[Change]:
    """Those whose record has not changed since: what was read of the others is out of date."""
    by_seq = {change.seq: change for change in changes}
    rows = tx.all(STILL_THERE, {"seqs": orjson.dumps(list(by_seq)).decode()})
    return {by_seq[row["seq"]] for row in rows}


def begin(tx: Tx, *, index_id: str, model: str) -> None:
    """Another index, or another model: everything is to be indexed, and whatever failed has another chance."""
    tx.run(BEGIN, {"name": NAME, "index_id": index_id, "model": model})
    tx.run(FORGET_GAPS)


def advance(tx: Tx, mark: Mark, *, to: int, now: int) -> None:
    """Move the mark; what was held against the index is forgotten. Raises `FenceLost` when the mark is not where it
    was: another process moved it."""
    if not tx.run(ADVANCE, {"name": NAME, "seq": mark.seq, "index_id": mark.index_id, "to": to}):
        raise FenceLost("another process moved the mark of the vector index")
    if mark.failures >= BROKEN_AFTER:
        outbox.tell(tx, "health", {"index": "works again"}, now=now)


def doubt(tx: Tx) -> None:
    """Workers begin: nobody knows what became of the index since it was last seen."""
    tx.run(SEEN, {"name": NAME, "at": None})


def seen(tx: Tx, *, now: int) -> None:
    """The index is the one the mark speaks of, and whole."""
    tx.run(SEEN, {"name": NAME, "at": now})


def leave_gap(tx: Tx, mark: Mark, change: Change, error: str, *, now: int) -> None:
    """The record could not be indexed; tried again after 1 min, doubling to 6 h, ten times. A change counts anew."""
    record = {"doc_type": change.doc_type, "record_id": change.record_id}
    before = tx.one(GAP, record) if change.seq <= mark.seq else None
    attempts = 1 + (before["attempts"] if before else 0)
    wait_ms = min(FIRST_RETRY_MS * 2 ** (attempts - 1), LONGEST_RETRY_MS)
    tx.run(
        LEAVE_GAP,
        {
            **record,
            "attempts": attempts,
            "error": error,
            "not_before": None if attempts >= ATTEMPTS else now + wait_ms,
            "first_failed": before["first_failed_epoch"] if before else now,
        },
    )


def close_gap(tx: Tx, change: Change) -> None:
    tx.run(CLOSE_GAP, {"doc_type": change.doc_type, "record_id": change.record_id})


def fail(tx: Tx, mark: Mark, error: str, *, now: int) -> None:
    """The index as a whole is away: nothing moves, the next try is in 1 s, doubling to 1 min."""
    failures = mark.failures + 1
    retry_at = now + min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS)
    tx.run(FAIL, {"name": NAME, "failures": failures, "error": error, "now": now, "retry_at": retry_at})
    if failures == BROKEN_AFTER:
        outbox.tell(tx, "health", {"index": "broken", "message": error}, now=now)


def broken(reader: Reader) -> Row | None:
    """Since when the index as a whole fails (`failing_epoch`) and its last `error`; None while it works. Cheap."""
    return reader.one(BROKEN, {"name": NAME, "failures": BROKEN_AFTER})


def report(reader: Reader, *, now: int) -> dict[str, Any]:
    """`lag`: records that wait for the index now, at least 1 until it was seen since the workers began; `gaps`: those
    it failed on, `given_up` among them. `failing`: None, or failures, since_epoch, last_error, retry_at_epoch of the
    index as a whole, and whether it is `broken`: more than a hiccup."""
    row = reader.one(REPORT, {"name": NAME, "now": now})
    assert row is not None  # one row, whatever the tables hold
    failing = row["failures"] and {
        "broken": row["failures"] >= BROKEN_AFTER,
        "failures": row["failures"],
        "since_epoch": row["failing_epoch"],
        "last_error": row["error"],
        "retry_at_epoch": row["retry_at_epoch"],
    }
    return {
        "in_use": True,
        "lag": row["behind"] + row["due"],
        "gaps": row["gaps"],
        "given_up": row["given_up"],
        "failing": failing or None,
    }


def _change(row: Row) -> Change:
    return Change(seq=row["seq"], doc_type=row["doc_type"], record_id=row["record_id"])
