"""What `/stream` tells, written in the transaction that changed the row."""

from collections.abc import Sequence
from typing import Any

import orjson

from service.database import Reader, Row, Tx

KEEP_ROWS = 10_000
KEEP_MS = 7 * 86_400_000

INSERT = "INSERT INTO outbox (event, data, created_at_epoch) VALUES (:event, :data, :now)"
AFTER = "SELECT id, event, data FROM outbox WHERE id > :after ORDER BY id LIMIT :limit"
ENDS = "SELECT coalesce(min(id), 0) AS first, coalesce(max(id), 0) AS last FROM outbox"
WITHDRAW = """
UPDATE outbox SET data = json_object('id', json_extract(data, '$.id'), 'deleted', json('true'))
WHERE event = :event AND json_extract(data, '$.id') IN (SELECT value FROM json_each(:ids))
"""
TRIM = """
DELETE FROM outbox
WHERE created_at_epoch < :before OR id <= (SELECT max(id) FROM outbox) - :rows
"""


def tell(tx: Tx, event: str, data: dict[str, Any], *, now: int) -> None:
    """`event` is observation, summary, prompt, queue or health."""
    tx.run(INSERT, {"event": event, "data": orjson.dumps(data).decode(), "now": now})


def withdraw(tx: Tx, event: str, ids: Sequence[int]) -> None:
    """What was told of these records says no more than that they are gone."""
    tx.run(WITHDRAW, {"event": event, "ids": orjson.dumps(ids).decode()})


def after(reader: Reader, after_id: int, *, limit: int) -> list[Row]:
    """Rows (id, event, data as JSON text) that came after `after_id`, oldest first."""
    return reader.all(AFTER, {"after": after_id, "limit": limit})


def ends(reader: Reader) -> tuple[int, int]:
    """The first and the last id held; (0, 0) when empty."""
    row = reader.one(ENDS)
    return (row["first"], row["last"]) if row else (0, 0)


def trim(tx: Tx, *, now: int) -> int:
    """Drop what is older than 7 days or beyond the newest 10,000 rows; the number dropped."""
    return tx.run(TRIM, {"before": now - KEEP_MS, "rows": KEEP_ROWS})
