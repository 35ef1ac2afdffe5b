"""What happened around a moment: observations, summaries and prompts, merged by time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson

from service import projects, records
from service.clock import epoch_ms
from service.database import Database, Reader
from service.errors import InvalidInput, NotFound
from service.search import search
from service.searching.kinds import SOURCES
from service.searching.request import KINDS_BY_TYPE, Kind, SearchQuery
from service.vectors.protocol import Nearest

DEFAULT_DEPTH, LARGEST_DEPTH = 10, 100
ORDER = (Kind.PROMPT, Kind.OBSERVATION, Kind.SUMMARY)
"""Of records with the same time: what was asked, what was done, what it came to."""
EPOCH_DIGITS = range(12, 16)
"""A number of so many digits is a time in ms, from 1973 on; a shorter one is an id."""
NO_TIE, ALL_TIES = 0, 2**63 - 1

RECORD = "SELECT id, project, created_at_epoch FROM {table} WHERE id = :id"
FIRST_OF_SESSION = """
SELECT id, project, created_at_epoch FROM {table} WHERE session_id = :session ORDER BY created_at_epoch, id LIMIT 1
"""
SESSION = "SELECT project, started_at_epoch FROM sessions WHERE session_id = :session"
BEFORE = """
SELECT id, created_at_epoch FROM {table}
WHERE {conditions}created_at_epoch <= :at AND (created_at_epoch < :at OR id < :tie)
ORDER BY created_at_epoch DESC, id DESC LIMIT :limit
"""
FROM = """
SELECT id, created_at_epoch FROM {table}
WHERE {conditions}created_at_epoch >= :at AND (created_at_epoch > :at OR id >= :tie)
ORDER BY created_at_epoch, id LIMIT :limit
"""
IN_PROJECT = "project = :project AND "
UNEXPIRED = "id NOT IN (SELECT id FROM observations WHERE expires_at_epoch <= :now) AND "
WHOLE = "SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(:ids))"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineQuery:
    """Around what: `anchor` is the id of a record (12, S12, P7), a client's session id, or a time (ISO 8601 or ms), or
    `query` has a best hit. `project` is a name or a key; without one it is that of the record or session, for a
    query or a time `own_project` (None: all), and all if `all_projects` asks for them."""

    anchor: str | None = None
    query: str | None = None
    depth_before: int = DEFAULT_DEPTH
    depth_after: int = DEFAULT_DEPTH
    project: str | None = None
    own_project: str | None = None
    all_projects: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Where the timeline stands. `kind` is that of a record, or `time`, which has no id."""

    kind: str
    id: int | None
    created_at_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """A record as a search shows it. `tokens` is what reading the full record would cost (estimate)."""

    kind: Kind
    id: int
    project: str
    session_id: str | None
    type: str
    title: str
    subtitle: str
    created_at_epoch: int
    tokens: int
    is_anchor: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Oldest first; records of the same time go by kind and id. `anchor` is None when a query found nothing."""

    anchor: Anchor | None
    results: tuple[TimelineEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A point in the order of all records: `kind` and `id` of a record, or the start of a moment."""

    at: int
    kind: Kind | None = None
    id: int = NO_TIE
    project: str | None = None

    @property
    def key(self) -> "_Key | None":
        return None if self.kind is None else (self.at, ORDER.index(self.kind), self.id)

    def tie(self, kind: Kind) -> int:
        """Records of `kind` at the same time stand before this place when their id is lower."""
        if self.kind is None or ORDER.index(kind) > ORDER.index(self.kind):
            return NO_TIE
        return self.id if kind is self.kind else ALL_TIES


_Key = tuple[int, int, int]
"""Time, place of the kind in ORDER, id."""


async def timeline(database: Database, asked: TimelineQuery, *, now: int, vectors: Nearest | None = None) -> Timeline:
    """The anchor's neighbours, `depth_before` and `depth_after` of them. Raises `InvalidInput` when neither anchor nor
    query is given, or both, and `NotFound` when there is no such anchor (in that project)."""
    anchor, query = (asked.anchor or "").strip(), (asked.query or "").strip()
    if bool(anchor) == bool(query):
        raise InvalidInput("give an anchor (12, S12, P7, a session id or a time), or a query, not both", field="anchor")
    if anchor:
        return await database.read(lambda reader: _timeline(reader, asked, _anchored(reader, anchor), now))
    place = await _best_hit(database, asked, query, vectors)
    if place is None:
        return Timeline(anchor=None, results=())
    return await database.read(lambda reader: _timeline(reader, asked, place, now))


def _timeline(reader: Reader, asked: TimelineQuery, place: _Place, now: int) -> Timeline:
    project = None if asked.all_projects else _named(reader, asked.project)
    if place.project is not None and project not in (None, place.project):
        raise NotFound(f"{asked.anchor} is in the project {place.project!r}, not in {project!r}")
    own = None if asked.all_projects else _named(reader, asked.own_project)
    within = None if asked.all_projects else project or place.project or own
    keys = _around(reader, place, asked, within, now)
    anchor = Anchor(kind=place.kind or "time", id=None if place.kind is None else place.id, created_at_epoch=place.at)
    return Timeline(anchor=anchor, results=_entries(reader, keys, place))


def is_time(anchor: str) -> bool:
    """Whether an anchor is a time, unless a session has that name."""
    return _of_time(anchor.strip()) is not None


def _named(reader: Reader, project: str | None) -> str | None:
    """An unknown one stays as it is: nothing has it."""
    return project and (projects.find(reader, project) or project)


def _anchored(reader: Reader, anchor: str) -> _Place:
    place = _of_record(reader, anchor) or _of_session(reader, anchor) or _of_time(anchor)
    if place is None:
        raise NotFound(
            f"there is no {anchor[:80]!r}; an anchor is 12 (observation), S12 (summary), P7 (prompt), "
            "a session id, or a time as 2026-11-30T12:00:00Z"
        )
    return place


async def _best_hit(database: Database, asked: TimelineQuery, query: str, vectors: Nearest | None) -> _Place | None:
    project = None if asked.all_projects else asked.project or asked.own_project
    for kinds in (KINDS_BY_TYPE["observations"], KINDS_BY_TYPE["all"]):
        answer = await search(
            database, SearchQuery(query=query, project=project, kinds=kinds, limit=1), vectors=vectors
        )
        for hit in answer.results:
            return _Place(at=hit.created_at_epoch, kind=hit.kind, id=hit.id, project=hit.project)
    return None


def _of_record(reader: Reader, anchor: str) -> _Place | None:
    try:
        kind, record_id = records.parsed(anchor)
    except InvalidInput:
        return None
    row = reader.one(RECORD.format(table=SOURCES[kind].table), {"id": record_id})
    if row is None:
        return None
    return _Place(at=row["created_at_epoch"], kind=kind, id=row["id"], project=row["project"])


def _of_session(reader: Reader, anchor: str) -> _Place | None:
    """The first record of a client's session; its start when it has none."""
    params = {"session": anchor}
    session = reader.one(SESSION, params)
    if session is None:
        return None
    firsts = []
    for kind in ORDER:
        row = reader.one(FIRST_OF_SESSION.format(table=SOURCES[kind].table), params)
        if row is not None:
            firsts.append(_Place(at=row["created_at_epoch"], kind=kind, id=row["id"], project=row["project"]))
    return min(
        firsts,
        key=lambda place: place.at,
        default=_Place(at=session["started_at_epoch"], project=session["project"]),
    )


def _of_time(anchor: str) -> _Place | None:
    if anchor.isascii() and anchor.isdigit():
        return _Place(at=int(anchor)) if len(anchor) in EPOCH_DIGITS else None
    at = epoch_ms(anchor.replace(" ", "+") if "T" in anchor else anchor)  # a query string makes a blank of the +
    return None if at is None else _Place(at=at)


def _around(reader: Reader, place: _Place, asked: TimelineQuery, project: str | None, now: int) -> list[_Key]:
    """The keys of what is shown, in order. The anchor itself is no neighbour."""
    before, following = list[_Key](), list[_Key]()
    for kind in ORDER:
        conditions = IN_PROJECT if project is not None else ""
        conditions += UNEXPIRED if kind is Kind.OBSERVATION else ""
        parts = {"table": SOURCES[kind].table, "conditions": conditions}
        params = {"project": project, "now": now, "at": place.at, "tie": place.tie(kind)}
        rows = reader.all(BEFORE.format(**parts), params | {"limit": asked.depth_before})
        before += [_key(kind, row) for row in rows]
        rows = reader.all(FROM.format(**parts), params | {"limit": asked.depth_after + 1})
        following += [_key(kind, row) for row in rows]
    before, following = sorted(before), sorted(following)
    shown = asked.depth_after + (following[:1] == [place.key])
    return before[max(len(before) - asked.depth_before, 0) :] + following[:shown]


def _key(kind: Kind, row: Any) -> _Key:
    return row["created_at_epoch"], ORDER.index(kind), row["id"]


def _entries(reader: Reader, keys: Sequence[_Key], place: _Place) -> tuple[TimelineEntry, ...]:
    """A record that was deleted meanwhile is left out."""
    entries: dict[tuple[int, int], TimelineEntry] = {}
    for rank, same in groupby(sorted(keys, key=lambda key: key[1]), key=lambda key: key[1]):
        source = SOURCES[ORDER[rank]]
        ids = orjson.dumps([row_id for _, _, row_id in same]).decode()
        for row in reader.all(WHOLE.format(table=source.table), {"ids": ids}):
            hit = source.hit(row, 0.0)
            entries[rank, hit.id] = TimelineEntry(
                kind=hit.kind,
                id=hit.id,
                project=hit.project,
                session_id=hit.session_id,
                type=hit.type,
                title=hit.title,
                subtitle=hit.subtitle,
                created_at_epoch=hit.created_at_epoch,
                tokens=hit.tokens,
                is_anchor=(hit.kind, hit.id) == (place.kind, place.id),
            )
    return tuple(entries[rank, row_id] for _, rank, row_id in keys if (rank, row_id) in entries)
