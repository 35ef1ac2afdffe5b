"""The queue: `pending_messages`, from the commit of an event to its last state.

pending -> processing -> done | skipped | pending (retry, postponed, lease lapsed) | failed (dead letter)
done, skipped, failed -> pending (replay)

Every write to a claimed message names its `claim_no`, the fencing token; a write that finds another is refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from service import due
from service.database import Row, Tx
from service.due import FlushPolicy
from service.errors import FenceLost
from service.models import Message, MessageState, MessageType

ALONE_AFTER_ATTEMPTS = 2
"""A batch is tried twice as a whole, then each message alone: a poisoned one costs its neighbours nothing."""
ALONE_AFTER_CRASHES = 2
BURY_AFTER_CRASHES = 10

COLUMNS = """id, event_key, session_id, project, message_type, hook_event, tool_name, client_prompt_id, agent_id,
captured_at_epoch, attempts, crashes, replays, claim_no, tokens"""

BY_KEY = "SELECT id FROM pending_messages WHERE event_key = :event_key"
INSERT = """
INSERT INTO pending_messages (event_key, session_id, project, message_type, hook_event, tool_name, subject,
    client_prompt_id, agent_id, payload_bytes, tokens, state, reason, captured_at_epoch, created_at_epoch,
    finished_at_epoch)
VALUES (:event_key, :session_id, :project, :message_type, :hook_event, :tool_name, :subject,
    :client_prompt_id, :agent_id, :payload_bytes, :tokens, :state, :reason, :captured_at, :now,
    :finished_at)
"""
INSERT_PAYLOAD = "INSERT INTO message_payloads (message_id, payload) VALUES (:id, :payload)"
PAYLOADS = """
SELECT message_id, payload FROM message_payloads WHERE message_id IN (SELECT value FROM json_each(:ids))
"""
FORGET_PRIVATE = """
UPDATE pending_messages SET state = 'skipped', reason = 'private', has_payload = 0, finished_at_epoch = :now
WHERE session_id = :session_id AND state = 'pending' AND CASE
    WHEN client_prompt_id IS NOT NULL AND :client_prompt_id IS NOT NULL THEN client_prompt_id = :client_prompt_id
    ELSE captured_at_epoch >= :at AND (:until IS NULL OR captured_at_epoch < :until) END
"""
WITHDRAW = """
UPDATE pending_messages SET state = 'pending', claimed_by = NULL, lease_until_epoch = NULL
WHERE state = 'processing' AND session_id IN (
    SELECT session_id FROM pending_messages WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'processing')
RETURNING session_id
"""
FORGET = """
UPDATE pending_messages SET has_payload = 0, reason = 'forgotten', subject = NULL, error = NULL,
    state = CASE WHEN state = 'pending' THEN 'skipped' ELSE state END,
    finished_at_epoch = coalesce(finished_at_epoch, :now)
WHERE id IN (SELECT value FROM json_each(:ids))
"""

NEWEST_UNTIL = """
SELECT coalesce(max(captured_at_epoch) FILTER (WHERE message_type = 'summary'), 0) AS summary_at,
       coalesce(max(captured_at_epoch) FILTER (WHERE message_type = 'observation'
                                               AND coalesce(reason, '') NOT IN ('noise', 'private')), 0) AS event_at
FROM pending_messages
WHERE state IN ('pending', 'processing', 'done', 'skipped', 'failed') AND session_id = :session_id
  AND captured_at_epoch <= :at
"""
PICK_SESSION = """
SELECT session_id FROM sessions AS s
WHERE due_at_epoch <= :now
  AND session_id NOT IN (SELECT value FROM json_each(:held))
  AND NOT EXISTS (SELECT 1 FROM pending_messages p WHERE p.session_id = s.session_id AND p.state = 'processing')
ORDER BY due_at_epoch LIMIT 1
"""
CANDIDATES = """
SELECT id, message_type, tokens, attempts, crashes FROM pending_messages
WHERE session_id = :session_id AND state = 'pending' AND not_before_epoch <= :now
ORDER BY captured_at_epoch, id LIMIT :limit + 1
"""
CLAIM = f"""
UPDATE pending_messages
SET state = 'processing', claim_no = claim_no + 1, claimed_by = :worker, lease_until_epoch = :until
WHERE state = 'pending' AND session_id = :session_id AND id IN (SELECT value FROM json_each(:ids))
RETURNING {COLUMNS}
"""
EXTEND = """
UPDATE pending_messages SET lease_until_epoch = :until WHERE id = :id AND claim_no = :claim_no AND state = 'processing'
"""
FINISH = """
UPDATE pending_messages SET state = :state, reason = :reason, error = :error, attempts = :attempts, claimed_by = NULL,
    lease_until_epoch = NULL, not_before_epoch = :not_before, finished_at_epoch = :finished_at
WHERE id = :id AND claim_no = :claim_no AND state = 'processing'
"""
LAPSED = """
UPDATE pending_messages
SET crashes = crashes + 1, claimed_by = NULL, lease_until_epoch = NULL, not_before_epoch = 0,
    state = CASE WHEN crashes + 1 >= :bury_after THEN 'failed' ELSE 'pending' END,
    reason = CASE WHEN crashes + 1 >= :bury_after THEN 'crashes' END,
    error = 'its worker died or its lease ran out',
    finished_at_epoch = CASE WHEN crashes + 1 >= :bury_after THEN :now END
WHERE state = 'processing' AND (lease_until_epoch < :now OR claimed_by IN (SELECT value FROM json_each(:dead)))
RETURNING session_id
"""
HOLDERS = "SELECT DISTINCT claimed_by FROM pending_messages WHERE state = 'processing'"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    event_key: str
    session_id: str
    project: str
    message_type: MessageType
    hook_event: str
    payload: str
    payload_bytes: int
    tokens: int
    captured_at: int
    tool_name: str | None = None
    subject: str | None = None
    client_prompt_id: str | None = None
    agent_id: str | None = None
    noise: bool = False


def by_key(tx: Tx, event_key: str) -> int | None:
    found: int | None = tx.value(BY_KEY, {"event_key": event_key})
    return found


def enqueue(tx: Tx, message: NewMessage, *, now: int) -> int:
    """Insert; noise is stored with state skipped at once. The caller has looked for the key and sets the due time."""
    message_id = tx.insert(
        INSERT,
        {
            "event_key": message.event_key,
            "session_id": message.session_id,
            "project": message.project,
            "message_type": message.message_type.value,
            "hook_event": message.hook_event,
            "tool_name": message.tool_name,
            "subject": message.subject,
            "client_prompt_id": message.client_prompt_id,
            "agent_id": message.agent_id,
            "payload_bytes": message.payload_bytes,
            "tokens": message.tokens,
            "state": MessageState.SKIPPED.value if message.noise else MessageState.PENDING.value,
            "reason": "noise" if message.noise else None,
            "captured_at": message.captured_at,
            "now": now,
            "finished_at": now if message.noise else None,
        },
    )
    tx.run(INSERT_PAYLOAD, {"id": message_id, "payload": message.payload})
    return message_id


def newest_until(tx: Tx, session_id: str, *, at: int) -> Row:
    """When the newest summary and the newest event of substance up to `at` were captured; 0: there is none."""
    return tx.all(NEWEST_UNTIL, {"session_id": session_id, "at": at})[0]


def forget_private(
    tx: Tx, session_id: str, client_prompt_id: str | None, *, at: int, until: int | None, now: int
) -> int:
    """A private prompt that came late: what waits of its turn (from `at` to `until`, None: open) leaves nothing; the
    number of messages."""
    return tx.run(
        FORGET_PRIVATE,
        {"session_id": session_id, "client_prompt_id": client_prompt_id, "at": at, "until": until, "now": now},
    )


def forget(tx: Tx, ids: Sequence[int], *, now: int) -> None:
    """Drop the payloads of messages for good: nothing can be made of them again. What waits or is in work is skipped; a
    claim that holds any of them ends, and its other messages wait again."""
    params = {"ids": _json(ids), "now": now}
    for session_id in {row["session_id"] for row in tx.all(WITHDRAW, params)}:
        due.at_once(tx, session_id, now=now)
    tx.run(FORGET, params)


def claim(
    tx: Tx, policy: FlushPolicy, *, worker: str, limit: int, lease_ms: int, held: Iterable[str], now: int
) -> list[Message]:
    """Claim the next batch of the session that is due longest; [] when none is.

    A session is worked by one claim at a time. `held` are sessions that still have events in the spool. A batch is a
    run of messages in the session's order up to the end of its turn, bounded by `limit` (a summary that ends the turn
    shares the last call) and, for a model, by `policy.batch_tokens`; a message that failed or crashed before comes
    alone.
    """
    while (session_id := tx.value(PICK_SESSION, {"now": now, "held": _json(held)})) is not None:
        rows = tx.all(CANDIDATES, {"session_id": session_id, "now": now, "limit": limit})
        if ids := _batch_of(rows, policy, limit):
            params = {"session_id": session_id, "ids": _json(ids), "worker": worker, "until": now + lease_ms}
            payloads = {row["message_id"]: row["payload"] for row in tx.all(PAYLOADS, params)}
            claimed = [_message(row, payloads.get(row["id"], "{}")) for row in tx.all(CLAIM, params)]
            cut = len(ids) < len(rows) and rows[len(ids) - 1]["message_type"] != MessageType.SUMMARY
            due.after_claim(tx, session_id, policy, cut=cut, now=now)
            return sorted(claimed, key=lambda m: (m.captured_at_epoch, m.message_id))
        due.at_earliest_retry(tx, session_id)
    return []


def _batch_of(rows: Sequence[Row], policy: FlushPolicy, limit: int) -> list[int]:
    ids: list[int] = []
    tokens = 0
    for row in rows:
        alone = row["attempts"] >= ALONE_AFTER_ATTEMPTS or row["crashes"] >= ALONE_AFTER_CRASHES
        tokens += row["tokens"]
        full = len(ids) >= limit and row["message_type"] != MessageType.SUMMARY
        if ids and (alone or full or (not policy.by_turn and tokens > policy.batch_tokens)):
            break
        ids.append(row["id"])
        if alone or (policy.by_turn and row["message_type"] == MessageType.SUMMARY):
            break
    return ids


def extend(tx: Tx, messages: Iterable[Message], *, until: int) -> None:
    """Heartbeat of a long compression. Raises `FenceLost` when a message was taken over."""
    for message in messages:
        if not tx.run(EXTEND, {"id": message.message_id, "claim_no": message.claim_no, "until": until}):
            raise FenceLost(f"message {message.message_id} was taken over by another worker")


def finish(
    tx: Tx,
    message: Message,
    state: MessageState,
    *,
    now: int,
    reason: str | None = None,
    error: str | None = None,
    bad_answer: bool = False,
) -> None:
    """Acknowledge, skip or bury a claimed message. Raises `FenceLost`."""
    _leave(
        tx,
        message,
        state,
        reason=reason,
        error=error,
        attempts=message.attempts + bad_answer,
        not_before=0,
        finished_at=now,
    )


def retry(tx: Tx, message: Message, *, at: int, error: str, bad_answer: bool = True) -> None:
    """Give a claimed message back, due at `at`; a bad answer costs it an attempt. Raises `FenceLost`."""
    _leave(
        tx,
        message,
        MessageState.PENDING,
        reason=None,
        error=error,
        attempts=message.attempts + bad_answer,
        not_before=at,
        finished_at=None,
    )
    due.at_once(tx, message.session_id, now=at)


def release_lapsed(tx: Tx, *, now: int, dead: Iterable[str] = ()) -> int:
    """Return the messages whose lease ran out or whose worker is in `dead`; the number of messages."""
    rows = tx.all(LAPSED, {"now": now, "dead": _json(dead), "bury_after": BURY_AFTER_CRASHES})
    for session_id in {row["session_id"] for row in rows}:
        due.at_once(tx, session_id, now=now)
    return len(rows)


def holders(tx: Tx) -> list[str]:
    """The workers that hold claims."""
    return [row["claimed_by"] for row in tx.all(HOLDERS)]


def _leave(tx: Tx, message: Message, state: MessageState, **changes: Any) -> None:
    params = {"id": message.message_id, "claim_no": message.claim_no, "state": state.value, **changes}
    if not tx.run(FINISH, params):
        raise FenceLost(f"message {message.message_id} was taken over by another worker")


def _message(row: Row, payload: str) -> Message:
    return Message(
        message_id=row["id"],
        event_key=row["event_key"],
        session_id=row["session_id"],
        project=row["project"],
        message_type=MessageType(row["message_type"]),
        hook_event=row["hook_event"],
        tool_name=row["tool_name"],
        client_prompt_id=row["client_prompt_id"],
        agent_id=row["agent_id"],
        payload=orjson.loads(payload),
        captured_at_epoch=row["captured_at_epoch"],
        attempts=row["attempts"],
        crashes=row["crashes"],
        replayed=row["replays"] > 0,
        claim_no=row["claim_no"],
    )


def _json(items: Iterable[Any]) -> str:
    return orjson.dumps(list(items)).decode()
