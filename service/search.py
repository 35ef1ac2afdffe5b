"""Search, the one function behind HTTP, the command line and MCP."""

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import orjson

from service import projects
from service.database import Reader
from service.searching.conditions import Conditions, Within, conditions
from service.searching.kinds import SOURCES, Source
from service.searching.matching import Matching
from service.searching.ranking import HEAD, Candidate, Scored, by_date, by_relevance
from service.searching.request import Order, SearchAnswer, SearchHit, SearchQuery
from service.searching.scanning import scan
from service.searching.syntax import outside_project, parse
from service.searching.table import markdown as markdown  # noqa: PLC0414 - part of this module's face
from service.searching.words import PART, Term, plain, terms

DEADLINE_S = 2.0
"""Then a search answers with what it has found."""
NO_FTS5 = "no_fts5: this SQLite has no full-text index (or FTS is off); looked through the rows instead"
DAMAGED = (
    "text_index: the full-text index cannot be read ({error}); looked through the rows, run `gapless doctor --fix`"
)
SMALL_PROJECT_ROWS = 5_000
TOO_SLOW = "deadline: stopped after {seconds:g} s; there may be more"

HAS_INDEX = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name = 'observations_fts_insert'"
NAMED_SO = """
SELECT value FROM json_each(:starts), (SELECT lower(group_concat(name, ' ')) AS names FROM projects)
WHERE instr(names, value)
"""
ROWS_OF_PROJECT = "SELECT count(*) FROM (SELECT 1 FROM observations WHERE project = :project LIMIT :limit)"
LISTED = """
SELECT r.id, r.session_id, r.created_at_epoch FROM {table} r{where}
ORDER BY r.created_at_epoch {direction}, r.id {direction} LIMIT :limit
"""
COUNT = "SELECT count(*) FROM {table} r{where}"
IN_INDEX = "r.id IN (SELECT rowid FROM {index} WHERE {index} MATCH :narrow)"
LIGHT = "SELECT id, session_id, created_at_epoch FROM {table} WHERE id IN (SELECT value FROM json_each(:ids))"
FULL = "SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(:ids))"


@dataclass(slots=True, kw_only=True)
class _Scope:
    """One kind with its filters, and what was found of it."""

    source: Source
    conditions: Conditions
    scores: dict[int, float] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)


async def search(reader: Reader, query: SearchQuery, *, deadline_s: float = DEADLINE_S) -> SearchAnswer:
    """Find records. No text raises: what is no syntax is words. A project that does not exist gives an empty answer.

    Raises `StoreError` only when the tables themselves cannot be read.
    """
    text = plain(query.query).strip()
    mode = "filter" if text in ("", "*") else "keyword"
    within = await _within(reader, query.project)
    if query.project is not None and within is None:
        return SearchAnswer(mode=mode, degraded=None, total=0, results=())
    scopes = [
        _Scope(source=SOURCES[kind], conditions=found)
        for kind in query.kinds
        if (found := conditions(SOURCES[kind], query, within)) is not None
    ]
    has_index = bool(await reader.value(HAS_INDEX))
    if mode == "filter":
        return await _listed(reader, query, scopes, has_index=has_index)
    degraded = await _find(reader, query, text, scopes, has_index=has_index, deadline_s=deadline_s)
    total = sum(len(scope.scores) for scope in scopes)
    page = (await _ordered(reader, query, scopes))[query.offset : query.offset + query.limit]
    return SearchAnswer(mode=mode, degraded=degraded, total=total, results=await _hits(reader, page))


async def _within(reader: Reader, given: str | None) -> Within | None:
    """The project that a name or key stands for; None when none is given or there is none."""
    name = None if given is None else await projects.find(reader, plain(given))
    if name is None:
        return None
    rows = await reader.value(ROWS_OF_PROJECT, {"project": name, "limit": SMALL_PROJECT_ROWS + 1})
    return Within(project=name, small=rows <= SMALL_PROJECT_ROWS)


async def _listed(reader: Reader, query: SearchQuery, scopes: Sequence[_Scope], *, has_index: bool) -> SearchAnswer:
    """No text: what the filters leave, by time, newest first unless asked otherwise."""
    order = Order.DATE_ASC if query.order is Order.DATE_ASC else Order.DATE_DESC
    direction = "ASC" if order is Order.DATE_ASC else "DESC"
    total, candidates = 0, list[Candidate]()
    for scope in scopes:
        where, params = _filtered(scope, has_index=has_index)
        total += await reader.value(COUNT.format(table=scope.source.table, where=where), params)
        sql = LISTED.format(table=scope.source.table, where=where, direction=direction)
        rows = await reader.all(sql, params | {"limit": query.offset + query.limit})
        candidates += [_candidate(scope, **dict(row)) for row in rows]
    page = by_date(candidates, order)[query.offset : query.offset + query.limit]
    return SearchAnswer(mode="filter", degraded=None, total=total, results=await _hits(reader, page))


def _filtered(scope: _Scope, *, has_index: bool) -> tuple[str, dict[str, object]]:
    """The WHERE clause and its parameters; files and concepts are looked up in the index."""
    limits = scope.conditions
    parts = [limits.where] if limits.where else []
    params = dict(limits.params)
    if has_index and {"suffixes", "concepts"} & params.keys() and limits.narrow:
        parts.append(IN_INDEX.format(index=scope.source.index))
        params["narrow"] = " AND ".join(f"({part})" for part in limits.narrow)
    return (" WHERE " + " AND ".join(parts) if parts else ""), params


async def _find(
    reader: Reader, query: SearchQuery, text: str, scopes: Sequence[_Scope], *, has_index: bool, deadline_s: float
) -> str | None:
    """Fill the scopes; what did not run, in words."""
    try:
        async with asyncio.timeout(deadline_s):
            if not has_index:
                await _scan(reader, text, scopes)
                return NO_FTS5
            try:
                await _match(reader, query, text, scopes)
            except sqlite3.DatabaseError as error:
                await _scan(reader, text, scopes)
                return DAMAGED.format(error=error)
    except TimeoutError:
        await reader.interrupt()
        return TOO_SLOW.format(seconds=deadline_s)
    return None


async def _match(reader: Reader, query: SearchQuery, text: str, scopes: Sequence[_Scope]) -> None:
    words = terms(text)
    named = await _names_projects(reader, text if parse(text, {}) else " ".join(word.literal for word in words))
    for scope in scopes:
        matching = Matching(
            reader=reader,
            source=scope.source,
            conditions=scope.conditions,
            wanted=query.offset + query.limit,
            scores=scope.scores,
            whole=scope.whole,
        )
        syntax = parse(text, scope.source.columns)
        if syntax is None:
            await matching.terms([_outside_project(word) if _starts(word.literal) & named else word for word in words])
        else:
            await matching.syntax(syntax.outside_project() if named else syntax)


async def _names_projects(reader: Reader, text: str) -> set[str]:
    """The starts of words in a text that project names have too: those words must be looked for with care, as a
    project's name stands in every row of it, in a column that is no text."""
    rows = await reader.all(NAMED_SO, {"starts": orjson.dumps(sorted(_starts(text))).decode()})
    return {row["value"] for row in rows}


def _starts(text: str) -> set[str]:
    return {part[:3] for part in PART.findall(text.casefold())}


def _outside_project(term: Term) -> Term:
    return replace(term, match=outside_project(term.match))


async def _scan(reader: Reader, text: str, scopes: Sequence[_Scope]) -> None:
    words = terms(text)
    for scope in scopes:
        scope.scores.clear()
        await scan(reader, scope.source, scope.conditions, words, scope.scores)


async def _ordered(reader: Reader, query: SearchQuery, scopes: Sequence[_Scope]) -> list[Scored]:
    """What was found in its order: by date, or the heads by relevance and then, where a page reaches so far, the rest
    by text. Rows without a text score are no part of a head, so that more of them change nothing before them."""
    heads, rest = list[Candidate](), list[tuple[_Scope, int]]()
    for scope in scopes:
        scores, whole = scope.scores, scope.whole
        ids = sorted(scores, key=lambda row_id: (row_id in whole, scores[row_id], row_id), reverse=True)
        best = [row_id for row_id in ids[:HEAD] if scores[row_id] > 0] if query.order is Order.RELEVANCE else ids
        rows = await reader.all(LIGHT.format(table=scope.source.table), {"ids": orjson.dumps(best).decode()})
        heads += [_candidate(scope, **dict(row)) for row in rows]
        rest += [(scope, row_id) for row_id in ids[len(best) :]]
    if query.order is not Order.RELEVANCE:
        return by_date(heads, query.order)
    ranked = by_relevance(heads)
    if rest and query.offset + query.limit > len(ranked):
        lowest = ranked[-1][0] if ranked else 0.0
        rest.sort(key=lambda found: (-found[0].scores[found[1]], found[0].source.kind, -found[1]))
        ranked += [(min(scope.scores[row_id], lowest), _candidate(scope, id=row_id)) for scope, row_id in rest]
    return ranked


def _candidate(scope: _Scope, *, id: int, session_id: str | None = None, created_at_epoch: int = 0) -> Candidate:  # noqa: A002
    return Candidate(
        kind=scope.source.kind,
        id=id,
        text_score=scope.scores.get(id, 0.0),
        whole=id in scope.whole,
        session_id=session_id,
        created_at_epoch=created_at_epoch,
    )


async def _hits(reader: Reader, page: Sequence[Scored]) -> tuple[SearchHit, ...]:
    """The page's rows as hits; a row that was deleted meanwhile is left out."""
    rows = {}
    for kind, scored in groupby(sorted(page, key=lambda s: s[1].kind), key=lambda s: s[1].kind):
        ids = orjson.dumps([candidate.id for _, candidate in scored]).decode()
        for row in await reader.all(FULL.format(table=SOURCES[kind].table), {"ids": ids}):
            rows[kind, row["id"]] = row
    return tuple(SOURCES[c.kind].hit(rows[c.kind, c.id], score) for score, c in page if (c.kind, c.id) in rows)
