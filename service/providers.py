"""Who may compress right now: pauses, failures in a row, and the daily budget. All of it is in the database, so every
process sees the same."""

from dataclasses import dataclass
from typing import Any

from service import due, outbox
from service.clock import utc_day
from service.database import Reader, Row, Tx
from service.models import Usage

EVERYONE = "*"
"""The row of a person's own pause."""
FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 600_000

GET = "SELECT * FROM provider_state WHERE provider = :provider"
ALL = "SELECT * FROM provider_state"
PAUSE = """
INSERT INTO provider_state (provider, reason, message, paused_at_epoch, until_epoch, step, failures,
    first_failure_epoch, last_error)
VALUES (:provider, :reason, :message, :now, :until, :step, 1, :now, :message)
ON CONFLICT (provider) DO UPDATE SET reason = :reason, message = :message, paused_at_epoch = :now,
    until_epoch = :until, step = :step, failures = failures + 1,
    first_failure_epoch = coalesce(first_failure_epoch, :now), last_error = :message
"""
FAIL = """
INSERT INTO provider_state (provider, failures, first_failure_epoch, last_error) VALUES (:provider, 1, :now, :message)
ON CONFLICT (provider) DO UPDATE SET failures = failures + 1, first_failure_epoch = coalesce(first_failure_epoch, :now),
    last_error = :message
"""
CLEAR = "DELETE FROM provider_state WHERE provider = :provider"
RESUME = """
UPDATE provider_state SET reason = NULL, until_epoch = NULL, step = 0
WHERE provider <> :everyone AND reason IS NOT NULL RETURNING provider
"""
RESUME_WAITING_FOR_SETTINGS = """
UPDATE provider_state SET reason = NULL, step = 0
WHERE provider <> :everyone AND reason IS NOT NULL AND until_epoch IS NULL
"""
ADD_SPEND = """
INSERT INTO spend (day, provider, calls, input_tokens, output_tokens) VALUES (:day, :provider, :calls, :input, :output)
ON CONFLICT (day, provider) DO UPDATE SET calls = calls + :calls, input_tokens = input_tokens + :input,
    output_tokens = output_tokens + :output
"""
PROBING = """
SELECT 1 FROM provider_state WHERE provider = :provider AND step > 0
    AND EXISTS (SELECT 1 FROM pending_messages WHERE state = 'processing')
"""
SPENT = "SELECT calls, input_tokens + output_tokens AS tokens FROM spend WHERE day = :day AND provider = :provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits a UTC day; 0 = none."""

    calls: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Why nothing is compressed; `until_epoch` None: until someone resumes or settings change."""

    reason: str
    message: str
    until_epoch: int | None


def pause_of(tx: Tx, provider: str, budget: Budget, *, now: int) -> Pause | None:
    """The pause in force for a provider: a person's, its own, or a spent budget."""
    for name in (EVERYONE, provider):
        if (found := _in_force(tx.one(GET, {"provider": name}), now)) is not None:
            return found
    spent = tx.one(SPENT, {"day": utc_day(now), "provider": provider})
    return _over(spent, budget, now)


def is_probing(tx: Tx, provider: str) -> bool:
    """After a pause one claim goes first; the others wait for how it ends."""
    return tx.one(PROBING, {"provider": provider}) is not None


def pause(
    tx: Tx, provider: str, *, reason: str, message: str, retry_after_ms: int | None, forever: bool, now: int
) -> int | None:
    """Pause after provider trouble; until when. `retry_after_ms` is the provider's own word and is obeyed; without it
    the pause doubles from 1 s to 10 min, and each end lets one probe through."""
    row = tx.one(GET, {"provider": provider})
    step = row["step"] + 1 if row else 1
    length = retry_after_ms if retry_after_ms is not None else min(FIRST_PAUSE_MS * 2 ** (step - 1), LONGEST_PAUSE_MS)
    until = None if forever else now + length
    params = {"provider": provider, "reason": reason, "message": message, "until": until, "step": step, "now": now}
    tx.run(PAUSE, params)
    outbox.tell(
        tx, "health", {"provider": provider, "paused": reason, "message": message, "until_epoch": until}, now=now
    )
    return until


def pause_by_hand(tx: Tx, *, now: int) -> None:
    message = "paused by hand; `gapless queue resume` goes on"
    tx.run(PAUSE, {"provider": EVERYONE, "reason": "manual", "message": message, "until": None, "step": 0, "now": now})
    outbox.tell(tx, "health", {"provider": EVERYONE, "paused": "manual", "message": message}, now=now)


def resume(tx: Tx, *, now: int) -> int:
    """End every pause and make what was postponed due; the number of pauses ended. What failed before stays noted until
    the next success."""
    by_hand = tx.run(CLEAR, {"provider": EVERYONE})
    if by_hand:
        outbox.tell(tx, "health", {"provider": EVERYONE, "paused": None}, now=now)
    return by_hand + try_again(tx, now=now)


def restarted(tx: Tx, *, now: int) -> None:
    """A process begins, perhaps with other settings: what waited for that is tried once more."""
    if tx.run(RESUME_WAITING_FOR_SETTINGS, {"everyone": EVERYONE}):
        due.retry_now(tx, now=now)


def try_again(tx: Tx, *, now: int) -> int:
    """As `resume`, for changed settings: they may cure what paused a provider, and a person's pause stays."""
    ended = tx.all(RESUME, {"everyone": EVERYONE})
    for row in ended:
        outbox.tell(tx, "health", {"provider": row["provider"], "paused": None}, now=now)
    due.retry_now(tx, now=now)
    return len(ended)


def succeeded(tx: Tx, provider: str, *, now: int) -> None:
    """A valid answer: whatever was held against the provider is forgotten."""
    if tx.run(CLEAR, {"provider": provider}):
        outbox.tell(tx, "health", {"provider": provider, "paused": None}, now=now)


def failed(tx: Tx, provider: str, message: str, *, now: int) -> None:
    """A bad answer or an error of our own: counted, shown, no pause."""
    tx.run(FAIL, {"provider": provider, "message": message, "now": now})


def spend(tx: Tx, provider: str, usage: Usage, *, now: int) -> None:
    if usage != Usage():
        params = {"calls": usage.calls, "input": usage.input_tokens, "output": usage.output_tokens}
        tx.run(ADD_SPEND, {"day": utc_day(now), "provider": provider, **params})


def report(reader: Reader, provider: str, budget: Budget, *, now: int) -> dict[str, Any]:
    """`paused` (None or reason, message, until_epoch), `failing` (None or failures, since_epoch, last_error) and
    `budget` (calls, tokens used today, and their limits, 0 = none)."""
    rows = {row["provider"]: row for row in reader.all(ALL)}
    spent = reader.one(SPENT, {"day": utc_day(now), "provider": provider})
    pause = _in_force(rows.get(EVERYONE), now) or _in_force(rows.get(provider), now) or _over(spent, budget, now)
    row = rows.get(provider)
    return {
        "paused": pause and {"reason": pause.reason, "message": pause.message, "until_epoch": pause.until_epoch},
        "failing": row
        and row["failures"]
        and {"failures": row["failures"], "since_epoch": row["first_failure_epoch"], "last_error": row["last_error"]},
        "budget": {
            "calls": spent["calls"] if spent else 0,
            "tokens": spent["tokens"] if spent else 0,
            "daily_calls": budget.calls,
            "daily_tokens": budget.tokens,
        },
    }


def _in_force(row: Row | None, now: int) -> Pause | None:
    if row is None or row["reason"] is None or (row["until_epoch"] is not None and row["until_epoch"] <= now):
        return None
    return Pause(reason=row["reason"], message=row["message"], until_epoch=row["until_epoch"])


def _over(spent: Row | None, budget: Budget, now: int) -> Pause | None:
    if spent is None:
        return None
    calls, tokens = budget.calls and spent["calls"] >= budget.calls, budget.tokens and spent["tokens"] >= budget.tokens
    if not (calls or tokens):
        return None
    what = f"{spent['calls']} calls" if calls else f"{spent['tokens']} tokens"
    midnight = (now // 86_400_000 + 1) * 86_400_000
    return Pause(reason="budget", message=f"today's budget is spent ({what})", until_epoch=midnight)
