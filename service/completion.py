"""The two transactions of a compression: claim a batch with all it needs, and store its results with the ack."""

from collections.abc import Iterable
from dataclasses import dataclass

from service import due, observations, pending, providers, sessions
from service.database import Tx
from service.due import FlushPolicy
from service.models import Batch, Compressed, Message, MessageState, MessageType, Usage
from service.providers import Budget, Pause

EARLIER_OBSERVATIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a claim is made under. `provider` is who will compress; times in ms."""

    worker: str
    provider: str
    policy: FlushPolicy
    limit: int
    lease_ms: int
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Nothing to do before `next_due_epoch` (None: until something comes), or until `pause` ends."""

    next_due_epoch: int | None
    pause: Pause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a completed batch left: new observations, repeats within the window, a summary or not."""

    observations: int
    repeats: int
    summary: bool


def claim_batch(tx: Tx, terms: Terms, *, held: Iterable[str], now: int) -> Batch | Idle:
    """The next batch with the rows it is compressed from. A model call is counted when it is claimed, so that two
    consumers can't both take the last call of a budget."""
    pause = providers.pause_of(tx, terms.provider, terms.budget, now=now)
    if pause is not None:
        return Idle(next_due_epoch=pause.until_epoch, pause=pause)
    if providers.is_probing(tx, terms.provider):
        return Idle(next_due_epoch=None)
    messages = pending.claim(
        tx, terms.policy, worker=terms.worker, limit=terms.limit, lease_ms=terms.lease_ms, held=held, now=now
    )
    if not messages:
        return Idle(next_due_epoch=due.next_time(tx, now=now))
    if terms.provider != "rules":
        providers.spend(tx, terms.provider, Usage(calls=1), now=now)
    session_id = messages[0].session_id
    session = sessions.get(tx, session_id)
    assert session is not None  # a foreign key holds it
    times = [m.captured_at_epoch for m in messages]
    return Batch(
        session=session,
        messages=tuple(messages),
        prompts=sessions.prompts_between(tx, session_id, since=min(times), until=max(times)),
        earlier=observations.earlier(tx, session_id, limit=EARLIER_OBSERVATIONS),
    )


def complete(tx: Tx, batch: Batch, compressed: Compressed, *, provider: str, window_ms: float, now: int) -> Stored:
    """Store what a valid answer holds and acknowledge its messages, all or nothing. Raises `FenceLost` when any of
    them was taken over: then nothing of it is stored."""
    observations.replace(tx, batch.session.session_id, batch.messages, now=now)
    stored = [observations.store(tx, batch, draft, window_ms=window_ms, now=now) for draft in compressed.observations]
    if compressed.summary is not None:
        observations.store_summary(tx, batch, compressed.summary, now=now)
    empty = not compressed.observations and compressed.summary is None
    for message in batch.messages:
        nothing = empty or (message.message_type is MessageType.SUMMARY and compressed.summary is None)
        state = MessageState.SKIPPED if nothing else MessageState.DONE
        pending.finish(tx, message, state, reason="nothing_to_record" if nothing else None, now=now)
    providers.succeeded(tx, provider, now=now)
    settle_spend(tx, provider, compressed.usage, now=now)
    new = sum(observation_id is not None for observation_id in stored)
    return Stored(observations=new, repeats=len(stored) - new, summary=compressed.summary is not None)


def settle_spend(tx: Tx, provider: str, usage: Usage, *, now: int) -> None:
    """Add what a claim did not count yet: its first call is counted already."""
    if provider != "rules":
        more = Usage(calls=usage.calls - 1, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        providers.spend(tx, provider, more, now=now)


def release(tx: Tx, messages: Iterable[Message], *, now: int) -> None:
    """Give claimed messages back untouched, on an orderly stop."""
    for message in messages:
        pending.retry(tx, message, at=now, error="", bad_answer=False)
