"""The queue under any order of events, claims, answers, crashes and replays: nothing lost, nothing double."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from service import completion, due, inspection, intake, pending, providers, retention
from service.completion import Terms
from service.core import prepare_database
from service.database import Tx
from service.due import FlushPolicy
from service.errors import FenceLost
from service.inspection import Selection
from service.intake import Envelope, Event, House
from service.models import Batch, Compressed, MessageState, ObservationDraft, SummaryDraft
from service.providers import Budget
from service.settings import load

T = TypeVar("T")
SESSIONS = st.sampled_from(["s1", "s2", "s3"])
SAY = st.sampled_from(["each", "together", "nothing"])
PROVIDER = "anthropic"
LEASE_MS = 1_000
MAX_ATTEMPTS = 3
POLICIES = {
    by_turn: FlushPolicy(by_turn=by_turn, silence_ms=500, batch_events=3, batch_tokens=10_000, wait_ms=400)
    for by_turn in (True, False)
}


class QueueMachine(RuleBasedStateMachine):
    """`accepted`: the key of each message the queue said yes to; `current`: its newest fencing token; `memories`: what
    ought to be stored, the sources by title."""

    template: ClassVar[sqlite3.Connection]
    claims: Bundle[Batch] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)  # thousands of commits
        self.connection.row_factory = sqlite3.Row
        self.template.backup(self.connection)
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.tx = Tx(self.connection)
        self.now = 1_700_000_000_000
        self.number = 0
        self.policy = POLICIES[True]
        self.accepted: dict[int, str] = {}
        self.current: dict[int, int] = {}
        self.memories: dict[str, set[int]] = {}

    def teardown(self) -> None:
        self.connection.close()

    @initialize(by_turn=st.booleans(), say=SAY)
    def begin_with_a_finished_and_an_open_turn(self, by_turn: bool, say: str) -> None:
        self.policy = POLICIES[by_turn]
        self.events("s1", [0, 0], ends=True)
        self.work("w1", say, summary=True)
        self.events("s2", [0], ends=False)

    # -- what comes in

    @rule(session=SESSIONS, late_ms=st.lists(st.integers(0, 5_000), min_size=1, max_size=4), ends=st.booleans())
    def events(self, session: str, late_ms: list[int], ends: bool) -> None:
        for late in late_ms:
            self.number += 1
            self.accept(self.event("PostToolUse", session, late, tool_use_id=f"t{self.number}"))
        if ends:
            self.number += 1
            name = ("Stop", "SessionEnd", "PreCompact")[self.number % 3]
            self.accept(self.event(name, session, 0, last_assistant_message=f"m{self.number}"))

    @rule(session=SESSIONS, private=st.booleans(), late_ms=st.integers(0, 5_000))
    def prompt(self, session: str, private: bool, late_ms: int) -> None:
        self.number += 1
        text = "<private>x</private>" if private else f"prompt {self.number}"
        self.accept(self.event("UserPromptSubmit", session, late_ms, prompt=text))

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def an_event_again(self, data: st.DataObject) -> None:
        message_id, key = data.draw(st.sampled_from(sorted(self.accepted.items())))
        name, session, tool_use_id = key.split("/")[:3]
        if name == "PostToolUse":
            receipt = self.accept(self.event(name, session, 0, tool_use_id=tool_use_id))
            assert (receipt.status, receipt.message_id) == ("duplicate", message_id)

    # -- workers

    @rule(target=claims, worker=st.sampled_from(["w1", "w2"]), held=st.lists(SESSIONS, max_size=1), go=st.booleans())
    def claim(self, worker: str, held: list[str], go: bool) -> Any:
        if go:
            self.pause_or_resume(go_on=True)
            self.write(lambda tx: due.flush(tx, now=self.now))
        terms = self.terms(worker)
        found = self.write(lambda tx: completion.claim_batch(tx, terms, held=held, now=self.now))
        if not isinstance(found, Batch):
            return multiple()
        assert found.session.session_id not in held
        for message in found.messages:
            assert message.claim_no > self.current.get(message.message_id, 0), "a fencing token was used twice"
            assert message.attempts < MAX_ATTEMPTS
            self.current[message.message_id] = message.claim_no
        return found

    @rule(worker=st.sampled_from(["w1", "w2"]), say=SAY, summary=st.booleans())
    def work(self, worker: str, say: str, summary: bool) -> None:
        batch = self.claim(worker, [], go=True)
        if isinstance(batch, Batch):
            self.answer(batch, say, summary)

    @rule(batch=consumes(claims), say=SAY, summary=st.booleans())
    def answer(self, batch: Batch, say: str, summary: bool) -> None:
        self.number += 1
        ids = tuple(m.message_id for m in batch.messages)
        of: dict[str, list[tuple[int, ...]]] = {"each": [(m,) for m in ids], "together": [ids], "nothing": []}
        drafts = tuple(
            ObservationDraft(type="change", title=f"{self.number}.{group[0]}", message_ids=group) for group in of[say]
        )
        told = SummaryDraft(message_ids=ids, completed="c") if summary and batch.wants_summary else None
        compressed = Compressed(observations=drafts, summary=told)
        stored = self.held_by(
            batch,
            lambda tx: completion.complete(tx, batch, compressed, provider=PROVIDER, window_ms=30_000, now=self.now),
        )
        if stored:
            again = {m.message_id for m in batch.messages if m.replayed}
            self.memories = {title: ids for title, ids in self.memories.items() if not ids & again}
            self.memories |= {draft.title: set(draft.message_ids) for draft in drafts}

    @rule(batch=consumes(claims), how=st.sampled_from(["bad answer", "overloaded", "refused key", "orderly stop"]))
    def fail(self, batch: Batch, how: str) -> None:
        def bad_answer(tx: Tx) -> None:
            for message in batch.messages:
                if message.attempts + 1 >= MAX_ATTEMPTS:
                    pending.finish(tx, message, MessageState.FAILED, reason="bad", bad_answer=True, now=self.now)
                else:
                    pending.retry(tx, message, at=self.now + 1_000, error="bad")

        def provider_trouble(tx: Tx) -> None:
            until = providers.pause(
                tx,
                PROVIDER,
                reason="auth",
                message="",
                retry_after_ms=None,
                forever=how == "refused key",
                now=self.now,
            )
            for message in batch.messages:
                pending.retry(tx, message, at=until or self.now, error="529", bad_answer=False)

        def orderly_stop(tx: Tx) -> None:
            completion.release(tx, batch.messages, now=self.now)

        self.held_by(batch, {"bad answer": bad_answer, "orderly stop": orderly_stop}.get(how, provider_trouble))

    @rule(batch=claims)
    def heartbeat(self, batch: Batch) -> None:
        self.held_by(batch, lambda tx: pending.extend(tx, batch.messages, until=self.now + LEASE_MS))

    @rule(
        ms=st.sampled_from([1, 600, 5_000, 700_000]),
        dead=st.lists(st.sampled_from(["w1", "w2"]), max_size=2, unique=True),
        retention_days=st.sampled_from([0.0, 1.0]),
    )
    def time_passes(self, ms: int, dead: list[str], retention_days: float) -> None:
        self.now += ms
        self.write(lambda tx: pending.release_lapsed(tx, now=self.now, dead=dead))
        self.write(lambda tx: retention.close_idle_sessions(tx, idle_ms=60_000, now=self.now))
        self.write(lambda tx: retention.drop_payloads(tx, retention_ms=retention_days * 86_400_000, now=self.now))
        for row in self.tx.all("SELECT id, event_key FROM pending_messages WHERE hook_event = 'SessionIdle'"):
            self.accepted[row["id"]] = row["event_key"]

    # -- people

    @rule(state=st.sampled_from(["done", "skipped", "failed"]), dry_run=st.booleans())
    def replay(self, state: str, dry_run: bool) -> None:
        before = self.states()
        ids = self.write(lambda tx: inspection.replay(tx, Selection(state=state), dry_run=dry_run, now=self.now))
        after = self.states()
        for message_id, was in before.items():
            moved = not dry_run and message_id in ids
            assert after[message_id] == ("pending" if moved else was)

    @rule(go_on=st.booleans())
    def pause_or_resume(self, go_on: bool) -> None:
        if not go_on:
            self.write(lambda tx: providers.pause_by_hand(tx, now=self.now))
            return
        self.write(lambda tx: providers.resume(tx, now=self.now))
        late = "SELECT count(*) FROM pending_messages WHERE state = 'pending' AND not_before_epoch > :now"
        assert self.tx.value(late, {"now": self.now}) == 0

    # -- what always holds

    @invariant()
    def every_accepted_message_is_in_one_state(self) -> None:
        assert self.states().keys() == self.accepted.keys()

    @invariant()
    def whatever_waits_has_a_time_when_it_is_due(self) -> None:
        forgotten = """
            SELECT DISTINCT session_id FROM pending_messages JOIN sessions USING (session_id)
            WHERE state = 'pending' AND due_at_epoch IS NULL
        """
        assert self.tx.all(forgotten) == []

    @invariant()
    def a_session_has_one_claim_at_a_time(self) -> None:
        double = """
            SELECT session_id FROM pending_messages WHERE state = 'processing'
            GROUP BY session_id HAVING count(DISTINCT lease_until_epoch || claimed_by) > 1
        """
        assert self.tx.all(double) == []

    @invariant()
    def what_waits_or_is_in_work_has_its_payload(self) -> None:
        naked = """
            SELECT id FROM pending_messages LEFT JOIN message_payloads ON message_id = id
            WHERE state IN ('pending', 'processing') AND payload IS NULL
        """
        assert self.tx.all(naked) == []

    @invariant()
    def the_memories_are_those_of_the_last_answers(self) -> None:
        rows = self.tx.all("SELECT title, source_message_ids FROM observations")
        assert {row["title"]: set(orjson.loads(row["source_message_ids"])) for row in rows} == self.memories

    @invariant()
    def no_message_had_more_bad_answers_than_allowed(self) -> None:
        assert (self.tx.value("SELECT max(attempts) FROM pending_messages") or 0) <= MAX_ATTEMPTS

    # -- means

    def event(self, name: str, session: str, late_ms: int, **fields: Any) -> Event:
        payload = {
            "hook_event_name": name,
            "session_id": session,
            "cwd": "/nowhere/shop",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            **fields,
        }
        envelope = Envelope(captured_at=self.now - late_ms, delivery=f"d{self.number}")
        house = House(own_folder="/own", skip_tools=frozenset(), locate=replace)
        event = intake.prepare(payload, 100, envelope, house, now=self.now)
        assert isinstance(event, Event)
        return event

    def accept(self, event: Event) -> intake.Receipt:
        receipt = self.write(lambda tx: intake.accept(tx, event, self.policy, now=self.now))
        if receipt.status == "queued":
            assert receipt.message_id is not None
            assert receipt.message_id not in self.accepted
            self.accepted[receipt.message_id] = receipt.event_key or ""
        return receipt

    def held_by(self, batch: Batch, work: Callable[[Tx], object]) -> bool:
        """A holder's write succeeds while every message is still its own, and changes nothing otherwise."""
        own = all(
            self.tx.one(
                "SELECT 1 FROM pending_messages WHERE id = :id AND claim_no = :claim_no AND state = 'processing'",
                {"id": m.message_id, "claim_no": m.claim_no},
            )
            for m in batch.messages
        )
        before = self.dump()
        try:
            self.write(work)
        except FenceLost:
            assert not own
            assert self.dump() == before
        else:
            assert own
        return own

    def dump(self) -> list[tuple[Any, ...]]:
        queries = ("SELECT * FROM pending_messages", "SELECT * FROM observations", "SELECT * FROM session_summaries")
        return [tuple(row) for query in queries for row in self.tx.all(query)]

    def states(self) -> dict[int, str]:
        return {row["id"]: row["state"] for row in self.tx.all("SELECT id, state FROM pending_messages")}

    def terms(self, worker: str) -> Terms:
        return Terms(
            worker=worker,
            provider=PROVIDER,
            policy=self.policy,
            limit=4,
            lease_ms=LEASE_MS,
            budget=Budget(calls=0, tokens=0),
        )

    def write(self, work: Callable[[Tx], T]) -> T:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(self.tx)
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return result


@pytest.mark.timeout(300)
def test_no_order_of_events_claims_crashes_and_replays_loses_or_doubles_anything(tmp_path: Path) -> None:
    fresh = load(home=tmp_path, environment={}).settings
    prepare_database(tmp_path / "gapless.db", settings=fresh, backups=tmp_path / "backups")
    QueueMachine.template = sqlite3.connect(tmp_path / "gapless.db")
    case = QueueMachine.TestCase
    case.settings = settings(
        max_examples=100,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    try:
        case("runTest").runTest()
    finally:
        QueueMachine.template.close()
