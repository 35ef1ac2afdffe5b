"""The queue as people see it: depth, messages, replay, health."""

from dataclasses import dataclass
from typing import Any

import orjson

from service.database import Reader, Row, Tx
from service.errors import InvalidInput, NotFound
from service.models import MessageState

STATES = "SELECT state, count(*) AS n FROM pending_messages GROUP BY state"
OLDEST = "SELECT min(created_at_epoch) FROM pending_messages WHERE state IN ('pending', 'processing')"
OLDEST_DUE = "SELECT min(due_at_epoch) FROM sessions WHERE due_at_epoch IS NOT NULL"
LAST_COMPLETED = """
SELECT max(finished_at_epoch) FROM pending_messages
WHERE finished_at_epoch > :since AND (state IN ('done', 'failed') OR reason = 'nothing_to_record')
"""
EXPIRED = "SELECT count(*) FROM pending_messages WHERE state = 'failed' AND reason = 'expired'"
NOT_QUEUED = "SELECT reason, count FROM not_queued ORDER BY reason"
COUNT_NOT_QUEUED = """
INSERT INTO not_queued (reason, count) VALUES (:reason, 1) ON CONFLICT (reason) DO UPDATE SET count = count + 1
"""
MESSAGE_COLUMNS = """id, event_key, message_type, hook_event, tool_name, session_id, project, state, reason, attempts,
crashes, captured_at_epoch, created_at_epoch, finished_at_epoch, error"""
CHOSEN = """
FROM pending_messages WHERE (:session IS NULL OR session_id = :session) AND (:project IS NULL OR project = :project)
"""
NEWEST_MESSAGES = f"SELECT {MESSAGE_COLUMNS} {CHOSEN} ORDER BY id DESC LIMIT :limit OFFSET :offset"
COUNT_MESSAGES = f"SELECT count(*) {CHOSEN}"
NEWEST_IN_STATE = f"SELECT {MESSAGE_COLUMNS} {CHOSEN} AND state = :state ORDER BY id DESC LIMIT :limit OFFSET :offset"
COUNT_IN_STATE = f"SELECT count(*) {CHOSEN} AND state = :state"
MESSAGE = f"""
SELECT {MESSAGE_COLUMNS}, payload FROM pending_messages LEFT JOIN message_payloads ON message_id = id WHERE id = :id
"""
REPLAYABLE = """
SELECT id, session_id FROM pending_messages
WHERE has_payload AND state NOT IN ('pending', 'processing')
  AND (coalesce(reason, '') <> 'noise' OR :ids IS NOT NULL OR :state IS NOT NULL)
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
  AND (:state IS NULL OR state = :state) AND (:session IS NULL OR session_id = :session)
  AND (:project IS NULL OR project = :project)
  AND (:since IS NULL OR captured_at_epoch >= :since) AND (:until IS NULL OR captured_at_epoch <= :until)
ORDER BY id
"""
CO_SOURCES = """
SELECT DISTINCT j.value AS id FROM {table} AS t, json_each(t.source_message_ids) AS j
WHERE t.session_id = :session_id
  AND EXISTS (SELECT 1 FROM json_each(t.source_message_ids) k WHERE k.value IN (SELECT value FROM json_each(:ids)))
"""
CO_SOURCE_STATEMENTS = tuple(CO_SOURCES.format(table=table) for table in ("observations", "session_summaries"))
REPLAY = """
UPDATE pending_messages SET state = 'pending', reason = NULL, error = NULL, attempts = 0, crashes = 0,
    replays = replays + 1, not_before_epoch = 0, finished_at_epoch = NULL
WHERE id IN (SELECT value FROM json_each(:ids)) AND state NOT IN ('pending', 'processing') AND has_payload
"""
REPLAY_DUE = """
UPDATE sessions SET due_at_epoch = :now WHERE session_id IN (
    SELECT session_id FROM pending_messages WHERE id IN (SELECT value FROM json_each(:ids)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which messages a replay is about; at least one of them is given. Times in ms since the epoch, inclusive."""

    ids: tuple[int, ...] | None = None
    state: str | None = None
    session: str | None = None
    project: str | None = None
    since: int | None = None
    until: int | None = None

    def params(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in ("state", "session", "project", "since", "until")}
        return {**given, "ids": None if self.ids is None else _json(self.ids)}


def count_not_queued(tx: Tx, reason: str) -> None:
    tx.run(COUNT_NOT_QUEUED, {"reason": reason})


def depth(reader: Reader, *, now: int) -> dict[str, Any]:
    """`states` by name, `oldest_pending_age_s` (None: nothing waits), `not_queued` by reason, `expired` ones."""
    states = dict.fromkeys((state.value for state in MessageState), 0)
    states.update({row["state"]: row["n"] for row in reader.all(STATES)})
    oldest = reader.value(OLDEST)
    reasons = dict.fromkeys(("private", "excluded", "protocol", "self", "ignored"), 0)
    reasons.update({row["reason"]: row["count"] for row in reader.all(NOT_QUEUED)})
    return {
        "states": states,
        "oldest_pending_age_s": None if oldest is None else round((now - oldest) / 1000, 3),
        "not_queued": reasons,
        "expired": reader.value(EXPIRED),
    }


def stalled_ms(reader: Reader, *, window_ms: int, now: int) -> int | None:
    """How long the oldest due work has waited, if longer than `window_ms` and nothing came to an end meanwhile."""
    due = reader.value(OLDEST_DUE)
    if due is None or now - due <= window_ms:
        return None
    moved = reader.value(LAST_COMPLETED, {"since": now - window_ms})
    return None if moved else now - due


def messages(
    reader: Reader, *, state: str | None, session: str | None, project: str | None, limit: int, offset: int
) -> tuple[int, list[dict[str, Any]]]:
    """(total, rows), newest first."""
    params = {"state": state, "session": session, "project": project, "limit": limit, "offset": offset}
    newest, count = (NEWEST_MESSAGES, COUNT_MESSAGES) if state is None else (NEWEST_IN_STATE, COUNT_IN_STATE)
    return reader.value(count, params), [dict(row) for row in reader.all(newest, params)]


def message(reader: Reader, message_id: int) -> dict[str, Any]:
    """One message with its stored payload (None after retention). Raises `NotFound`."""
    row = reader.one(MESSAGE, {"id": message_id})
    if row is None:
        raise NotFound(f"there is no message {message_id}")
    return {**dict(row), "payload": None if row["payload"] is None else orjson.loads(row["payload"])}


def replay(tx: Tx, selection: Selection, *, dry_run: bool, now: int) -> list[int]:
    """Put finished messages back into the queue; their ids. What they make then replaces what they made before.

    Messages that made an observation together come back together, or the new one would hold less than the old. Those
    whose payload retention dropped can't come back; noise does only by id or state. Raises `InvalidInput` when nothing
    is selected by.
    """
    if selection == Selection():
        raise InvalidInput("say which messages: ids, state, session, project, since or until", field="ids")
    chosen = tx.all(REPLAYABLE, selection.params())
    ids = _with_co_sources(tx, chosen)
    if ids and not dry_run:
        params = {"ids": _json(ids), "now": now}
        tx.run(REPLAY, params)
        tx.run(REPLAY_DUE, params)
    return ids


def _with_co_sources(tx: Tx, chosen: list[Row]) -> list[int]:
    by_session: dict[str, set[int]] = {}
    for row in chosen:
        by_session.setdefault(row["session_id"], set()).add(row["id"])
    whole: set[int] = set()
    for session_id, ids in by_session.items():
        whole |= ids
        while not (more := _co_sources(tx, session_id, whole)) <= whole:
            whole |= more
    if whole == {row["id"] for row in chosen}:
        return sorted(whole)
    return [row["id"] for row in tx.all(REPLAYABLE, Selection(ids=tuple(whole)).params())]


def _co_sources(tx: Tx, session_id: str, ids: set[int]) -> set[int]:
    params = {"session_id": session_id, "ids": _json(ids)}
    return {row["id"] for statement in CO_SOURCE_STATEMENTS for row in tx.all(statement, params)}


def _json(items: Any) -> str:
    return orjson.dumps(list(items)).decode()
