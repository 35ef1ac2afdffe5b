"""The index under any order of changes, failures and deaths: at rest a record is indexed exactly, or a listed gap."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from service import fulltext
from service.database import Database, Tx
from tests.workers import records
from tests.workers.memory_index import Killed, MemoryVectors, vector_of
from workers import backfill
from workers.backfill import Backfill

T = TypeVar("T")
CALLS = st.sampled_from(["state", "embed", "upsert", "delete", "drop"])
WORDS = st.sampled_from(["sound", "sound", "sound", "poison", "lethal"])
FACTS = st.lists(WORDS, max_size=3)
TEXTS_PER_CALL = 3
"""Small numbers bring out what happens at the edge of a batch."""


class WatermarkMachine(RuleBasedStateMachine):
    """`texts`: what each observation says, by part; `repeats`: how many texts may have been embedded twice; `vanished`:
    the index lost documents without a word, which only an index without gaps is sure to notice."""

    template: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="gapless-machine-"))
        shutil.copy(self.template, self.folder / "gapless.db")
        self.runner = asyncio.Runner()
        self.database = Database.open(self.folder / "gapless.db", repair_index=fulltext.repair)
        self.vectors = MemoryVectors()
        self.now = 1_700_000_000_000
        self.number = 0
        self.texts: dict[int, dict[str, str]] = {}
        self.repeats = 0
        self.vanished = False
        self.vectors.before_call = self.watch
        self.backfill = self.process()

    async def watch(self, call: str) -> None:
        """An index that is the right one and lost nothing is never made anew: that would cover other mistakes up."""
        if call == "drop" and not self.vanished:
            here = {"index_id": self.vectors.index_id, "model": self.vectors.model}
            known = "SELECT 1 FROM watermarks WHERE index_id = :index_id AND model = :model"
            assert not await self.database.write(lambda tx: tx.all(known, here))

    def process(self) -> Backfill:
        return Backfill(database=self.database, vectors=self.vectors, now=lambda: self.now)

    def teardown(self) -> None:
        try:
            self.everything_is_healed()
        finally:
            self.runner.run(self.database.close())
            self.runner.close()
            shutil.rmtree(self.folder)

    # -- records

    @initialize(facts=FACTS)
    def one_record(self, facts: list[str]) -> None:
        self.insert("sound", facts)

    @rule(word=WORDS, facts=FACTS)
    def insert(self, word: str, facts: list[str]) -> None:
        self.write(lambda tx: self.inserted(tx, word, facts))

    def inserted(self, tx: Tx, word: str, facts: list[str]) -> None:
        said = self.said(word, facts)
        self.texts[records.observation(tx, said["narrative"], "", self.facts_of(said))] = said

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), word=WORDS, facts=FACTS, keep=st.booleans())
    def edit(self, data: st.DataObject, word: str, facts: list[str], keep: bool) -> None:
        observation_id = data.draw(st.sampled_from(sorted(self.texts)))
        self.write(lambda tx: self.edited(tx, observation_id, word, facts, keep=keep))

    def edited(self, tx: Tx, observation_id: int, word: str, facts: list[str], *, keep: bool) -> None:
        said = self.said(word, facts)
        if keep:
            said["narrative"] = self.texts[observation_id]["narrative"]
        self.texts[observation_id] = said
        records.edit(tx, observation_id, said["narrative"], "", self.facts_of(said))

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        observation_id = data.draw(st.sampled_from(sorted(self.texts)))
        self.write(lambda tx: self.deleted(tx, observation_id))

    def deleted(self, tx: Tx, observation_id: int) -> None:
        records.delete(tx, observation_id)
        del self.texts[observation_id]

    # -- the backfill

    @rule()
    def tick(self) -> None:
        try:
            self.runner.run(self.backfill.tick())
        except Killed:
            self.repeats += TEXTS_PER_CALL
            self.backfill = self.process()

    @rule(call=CALLS, after=st.booleans())
    def tick_and_die(self, call: str, after: bool) -> None:
        async def die(name: str) -> None:
            if name == call:
                raise Killed

        if after:
            self.vectors.killed_after = call
        else:
            self.vectors.before_call = die
        self.tick()
        self.vectors.before_call, self.vectors.killed_after = self.watch, ""

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), call=CALLS, what=st.sampled_from(["edit", "delete", "insert", "lose"]), keep=st.booleans())
    def tick_while_something_changes(self, data: st.DataObject, call: str, what: str, keep: bool) -> None:
        observation_id = data.draw(st.sampled_from(sorted(self.texts)))
        word, facts = data.draw(WORDS), data.draw(FACTS)
        done = False

        async def change(name: str) -> None:
            nonlocal done
            if name != call or done:
                return
            done = True
            if what == "lose":
                self.vectors.lose()
            elif what == "edit":
                await self.database.write(lambda tx: self.edited(tx, observation_id, word, facts, keep=keep))
            elif what == "delete":
                await self.database.write(lambda tx: self.deleted(tx, observation_id))
            else:
                await self.database.write(lambda tx: self.inserted(tx, word, facts))

        self.vectors.before_call = change
        self.tick()
        self.vectors.before_call = self.watch
        self.repeats += TEXTS_PER_CALL

    @rule(ms=st.sampled_from([500, 2_000, 70_000, 7 * 3_600_000]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    # -- trouble

    @rule(away=st.booleans(), embeds_nothing=st.booleans())
    def trouble(self, away: bool, embeds_nothing: bool) -> None:
        self.vectors.away = "the index is away" if away else ""
        self.vectors.embeds_nothing = embeds_nothing

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def a_document_is_refused(self, data: st.DataObject) -> None:
        observation_id = data.draw(st.sampled_from(sorted(self.texts)))
        self.vectors.refused ^= {data.draw(st.sampled_from(sorted(self.ids(observation_id))))}

    @rule(foreign=st.booleans())
    def the_index_is_lost(self, foreign: bool) -> None:
        documents = self.vectors.documents
        self.vectors.lose()
        if foreign:
            self.vectors.documents = {f"{doc_id}_of_a_stranger": found for doc_id, found in documents.items()}

    @rule()
    def documents_vanish(self) -> None:
        if self.vectors.documents:
            self.vectors.documents.popitem()
            self.vanished = True

    @rule()
    def the_mark_is_lost(self) -> None:
        self.write(lambda tx: tx.run("DELETE FROM watermarks"))

    @rule()
    def the_model_changes(self) -> None:
        self.vectors.model = f"model-{int(self.vectors.model.removeprefix('model-')) + 1}"

    # -- what always holds

    @rule()
    def at_rest_every_record_is_indexed_or_a_gap(self) -> None:
        self.vectors.away, self.vectors.embeds_nothing = "", False
        self.come_to_rest()
        gaps = self.gaps()
        self.vanished = self.vanished and bool(gaps)
        for observation_id, said in self.texts.items():
            expected = {f"obs_{observation_id}_{part}": text for part, text in said.items()}
            held = {doc_id for doc_id in self.vectors.documents if doc_id.startswith(f"obs_{observation_id}_")}
            assert held == expected.keys() or observation_id in gaps or self.vanished
            assert held <= expected.keys()
            for doc_id in held:
                assert self.vectors.documents[doc_id].vector == vector_of(self.vectors.model, expected[doc_id])
        wanted = {doc_id for observation_id in self.texts for doc_id in self.ids(observation_id)}
        assert self.vectors.documents.keys() <= wanted, "there are orphans"
        assert gaps <= self.texts.keys()

    def everything_is_healed(self) -> None:
        """With every cause gone, time heals what was not given up."""
        self.vectors.refused.clear()
        self.vectors.poison = self.vectors.lethal = "nothing has this in it"
        self.at_rest_every_record_is_indexed_or_a_gap()
        self.now += 7 * 3_600_000
        self.at_rest_every_record_is_indexed_or_a_gap()
        given_up = {row["record_id"] for row in self.rows("SELECT * FROM gaps WHERE not_before_epoch IS NULL")}
        assert self.gaps() == given_up
        stored = {f"obs_{row['record_id']}_{row['part']}" for row in self.rows("SELECT * FROM embeddings")}
        assert given_up or stored == self.vectors.documents.keys()
        assert given_up or not self.vanished

    @invariant()
    def the_mark_passes_nothing_that_is_neither_indexed_nor_a_gap(self) -> None:
        passed = """
            SELECT record_id FROM changes JOIN watermarks mark ON changes.seq <= mark.seq
            WHERE index_id = :index_id AND model = :model AND record_id NOT IN (SELECT record_id FROM gaps)
        """
        here = {"index_id": self.vectors.index_id, "model": self.vectors.model}
        if self.vanished:
            return
        for row in self.rows(passed, here):
            held = {doc_id for doc_id in self.vectors.documents if doc_id.startswith(f"obs_{row['record_id']}_")}
            assert held == self.ids(row["record_id"])

    @invariant()
    def nothing_is_embedded_twice_but_one_batch_a_death(self) -> None:
        again = sum(count - 1 for (_, text), count in self.vectors.embedded.items() if text != backfill.SOUND_TEXT)
        assert again <= self.repeats

    # -- means

    def said(self, word: str, facts: list[str]) -> dict[str, str]:
        """Every text is new."""
        self.number += 1
        return {
            "narrative": f"{word} {self.number}",
            **{f"fact_{i}": f"{f} {self.number}.{i}" for i, f in enumerate(facts)},
        }

    def facts_of(self, said: dict[str, str]) -> list[str]:
        return [text for part, text in said.items() if part != "narrative"]

    def ids(self, observation_id: int) -> set[str]:
        return {f"obs_{observation_id}_{part}" for part in self.texts.get(observation_id, {})}

    def come_to_rest(self) -> None:
        """Tick until nothing is due, and the index has been looked at since."""
        for _ in range(500):
            self.now += backfill.LOOK_AT_INDEX_MS
            before = len(self.vectors.calls)
            self.tick()
            if self.vectors.calls[before:] == ["state"] and not self.rows(
                "SELECT 1 FROM changes JOIN watermarks mark ON changes.seq > mark.seq OR mark.failures > 0"
            ):
                return
        raise AssertionError("it does not come to rest")

    def gaps(self) -> set[int]:
        return {row["record_id"] for row in self.rows("SELECT record_id FROM gaps")}

    def rows(self, sql: str, params: dict[str, Any] | None = None) -> list[Any]:
        return self.write(lambda tx: tx.all(sql, params))

    def write(self, work: Callable[[Tx], T]) -> T:
        return self.runner.run(self.database.write(work))


@pytest.mark.timeout(300)
def test_no_order_of_changes_failures_and_deaths_leaves_a_hole_in_the_index(
    template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WatermarkMachine.template = template
    monkeypatch.setattr(backfill, "TEXTS_PER_CALL", TEXTS_PER_CALL)
    monkeypatch.setattr(backfill, "DOCUMENTS_PER_CALL", 2)
    monkeypatch.setattr(backfill, "CHANGES_PER_TICK", 3)
    case = WatermarkMachine.TestCase
    case.settings = settings(
        max_examples=40,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    case("runTest").runTest()
