"""What ends by time: silent sessions, payloads of finished messages, private turns, dead letters, expired memories."""

from service import due, observations, pending, sessions
from service.database import Tx
from service.models import MessageType
from service.pending import NewMessage

DEAD_LETTER_MS = 90 * 86_400_000
ROWS_PER_SWEEP = 500

DROP_PAYLOADS = """
UPDATE pending_messages SET has_payload = 0
WHERE id IN (SELECT id FROM pending_messages
             WHERE finished_at_epoch IS NOT NULL AND has_payload AND finished_at_epoch < :before
               AND state <> 'failed' LIMIT :limit)
"""
EXPIRE_DEAD = """
UPDATE pending_messages SET has_payload = 0, reason = 'expired'
WHERE id IN (SELECT id FROM pending_messages
             WHERE finished_at_epoch IS NOT NULL AND has_payload AND finished_at_epoch < :before
               AND state = 'failed' LIMIT :limit)
"""


def close_idle_sessions(tx: Tx, *, idle_ms: float, now: int) -> int:
    """Close the sessions that have been silent for `idle_ms`; what is new in them gets its summary."""
    rows = sessions.idle(tx, before=int(now - idle_ms), limit=ROWS_PER_SWEEP)
    for row in rows:
        session_id, at = row["session_id"], row["last_event_at_epoch"]
        sessions.close(tx, session_id, at=at)
        due.if_waiting(tx, session_id, at=at, now=now)
        if sessions.take_new(tx, session_id):
            message = NewMessage(
                event_key=f"SessionIdle/{session_id}/{now}",
                session_id=session_id,
                project=row["project"],
                message_type=MessageType.SUMMARY,
                hook_event="SessionIdle",
                payload='{"hook_event_name":"SessionIdle"}',
                payload_bytes=0,
                tokens=0,
                captured_at=at,
            )
            pending.enqueue(tx, message, now=now)
            due.at_once(tx, session_id, now=now)
    return len(rows)


def drop_payloads(tx: Tx, *, retention_ms: float, now: int) -> int:
    """Forget raw events of finished messages, keep their keys and outcomes; the number of messages. The private turns
    of sessions that were silent as long go as well."""
    before = int(now - retention_ms)
    sessions.drop_private_turns(tx, before=before, limit=ROWS_PER_SWEEP)
    dropped = tx.run(DROP_PAYLOADS, {"before": before, "limit": ROWS_PER_SWEEP})
    return dropped + tx.run(EXPIRE_DEAD, {"before": now - DEAD_LETTER_MS, "limit": ROWS_PER_SWEEP})


def drop_expired(tx: Tx, *, now: int) -> int:
    """Delete the memories whose time has passed; their number."""
    return observations.remove(tx, observations.expired(tx, limit=ROWS_PER_SWEEP, now=now), now=now)
