"""What became of observations that were shown: viewed, fetched whole, cited in an answer."""

from collections.abc import Sequence
from enum import StrEnum

import orjson

from service.database import Tx
from service.errors import NotFound


class Signal(StrEnum):
    VIEWED = "viewed"
    FETCHED = "fetched"
    CITED = "cited"


INSERT = """
INSERT INTO observation_feedback (observation_id, signal_type, created_at_epoch)
SELECT id, :signal, :now FROM observations WHERE id IN (SELECT value FROM json_each(:ids))
"""


def note(tx: Tx, observation_ids: Sequence[int], signal: Signal, *, now: int) -> int:
    """Record a signal for each of the observations that there are; their number."""
    return tx.run(INSERT, {"ids": orjson.dumps(list(observation_ids)).decode(), "signal": signal.value, "now": now})


def note_one(tx: Tx, observation_id: int, signal: Signal, *, now: int) -> None:
    """Raises `NotFound`."""
    if not note(tx, [observation_id], signal, now=now):
        raise NotFound(f"there is no observation {observation_id}; search finds those that exist")
