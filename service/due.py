"""When the waiting messages of a session are to be claimed: `sessions.due_at_epoch`, NULL while nothing waits."""

from dataclasses import dataclass

from service.database import Tx

DUE_GRAIN_MS = 1_000
"""A due time is not moved by less: a burst of events would rewrite it with each of them."""

WAITING = """
SELECT count(*) AS events, coalesce(sum(tokens), 0) AS tokens, min(created_at_epoch) AS oldest,
       coalesce(max(message_type = 'summary'), 0) AS closes, min(nullif(not_before_epoch, 0)) AS retry_at
FROM pending_messages WHERE session_id = :session_id AND state = 'pending'
"""
WAITING_EVENTS = """
SELECT count(*) FROM pending_messages
WHERE session_id = :session_id AND state = 'pending' AND message_type = 'observation'
"""
HAS_WAITING = """
SELECT 1 FROM pending_messages WHERE session_id = :session_id AND state = 'pending' AND captured_at_epoch <= :at LIMIT 1
"""
SET_DUE = "UPDATE sessions SET due_at_epoch = :due WHERE session_id = :session_id"
PULL_DUE = "UPDATE sessions SET due_at_epoch = min(coalesce(due_at_epoch, :due), :due) WHERE session_id = :session_id"
FLUSH = "UPDATE sessions SET due_at_epoch = :now WHERE due_at_epoch > :now"
NEXT_DUE = "SELECT min(due_at_epoch) FROM sessions WHERE due_at_epoch > :now"
RETRY_NOW = "UPDATE pending_messages SET not_before_epoch = 0 WHERE state = 'pending' AND not_before_epoch > :now"
EARLIEST_RETRY = """
SELECT min(not_before_epoch) FROM pending_messages WHERE session_id = :session_id AND state = 'pending'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushPolicy:
    """When the waiting messages of a session are due, besides at Stop.

    The rules compress a turn: due after `silence_ms` without an event, or at the next prompt. A model gets batches:
    due when `batch_events` or `batch_tokens` wait, or the oldest has waited `wait_ms`.
    """

    by_turn: bool
    silence_ms: int
    batch_events: int
    batch_tokens: int
    wait_ms: int


def after_event(tx: Tx, session_id: str, policy: FlushPolicy, *, due_at: int | None, now: int) -> bool:
    """An observation message came to a session that was due at `due_at`: when is it due now? Whether it is at once."""
    if policy.by_turn:
        later = now + policy.silence_ms
        if due_at is None or now < due_at < later - DUE_GRAIN_MS:
            tx.run(SET_DUE, {"session_id": session_id, "due": later})
        return False
    waiting = tx.one(WAITING, {"session_id": session_id})
    full = waiting is not None and (
        waiting["events"] >= policy.batch_events or waiting["tokens"] >= policy.batch_tokens
    )
    tx.run(PULL_DUE, {"session_id": session_id, "due": now if full else now + policy.wait_ms})
    return full


def after_prompt(tx: Tx, session_id: str, policy: FlushPolicy, *, at: int, now: int) -> None:
    """A prompt ends the turn before it; only the rules care. One that came late does not end its own."""
    if policy.by_turn:
        if_waiting(tx, session_id, at=at - 1, now=now)


def after_stop(tx: Tx, session_id: str, policy: FlushPolicy, *, now: int) -> None:
    """A turn that left events is due now. Where the summary would be a model call of its own, it waits to share one."""
    alone = not policy.by_turn and tx.value(WAITING_EVENTS, {"session_id": session_id}) == 0
    tx.run(PULL_DUE, {"session_id": session_id, "due": now + policy.wait_ms if alone else now})


def if_waiting(tx: Tx, session_id: str, *, at: int, now: int) -> None:
    """The turn ended at `at`: what waits of it is due."""
    if tx.one(HAS_WAITING, {"session_id": session_id, "at": at}) is not None:
        at_once(tx, session_id, now=now)


def at_once(tx: Tx, session_id: str, *, now: int) -> None:
    tx.run(PULL_DUE, {"session_id": session_id, "due": now})


def at_earliest_retry(tx: Tx, session_id: str) -> None:
    """Nothing of the session may be claimed yet."""
    tx.run(SET_DUE, {"session_id": session_id, "due": tx.value(EARLIEST_RETRY, {"session_id": session_id})})


def flush(tx: Tx, *, now: int) -> int:
    """Whatever waits is due now; the number of sessions that were not."""
    return tx.run(FLUSH, {"now": now})


def retry_now(tx: Tx, *, now: int) -> None:
    """Whatever was postponed is due now."""
    tx.run(RETRY_NOW, {"now": now})
    flush(tx, now=now)


def next_time(tx: Tx, *, now: int) -> int | None:
    """When the next session falls due. Those that are due already wait for a claim or the spool, not for a time."""
    due: int | None = tx.value(NEXT_DUE, {"now": now})
    return due


def after_claim(tx: Tx, session_id: str, policy: FlushPolicy, *, cut: bool, now: int) -> None:
    """After a claim: what is left of a turn that has ended (`cut`: of the claimed one) is due at once, an open batch
    waits its time."""
    left = tx.one(WAITING, {"session_id": session_id})
    due = None
    if left is not None and left["events"]:
        full = left["closes"] or (cut if policy.by_turn else left["events"] >= policy.batch_events)
        due = now if full else now + policy.silence_ms if policy.by_turn else left["oldest"] + policy.wait_ms
        due = min(due, left["retry_at"] or due)
    tx.run(SET_DUE, {"session_id": session_id, "due": due})
