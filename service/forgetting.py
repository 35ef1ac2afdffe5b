"""Forgetting: records go from every table and every message they were told in, and nothing brings them back.

The messages they were made of keep their place in the queue's accounts and lose their payloads, so that no replay can
make them again; a prompt's key is kept, so that its event is known when it comes once more. Triggers take rows out of
the text index and vectors out of `embeddings`; the backfill follows the change sequence into Chroma.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import orjson

from service import observations, outbox, pending, projects, scrubbing, sessions
from service.database import Database, Reader, Row, Tx
from service.errors import InvalidInput
from service.records import RecordId
from service.searching.every import every
from service.searching.kinds import SOURCES
from service.searching.planning import HAS_INDEX
from service.searching.request import KINDS_BY_TYPE, Kind, SearchQuery
from service.searching.words import plain, terms

ROWS_PER_COMMIT = 100
"""Events wait no longer than these take: hooks give up after 300 ms."""

CHOSEN = """
SELECT id FROM {table}
WHERE (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
  AND (:project IS NULL OR project = :project) AND (:session IS NULL OR session_id = :session)
  AND (:before IS NULL OR created_at_epoch < :before)
"""
MESSAGES = """
SELECT id FROM pending_messages
WHERE has_payload AND (:project IS NULL OR project = :project) AND (:session IS NULL OR session_id = :session)
  AND (:before IS NULL OR captured_at_epoch < :before)
"""
THAT_SAY_IT = (
    MESSAGES
    + """
  AND id IN (SELECT message_id FROM message_payloads WHERE payload LIKE :pattern ESCAPE '\\')
"""
)
SOURCES_OF = """
SELECT m.id FROM pending_messages m WHERE m.has_payload AND m.id IN (
    SELECT j.value FROM {table} t, json_each(t.source_message_ids) j WHERE t.id IN (SELECT value FROM json_each(:ids)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """What is to be forgotten: whatever fulfils all that is given, at least one. `project` is a name or a key, `before`
    ms since the epoch, exclusive. A record fulfils `query` when it holds all of its words, an event that is kept for
    replay when it holds the query as it was written."""

    ids: tuple[RecordId, ...] | None = None
    project: str | None = None
    session: str | None = None
    before: int | None = None
    query: str | None = None

    @property
    def given(self) -> list[str]:
        """The names of what is given, in place of the texts where those must not be told."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]

    @property
    def names_records(self) -> bool:
        """Whether it is about records and what they were made of, not about all that happened."""
        return self.ids is not None or self.query is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How many records were (or, in a dry run, would be) forgotten, and of how many messages the payload."""

    dry_run: bool
    observations: int
    summaries: int
    prompts: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    records: dict[Kind, list[int]]
    messages: set[int]


async def forget(
    database: Database, request: ForgetRequest, *, now: Callable[[], int], dry_run: bool = False, vacuum: bool = False
) -> Forgotten:
    """Forget in steps of a few rows each, for events are taken in between; done again it goes on where it was stopped.

    `now` is asked at each step. `vacuum`: afterwards nothing forgotten is left in the database's files. Raises
    `InvalidInput` when nothing is selected by, `StoreUnavailable`.
    """
    if not request.given:
        raise InvalidInput("say what to forget: ids, project, session, before or query", field="ids")
    request = await database.read(partial(_with_name, request=request))
    found = await database.read(partial(_find, request=request))
    if not dry_run:
        await _drop_payloads(database, found.messages, now)
        last = await database.read(partial(_find, request=request))  # with what was made of them meanwhile
        await _drop_payloads(database, last.messages, now)
        found = _Found(records=last.records, messages=found.messages | last.messages)
        await _remove(database, request, found.records, now)
        if vacuum:
            await asyncio.to_thread(scrubbing.scrub, database.path)
    return Forgotten(
        dry_run=dry_run,
        observations=len(found.records[Kind.OBSERVATION]),
        summaries=len(found.records[Kind.SUMMARY]),
        prompts=len(found.records[Kind.PROMPT]),
        messages=len(found.messages),
    )


def _with_name(reader: Reader, request: ForgetRequest) -> ForgetRequest:
    """A project given by its key has its name; an unknown one matches nothing."""
    if request.project is None:
        return request
    return replace(request, project=projects.find(reader, request.project) or request.project)


def _find(reader: Reader, request: ForgetRequest) -> _Found:
    matching = None if request.query is None else _matching(reader, request, request.query)
    records = {kind: _chosen(reader, request, kind, matching) for kind in Kind}
    messages: set[int] = set()
    for kind in (Kind.OBSERVATION, Kind.SUMMARY):
        sql = SOURCES_OF.format(table=SOURCES[kind].table)
        messages.update(row["id"] for row in reader.all(sql, {"ids": _json(records[kind])}))
    messages.update(row["id"] for row in _messages(reader, request))
    return _Found(records=records, messages=messages)


def _messages(reader: Reader, request: ForgetRequest) -> list[Row]:
    """Those that are not found by what was made of them: all of them without a query or ids, else those that hold the
    query as it was written, which would make a memory of it again."""
    if not request.names_records:
        return reader.all(MESSAGES, _params(request))
    if request.ids is not None or request.query is None or not terms(request.query):
        return []
    as_json = orjson.dumps(plain(request.query).strip()).decode()[1:-1]
    literal = re.sub(r"([%_\\])", r"\\\1", as_json)
    return reader.all(THAT_SAY_IT, _params(request) | {"pattern": f"%{literal}%"})


def _matching(reader: Reader, request: ForgetRequest, query: str) -> dict[Kind, list[int]]:
    if not reader.value(HAS_INDEX):
        raise InvalidInput("without a text index nothing is forgotten by query; search, then forget ids", field="query")
    return every(reader, SearchQuery(query=query, project=request.project, kinds=KINDS_BY_TYPE["all"]))


def _chosen(reader: Reader, request: ForgetRequest, kind: Kind, matching: dict[Kind, list[int]] | None) -> list[int]:
    ids = None if request.ids is None else {number for each, number in request.ids if each is kind}
    if matching is not None:
        ids = set(matching[kind]) if ids is None else ids.intersection(matching[kind])
    params = _params(request) | {"ids": None if ids is None else _json(ids)}
    return [row["id"] for row in reader.all(CHOSEN.format(table=SOURCES[kind].table), params)]


async def _drop_payloads(database: Database, messages: set[int], now: Callable[[], int]) -> None:
    for some in _pieces(sorted(messages)):
        await database.write(partial(pending.forget, ids=some, now=now()))


async def _remove(
    database: Database, request: ForgetRequest, records: dict[Kind, list[int]], now: Callable[[], int]
) -> None:
    for kind, remove in REMOVE.items():
        for some in _pieces(records[kind]):
            await database.write(partial(_step, remove=remove, ids=some, now=now()))
    if not request.names_records:
        await database.write(
            lambda tx: sessions.forget(
                tx, project=request.project, session_id=request.session, before=request.before, now=now()
            )
        )


def _step(tx: Tx, remove: Callable[..., int], ids: Sequence[int], now: int) -> None:
    remove(tx, ids, now=now)
    outbox.trim(tx, now=now)  # what is told of the next ones is looked up in all of it


REMOVE = {
    Kind.OBSERVATION: observations.remove,
    Kind.SUMMARY: observations.remove_summaries,
    Kind.PROMPT: sessions.forget_prompts,
}


def _pieces(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), ROWS_PER_COMMIT):
        yield ids[start : start + ROWS_PER_COMMIT]


def _params(request: ForgetRequest) -> dict[str, Any]:
    return {"project": request.project, "session": request.session, "before": request.before}


def _json(ids: Any) -> str:
    return orjson.dumps(list(ids)).decode()
