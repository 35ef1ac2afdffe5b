"""Search, the one function behind HTTP, the command line and MCP."""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import orjson

from service import observations, projects
from service.clock import now_ms
from service.database import Reader
from service.searching.conditions import Conditions, Within, conditions
from service.searching.fusion import by_meaning
from service.searching.grouping import COMPARED_CHARS, Described, group
from service.searching.kinds import SOURCES, Source
from service.searching.matching import Found, Matching
from service.searching.meaning import Meaning, nearest
from service.searching.moments import moments
from service.searching.ranking import HEAD, HEAD_OF_SMALL_PROJECT, Candidate, Scored, by_date, by_relevance
from service.searching.request import Kind, Mode, Order, SearchAnswer, SearchHit, SearchQuery
from service.searching.scanning import scan
from service.searching.surroundings import FOLLOWING, MEANING_SHARES, beside, gains, meant
from service.searching.syntax import outside_project, parse
from service.searching.table import markdown as markdown  # noqa: PLC0414 - part of this module's face
from service.searching.words import PART, Term, names_only, plain, terms
from service.vectors.protocol import Nearest, Neighbour

DEADLINE_S = 2.0
"""Then a search answers with what it has found."""
NO_FTS5 = "no_fts5: this SQLite has no full-text index (or FTS is off); looked through the rows instead"
DAMAGED = (
    "text_index: the full-text index cannot be read ({error}); looked through the rows, run `gapless doctor --fix`"
)
SMALL_PROJECT_ROWS, NARROWED_ROWS = 5_000, 20_000
GROUPED = 50
"""Hits, the best ones, among which near-duplicates are grouped."""
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
LIGHT = """
SELECT r.id, r.session_id, r.created_at_epoch, r.project, {changed} AS changed
FROM json_each(:ids) given CROSS JOIN {table} r ON r.id = given.value WHERE TRUE{where}
"""
DESCRIBED = """
SELECT id, project, created_at_epoch,
    substr(iif(instr(narrative, rtrim(title, '…')) = 1, '', title || char(10)) -- the title of a text is its beginning
        || subtitle || char(10) || narrative || char(10) || facts, 1, :chars) AS text,
    length(title) + length(subtitle) + length(narrative) + length(facts) AS length,
    files_read || files_modified AS files, text_hash IS NOT NULL AS stated
FROM observations WHERE id IN (SELECT value FROM json_each(:ids))
"""
FULL = "SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(:ids))"


@dataclass(slots=True, kw_only=True)
class _Scope:
    """One kind with its filters, and what was found of it."""

    source: Source
    conditions: Conditions
    found: Found = field(default_factory=Found)


async def search(
    reader: Reader, query: SearchQuery, *, vectors: Nearest | None = None, deadline_s: float = DEADLINE_S
) -> SearchAnswer:
    """Find records, by words and, with `vectors`, by meaning at the same time. No text raises: what is no syntax is
    words. A project that does not exist gives an empty answer.

    Raises `StoreError` only when the tables themselves cannot be read.
    """
    text = plain(query.query).strip()
    within = await _within(reader, query.project)
    if query.project is not None and within is None:
        mode = Mode.FILTER if text in ("", "*") else Mode.KEYWORD
        return SearchAnswer(mode=mode, degraded=None, total=0, results=())
    expired = await observations.expired_ids(reader, now=now_ms())
    scopes = [
        _Scope(source=SOURCES[kind], conditions=found)
        for kind in query.kinds
        if (found := conditions(SOURCES[kind], query, within, expired)) is not None
    ]
    has_index = bool(await reader.value(HAS_INDEX))
    if text in ("", "*"):
        return await _listed(reader, query, scopes, has_index=has_index)
    is_syntax = parse(text, {}) is not None
    asked = vectors if query.order is Order.RELEVANCE and scopes and not is_syntax and terms(text) else None
    meaning, degraded = await asyncio.gather(  # not a TaskGroup, which would wrap a StoreError in a group
        nearest(asked, text, [scope.source for scope in scopes], within),
        _find(reader, query, text, scopes, has_index=has_index, deadline_s=deadline_s),
    )
    by_text = {scope.source.kind: scope.found.scores for scope in scopes}
    by_words = sum(map(len, by_text.values()))
    looked_up = by_words > 0 and names_only(text)
    neighbours = meaning.neighbours if by_words else meaning.of_unwritten(text)
    near = [] if looked_up else await _near(reader, scopes, neighbours)
    ranked, similar = await _grouped(reader, await _ordered(reader, query, text, scopes, near))
    hits = await _hits(reader, ranked[query.offset : query.offset + query.limit])
    total = by_words + sum(candidate.id not in by_text[candidate.kind] for _, candidate in near)
    return SearchAnswer(
        mode=_mode(meaning, by_text=by_words > 0, by_meaning=bool(near)),
        degraded="; ".join(filter(None, (degraded, meaning.missing))) or None,
        total=total - sum(map(len, similar.values())),
        results=tuple(_with_similar(hit, similar) for hit in hits),
    )


def _mode(meaning: Meaning, *, by_text: bool, by_meaning: bool) -> Mode:
    if not meaning.asked:
        return Mode.KEYWORD
    return Mode.VECTOR if by_meaning and not by_text else Mode.HYBRID


async def _within(reader: Reader, given: str | None) -> Within | None:
    """The project that a name or key stands for; None when none is given or there is none."""
    name = None if given is None else await projects.find(reader, plain(given))
    if name is None:
        return None
    rows = await reader.value(ROWS_OF_PROJECT, {"project": name, "limit": NARROWED_ROWS + 1})
    return Within(project=name, small=rows <= SMALL_PROJECT_ROWS, narrows=rows <= NARROWED_ROWS)


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
    return SearchAnswer(mode=Mode.FILTER, degraded=None, total=total, results=await _hits(reader, page))


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
            found=scope.found,
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
        scope.found.clear()
        await scan(reader, scope.source, scope.conditions, words, scope.found.scores)


async def _ordered(
    reader: Reader, query: SearchQuery, text: str, scopes: Sequence[_Scope], near: Sequence[Scored]
) -> list[Scored]:
    """What was found in its order: by date, or the heads by relevance and then, where a page reaches so far, the rest
    by text. Rows without a text score are no part of a head, so that more of them change nothing before them."""
    heads, rest = list[Candidate](), list[tuple[_Scope, int]]()
    for scope in scopes:
        scores, whole = scope.found.scores, scope.found.whole
        ids = sorted(scores, key=lambda row_id: (row_id in whole, scores[row_id], row_id), reverse=True)
        head = HEAD_OF_SMALL_PROJECT if scope.conditions.in_small_project else HEAD
        best = [row_id for row_id in ids[:head] if scores[row_id] > 0] if query.order is Order.RELEVANCE else ids
        heads += await _candidates(reader, scope, best)
        rest += [(scope, row_id) for row_id in ids[len(best) :]]
    if query.order is not Order.RELEVANCE:
        return by_date(heads, query.order)
    found = dict.fromkeys((*heads, *(candidate for _, candidate in near)))
    ranked = by_relevance(list(found), moments(text), by_meaning(near), age_counts=query.age_counts)
    if rest and query.offset + query.limit > len(ranked):
        placed = {candidate for _, candidate in ranked}
        lowest = ranked[-1][0] if ranked else 0.0
        rest.sort(key=lambda found: (-found[0].found.scores[found[1]], found[0].source.kind, -found[1]))
        more = [(min(scope.found.scores[row_id], lowest), _candidate(scope, id=row_id)) for scope, row_id in rest]
        ranked += [scored for scored in more if scored[1] not in placed]
    return ranked


async def _candidates(reader: Reader, scope: _Scope, ids: Sequence[int]) -> list[Candidate]:
    """Rows by id, their text scores with what their neighbours in the session add."""
    params = {"ids": orjson.dumps(ids).decode()}
    gained: dict[int, float] = {}
    if scope.source.kind is Kind.OBSERVATION and scope.found.words:
        following = await reader.all(FOLLOWING, params)
        gained = gains(scope.found.words, beside(map(tuple, following)))
    rows = await reader.all(_light(scope.source), params)
    return [_candidate(scope, **dict(row), gained=gained.get(row["id"], 0.0)) for row in rows]


def _light(source: Source, where: str = "") -> str:
    return LIGHT.format(table=source.table, changed=source.changed, where=where)


async def _near(reader: Reader, scopes: Sequence[_Scope], neighbours: Sequence[Neighbour]) -> list[Scored]:
    """The neighbours that exist and pass the filters, by their similarity."""
    found: list[Scored] = []
    for scope in scopes:
        near = {one.record_id: one.similarity for one in neighbours if one.doc_type == scope.source.doc_type}
        where = scope.conditions.where and f" AND {scope.conditions.where}"
        params = {**scope.conditions.params, "ids": orjson.dumps(list(near)).decode()}
        rows = await reader.all(_light(scope.source, where), params)
        near = {row["id"]: near[row["id"]] for row in rows}
        if scope.source.kind is Kind.OBSERVATION:
            following = await reader.all(FOLLOWING, {"ids": orjson.dumps(list(near)).decode()})
            near = meant(near, beside(map(tuple, following), MEANING_SHARES))
        found += [(near[row["id"]], _candidate(scope, **dict(row))) for row in rows]
    return found


async def _grouped(reader: Reader, ranked: Sequence[Scored]) -> tuple[list[Scored], dict[int, tuple[int, ...]]]:
    """The ranking with the newest of each group of near-duplicates in the place of its best, and the ids of the others
    by the newest's. The same for every page, so that paging has no repeats."""
    best = {c.id: c for _, c in ranked[:GROUPED] if c.kind is Kind.OBSERVATION}
    rows = await reader.all(DESCRIBED, {"ids": orjson.dumps(list(best)).decode(), "chars": COMPARED_CHARS})
    described = {row["id"]: Described(**dict(row)) for row in rows}
    groups = [each for each in group([described[row_id] for row_id in best if row_id in described]) if each.others]
    by_member = {member: each for each in groups for member in (each.leader, *each.others)}
    placed, kept = set[int](), list[Scored]()
    for score, candidate in ranked[:GROUPED]:
        its = by_member.get(candidate.id) if candidate.kind is Kind.OBSERVATION else None
        if its is None:
            kept.append((score, candidate))
        elif its.leader not in placed:
            placed.add(its.leader)
            kept.append((score, best[its.leader]))
    return [*kept, *ranked[GROUPED:]], {each.leader: each.others for each in groups}


def _with_similar(hit: SearchHit, similar: Mapping[int, tuple[int, ...]]) -> SearchHit:
    others = similar.get(hit.id) if hit.kind is Kind.OBSERVATION else None
    return replace(hit, similar=len(others), similar_ids=others) if others else hit


def _candidate(
    scope: _Scope,
    *,
    id: int,  # noqa: A002
    session_id: str | None = None,
    created_at_epoch: int = 0,
    project: str = "",
    changed: str = "[]",
    gained: float = 0.0,
) -> Candidate:
    return Candidate(
        kind=scope.source.kind,
        id=id,
        text_score=scope.found.scores.get(id, 0.0) + gained,
        whole=id in scope.found.whole,
        session_id=session_id,
        created_at_epoch=created_at_epoch,
        changed=frozenset((project, str(path)) for path in orjson.loads(changed)),
    )


async def _hits(reader: Reader, page: Sequence[Scored]) -> tuple[SearchHit, ...]:
    """The page's rows as hits; a row that was deleted meanwhile is left out."""
    rows = {}
    for kind, scored in groupby(sorted(page, key=lambda s: s[1].kind), key=lambda s: s[1].kind):
        ids = orjson.dumps([candidate.id for _, candidate in scored]).decode()
        for row in await reader.all(FULL.format(table=SOURCES[kind].table), {"ids": ids}):
            rows[kind, row["id"]] = row
    return tuple(SOURCES[c.kind].hit(rows[c.kind, c.id], score) for score, c in page if (c.kind, c.id) in rows)
