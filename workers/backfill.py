"""The backfill: follows the changes of records and brings each into the vector index, or leaves a gap that is listed.

A tick embeds what has no vector yet, stores the vectors, writes the index, and only then, in one transaction, moves the
mark and records what failed. Dying between any two of these steps costs a repetition, never a hole.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import structlog

from service import documents, embeddings, watermarks
from service.clock import now_ms
from service.database import Database, Reader, Tx
from service.documents import Passage
from service.errors import FenceLost
from service.vectors.protocol import Document, IndexState, Vectors, VectorsUnavailable
from service.watermarks import Change, Mark
from workers.rush import Rush

log = structlog.get_logger()
T = TypeVar("T")

POLL_S = 2.0
GIVE_WAY_S = 0.5
"""Events come first: embedding beside them takes a fifth of their throughput on two cores."""
LOOK_AT_INDEX_MS = 15_000
"""How often an index at rest is asked whether it is still the same and complete."""
REBUILD_AGAIN_MS = 600_000
"""Until an index that was made anew and is wrong again at once is given another chance."""
CHANGES_PER_TICK = 100
GAPS_PER_TICK = 10
TEXTS_PER_CALL = 32
"""Half a second of embedding: what an orderly stop waits for, and what a crash embeds twice."""
DOCUMENTS_PER_CALL = 200
TRIES_TOGETHER = 2
"""Calls that may come to nothing before their texts go one by one: the process may have died of something else."""
TRIES_ALONE = 2
"""A text that stops the embedder so often, with a sound one just before, is the culprit."""
SOUND_TEXT = "Is the embedder well?"


@dataclass(slots=True)
class Portion:
    """What becomes of a tick's changes. `passages` of the records that are still there; by document id, `vectors` of
    what may be in the index, and `errors` of what could not be embedded or was refused."""

    mark: Mark
    work: Sequence[Change]
    passages: dict[Change, list[Passage]]
    held: dict[str, embeddings.Held]
    vectors: dict[str, bytes] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.vectors = {
            passage.doc_id: held.vector
            for passage in self.wanted()
            if (held := self.held.get(passage.doc_id)) is not None and held.text_hash == passage.text_hash
        }

    def wanted(self) -> Iterator[Passage]:
        for passages in self.passages.values():
            yield from passages

    def missing(self) -> list[Passage]:
        return [passage for passage in self.wanted() if passage.doc_id not in self.vectors]

    def documents(self) -> list[Document]:
        return [
            Document(
                doc_id=passage.doc_id,
                doc_type=passage.change.doc_type,
                record_id=passage.change.record_id,
                project=passage.project,
                type=passage.type,
                created_at_epoch=passage.created_at_epoch,
                vector=self.vectors[passage.doc_id],
            )
            for passage in self.wanted()
            if passage.doc_id in self.vectors
        ]

    def superfluous(self) -> list[str]:
        """Documents that the index may hold and should not: of deleted records, of old texts."""
        right = self.vectors.keys() - self.errors.keys()
        gone = [change for change in self.work if change not in self.passages]
        ids = [doc_id for change in gone for doc_id in documents.possible_ids(change.doc_type, change.record_id)]
        return ids + sorted((self.held.keys() | self.errors.keys()) - right)


@dataclass(slots=True, kw_only=True)
class Backfill:
    """One process at a time, as `is_my_turn` says. `stopping` is asked between calls: a tick that ends early loses
    nothing."""

    database: Database
    vectors: Vectors
    is_my_turn: Callable[[], bool] = lambda: True
    stopping: Callable[[], bool] = lambda: False
    now: Callable[[], int] = now_ms
    _look_at_epoch: int = 0
    _rebuilt_epoch: int = 0
    _stopped_at: Counter[str] = field(default_factory=Counter)
    """How many calls to the embedder came to nothing with this text in them, by its hash, since the mark moved."""
    _rush: Rush = field(init=False)

    def __post_init__(self) -> None:
        self._rush = Rush(written=lambda: self.database.written, now=self.now)

    async def tick(self) -> float:
        if not self.is_my_turn():
            return POLL_S
        if self._rush.is_on():
            return GIVE_WAY_S
        if not self._look_at_epoch:
            await self.database.write(watermarks.doubt)
            self._look_at_epoch = self.now()
        mark = await self.database.read(watermarks.mark)
        wait_s = (mark.retry_at_epoch - self.now()) / 1000
        if not mark.newest or wait_s > 0:
            return min(POLL_S, wait_s) if wait_s > 0 else POLL_S
        try:
            return await self._follow(mark)
        except VectorsUnavailable as error:
            words = str(error)
            log.warning("index.unavailable", error=words, failures=mark.failures + 1)
            await self.database.write(lambda tx: watermarks.fail(tx, mark, words, now=self.now()))
        except FenceLost as error:
            log.warning("index.taken_over", error=str(error))
        return POLL_S / 2

    async def _follow(self, mark: Mark) -> float:
        now = self.now()

        def due(reader: Reader) -> list[Change]:
            changes = watermarks.above(reader, mark.seq, limit=CHANGES_PER_TICK)
            return changes + watermarks.due_gaps(reader, mark.seq, limit=GAPS_PER_TICK, now=now)

        work = await self.database.read(due)
        if not work and now < self._look_at_epoch:
            return POLL_S
        state = await self.vectors.state()
        if (state.index_id, state.model) != (mark.index_id, mark.model):
            await self._begin(state)
        elif work:
            await self._index(mark, work)
        else:
            return await self._look(mark, state)
        return 0.0

    async def _begin(self, state: IndexState) -> None:
        """Another index than the mark speaks of: nobody knows what it holds, so it begins empty."""
        if state.documents:
            await self.vectors.drop()
            state = await self.vectors.state()
        log.info("index.begun", index_id=state.index_id, model=state.model)
        await self.database.write(lambda tx: watermarks.begin(tx, index_id=state.index_id, model=state.model))

    async def _look(self, mark: Mark, state: IndexState) -> float:
        """At rest: does the index hold as many documents as it should? An older database may have come back from a
        backup, or the index lost some without a word; then it is made anew."""
        self._look_at_epoch = self.now() + LOOK_AT_INDEX_MS
        if mark.failures:
            await self.database.write(lambda tx: watermarks.advance(tx, mark, to=mark.seq, now=self.now()))
        least, most = await self.database.read(embeddings.count)
        at_rest = not await self.database.read(lambda reader: watermarks.above(reader, mark.seq, limit=1))
        if at_rest and not least <= state.documents <= most:
            words = f"the vector index holds {state.documents} documents instead of {most}"
            if self.now() < self._rebuilt_epoch + REBUILD_AGAIN_MS:
                raise VectorsUnavailable(f"{words}, and making it anew did not help; the service's log says more")
            log.warning("index.incomplete", documents=state.documents, expected=most)
            self._rebuilt_epoch = self.now()
            await self._begin(state)
            return 0.0
        self._rebuilt_epoch = 0
        if at_rest:
            await self.database.write(lambda tx: watermarks.seen(tx, now=self.now()))
        return POLL_S

    async def _index(self, mark: Mark, work: Sequence[Change]) -> None:
        passages = await self.database.read(lambda reader: documents.passages(reader, work))
        held = await self.database.read(lambda reader: embeddings.held(reader, passages, model=mark.model))
        portion = Portion(mark=mark, work=work, passages=passages, held=held)
        if not await self._embed_missing(portion):
            return
        for some in _batches(portion.documents(), DOCUMENTS_PER_CALL):
            portion.errors |= await self.vectors.upsert(some)
        for ids in _batches(portion.superfluous(), DOCUMENTS_PER_CALL):
            await self.vectors.delete(ids)
        if (await self.vectors.state()).index_id == mark.index_id:  # the one that was written
            gaps = await self.database.write(lambda tx: self._settle(tx, portion))
            self._stopped_at.clear()
            for change, error in gaps.items():
                log.warning("record.left_out", doc_type=change.doc_type, record_id=change.record_id, error=error)

    async def _embed_missing(self, portion: Portion) -> bool:
        """Vectors for the texts that have none, stored as they come. False when it is time to stop."""
        for some in self._calls(portion):
            if self.stopping():
                return False
            answers = dict(zip(some, await self._embed(some), strict=True))
            made = {passage: answer for passage, answer in answers.items() if isinstance(answer, bytes)}
            stored = await self.database.write(lambda tx: _store(tx, made, model=portion.mark.model))  # noqa: B023
            portion.vectors |= {passage.doc_id: made[passage] for passage in stored}
            portion.errors |= {p.doc_id: answer for p, answer in answers.items() if isinstance(answer, str)}
        return True

    def _calls(self, portion: Portion) -> list[list[Passage]]:
        """Texts that go to the embedder together; one that may have stopped it goes alone, or no more."""
        together: list[Passage] = []
        alone: list[Passage] = []
        for passage in portion.missing():
            stops = self._stopped_at[passage.text_hash]
            if stops >= TRIES_TOGETHER + TRIES_ALONE:
                portion.errors[passage.doc_id] = f"the embedder stopped at this text, {stops} times"
            else:
                (together if stops < TRIES_TOGETHER else alone).append(passage)
        return [*_batches(together, TEXTS_PER_CALL), *([passage] for passage in alone)]

    async def _embed(self, passages: Sequence[Passage]) -> list[bytes | str]:
        """A vector or what went wrong, for each. Raises `VectorsUnavailable` when it is the embedder that is wrong."""
        hashes = [passage.text_hash for passage in passages]
        if any(self._stopped_at[text_hash] >= TRIES_TOGETHER for text_hash in hashes):
            await self._probe()
        try:
            answers = await self.vectors.embed([passage.text for passage in passages])
        except VectorsUnavailable:
            self._stopped_at.update(hashes)
            raise
        for text_hash in hashes:
            del self._stopped_at[text_hash]
        if all(isinstance(answer, str) for answer in answers):
            await self._probe()
        return answers

    async def _probe(self) -> None:
        """Can anything be embedded at all?"""
        (answer,) = await self.vectors.embed([SOUND_TEXT])
        if isinstance(answer, str):
            raise VectorsUnavailable(f"no text can be embedded: {answer}")

    def _settle(self, tx: Tx, portion: Portion) -> dict[Change, str]:
        """The mark moves over what is in the index or is a gap now; the gaps with their errors. A record that changed
        meanwhile has a number above the mark again."""
        gaps = {}
        for change in watermarks.current(tx, portion.work):
            passages = portion.passages.get(change, [])
            embeddings.keep(tx, change, [passage for passage in passages if passage.doc_id in portion.vectors])
            errors = [portion.errors[passage.doc_id] for passage in passages if passage.doc_id in portion.errors]
            if errors:
                gaps[change] = errors[0]
                watermarks.leave_gap(tx, portion.mark, change, errors[0], now=self.now())
            else:
                watermarks.close_gap(tx, change)
        to = max([portion.mark.seq, *(change.seq for change in portion.work)])
        watermarks.advance(tx, portion.mark, to=to, now=self.now())
        return gaps


def _store(tx: Tx, made: Mapping[Passage, bytes], *, model: str) -> list[Passage]:
    """Keep the vectors of records that did not change while they were embedded; whose those are."""
    current = watermarks.current(tx, {passage.change for passage in made})
    stored = [passage for passage in made if passage.change in current]
    for passage in stored:
        embeddings.store(tx, passage, made[passage], model=model)
    return stored


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """As lists of `size`, the last one shorter."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
