"""What a search looks through: its kinds with their filters, and how much of each is ranked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from service import projects
from service.clock import now_ms
from service.database import Reader
from service.searching.conditions import Conditions, Within, conditions
from service.searching.kinds import SOURCES, Source
from service.searching.matching import MANY, RANKED_OF_MANY, RANKED_ROWS, Found
from service.searching.ranking import HEAD, HEAD_OF_MANY, HEAD_OF_SMALL_PROJECT
from service.searching.request import Order, SearchQuery
from service.searching.syntax import parse
from service.searching.words import PART, plain, terms

SMALL_PROJECT_ROWS, NARROWED_ROWS = 5_000, 20_000

HAS_INDEX = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name = 'observations_fts_insert'"
STORE = f"""
SELECT ({HAS_INDEX}) AS has_index,
    (SELECT coalesce(max(id), 0) FROM observations) AS rows,
    (SELECT json_group_array(id) FROM observations WHERE expires_at_epoch <= :now) AS expired,
    (SELECT json_group_array(value)
     FROM json_each(:starts), (SELECT lower(group_concat(name, ' ')) AS names FROM projects)
     WHERE instr(names, value)) AS named
"""
ROWS_OF_PROJECT = "SELECT count(*) FROM (SELECT 1 FROM observations WHERE project = :project LIMIT :limit)"


@dataclass(slots=True, kw_only=True)
class Scope:
    """One kind with its filters, and what was found of it; `ranked` and `head` are how many rows are ranked by text,
    and how many of these with their sessions."""

    source: Source
    conditions: Conditions
    ranked: int
    head: int
    found: Found = field(default_factory=Found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """What a search asks of the store first. `expired`: observations whose time has passed and that are not swept away
    yet, few or none; `named`: starts of the query's words that names of projects have too. Those words must be looked
    for with care, as a project's name stands in every row of it, in a column that is no text."""

    has_index: bool
    is_large: bool
    expired: list[int]
    named: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query, its text, and what is looked through. `asks`: its meaning says something. `lists`: it has no text."""

    query: SearchQuery
    text: str
    within: Within | None
    store: Store
    scopes: Sequence[Scope]
    asks: bool
    lists: bool


def planned(reader: Reader, query: SearchQuery) -> Plan:
    """Which rows can fulfil the query; none where its project does not exist."""
    text = plain(query.query).strip()
    within = _within(reader, query.project)
    store = _store(reader, text)
    unknown = query.project is not None and within is None
    scopes = [] if unknown else list(_scopes(query, within, store))
    says_something = bool(scopes and terms(text)) and parse(text, {}) is None
    return Plan(
        query=query,
        text=text,
        within=within,
        store=store,
        scopes=scopes,
        asks=query.order is Order.RELEVANCE and says_something,
        lists=text in ("", "*"),
    )


def _scopes(query: SearchQuery, within: Within | None, store: Store) -> Iterator[Scope]:
    """One a kind that can fulfil the filters."""
    ranked, head = (RANKED_OF_MANY, HEAD_OF_MANY) if store.is_large else (RANKED_ROWS, HEAD)
    if within is not None and within.small:
        ranked, head = RANKED_ROWS, HEAD_OF_SMALL_PROJECT
    for kind in query.kinds:
        found = conditions(SOURCES[kind], query, within, store.expired)
        if found is not None:
            yield Scope(source=SOURCES[kind], conditions=found, ranked=ranked, head=head)


def _store(reader: Reader, text: str) -> Store:
    said = text if parse(text, {}) else " ".join(word.literal for word in terms(text))
    row = reader.one(STORE, {"now": now_ms(), "starts": orjson.dumps(sorted(starts(said))).decode()})
    assert row is not None  # it has no FROM
    return Store(
        has_index=bool(row["has_index"]),
        is_large=row["rows"] > MANY,
        expired=orjson.loads(row["expired"]),
        named=frozenset(orjson.loads(row["named"])),
    )


def _within(reader: Reader, given: str | None) -> Within | None:
    """The project that a name or key stands for; None when none is given or there is none."""
    name = None if given is None else projects.find(reader, plain(given))
    if name is None:
        return None
    rows = reader.value(ROWS_OF_PROJECT, {"project": name, "limit": NARROWED_ROWS + 1})
    return Within(project=name, small=rows <= SMALL_PROJECT_ROWS, narrows=rows <= NARROWED_ROWS)


def starts(text: str) -> set[str]:
    return {part[:3] for part in PART.findall(text.casefold())}
