"""Search, the one function behind HTTP, the command line and MCP."""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import orjson

from service.database import Database, Reader, Row
from service.searching.fusion import by_meaning
from service.searching.grouping import COMPARED_CHARS, Described, group
from service.searching.kinds import SOURCES
from service.searching.matching import Matching
from service.searching.meaning import Meaning, nearest
from service.searching.moments import moments
from service.searching.planning import Plan, Scope, planned, starts
from service.searching.ranking import Candidate, Scored, by_date, by_relevance
from service.searching.request import Kind, Mode, Order, SearchAnswer, SearchHit, SearchQuery
from service.searching.scanning import scan
from service.searching.surroundings import FOLLOWING, MEANING_SHARES, beside, gains, meant
from service.searching.syntax import outside_project, parse
from service.searching.table import markdown as markdown  # noqa: PLC0414 - part of this module's face
from service.searching.words import Term, names_only, terms
from service.vectors.protocol import Nearest, Neighbour

DEADLINE_S = 2.0
"""Then a search answers with what it has found."""
NO_FTS5 = "no_fts5: this SQLite has no full-text index (or FTS is off); looked through the rows instead"
DAMAGED = (
    "text_index: the full-text index cannot be read ({error}); looked through the rows, run `gapless doctor --fix`"
)
GROUPED = 50
"""Hits, the best ones, among which near-duplicates are grouped."""
TOO_SLOW = "deadline: stopped after {seconds:g} s; there may be more"

LISTED = """
SELECT r.id, r.session_id, r.created_at_epoch FROM {table} r{where}
ORDER BY r.created_at_epoch {direction}, r.id {direction} LIMIT :limit
"""
COUNT = "SELECT count(*) FROM {table} r{where}"
IN_INDEX = "r.id IN (SELECT rowid FROM {index} WHERE {index} MATCH :narrow)"
LIGHT = """
SELECT r.id, r.session_id, r.created_at_epoch, r.project, {changed} AS changed{following}
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
NONE_FOLLOWING = ", '[]' AS following"
FULL = "SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(:ids))"


async def search(
    database: Database, query: SearchQuery, *, vectors: Nearest | None = None, deadline_s: float = DEADLINE_S
) -> SearchAnswer:
    """Find records, by words and, with `vectors`, by meaning at the same time. No text raises: what is no syntax is
    words. A project that does not exist gives an empty answer.

    Raises `StoreError` only when the tables themselves cannot be read.
    """
    if vectors is None:
        return await database.read(lambda reader: _by_words(reader, planned(reader, query), deadline_s))
    plan = await database.read(lambda reader: planned(reader, query))
    if not plan.asks:
        return await database.read(lambda reader: _by_words(reader, plan, deadline_s))
    meaning, degraded = await asyncio.gather(  # not a TaskGroup, which would wrap a StoreError in a group
        nearest(vectors, plan.text, [scope.source for scope in plan.scopes], plan.within),
        database.read(lambda reader: _find(reader, plan, deadline_s)),
    )
    return await database.read(lambda reader: _answer(reader, plan, meaning, degraded))


def _by_words(reader: Reader, plan: Plan, deadline_s: float) -> SearchAnswer:
    if plan.lists:
        return _listed(reader, plan)
    return _answer(reader, plan, Meaning(), _find(reader, plan, deadline_s))


def _answer(reader: Reader, plan: Plan, meaning: Meaning, degraded: str | None) -> SearchAnswer:
    query, text, scopes = plan.query, plan.text, plan.scopes
    by_text = {scope.source.kind: scope.found.scores for scope in scopes}
    by_words = sum(map(len, by_text.values()))
    looked_up = by_words > 0 and names_only(text)
    neighbours = meaning.neighbours if by_words else meaning.of_unwritten(text)
    near = [] if looked_up else _near(reader, scopes, neighbours)
    ranked, similar = _grouped(reader, _ordered(reader, query, text, scopes, near))
    hits = _hits(reader, ranked[query.offset : query.offset + query.limit])
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


def _listed(reader: Reader, plan: Plan) -> SearchAnswer:
    """No text: what the filters leave, by time, newest first unless asked otherwise."""
    query = plan.query
    order = Order.DATE_ASC if query.order is Order.DATE_ASC else Order.DATE_DESC
    direction = "ASC" if order is Order.DATE_ASC else "DESC"
    total, candidates = 0, list[Candidate]()
    for scope in plan.scopes:
        where, params = _filtered(scope, has_index=plan.store.has_index)
        total += reader.value(COUNT.format(table=scope.source.table, where=where), params)
        sql = LISTED.format(table=scope.source.table, where=where, direction=direction)
        rows = reader.all(sql, params | {"limit": query.offset + query.limit})
        candidates += [Candidate(kind=scope.source.kind, **dict(row)) for row in rows]
    page = by_date(candidates, order)[query.offset : query.offset + query.limit]
    return SearchAnswer(mode=Mode.FILTER, degraded=None, total=total, results=_hits(reader, page))


def _filtered(scope: Scope, *, has_index: bool) -> tuple[str, dict[str, object]]:
    """The WHERE clause and its parameters; files and concepts are looked up in the index."""
    limits = scope.conditions
    parts = [limits.where] if limits.where else []
    params = dict(limits.params)
    if has_index and {"suffixes", "concepts"} & params.keys() and limits.narrow:
        parts.append(IN_INDEX.format(index=scope.source.index))
        params["narrow"] = " AND ".join(f"({part})" for part in limits.narrow)
    return (" WHERE " + " AND ".join(parts) if parts else ""), params


def _find(reader: Reader, plan: Plan, deadline_s: float) -> str | None:
    """Fill the scopes; what did not run, in words."""
    try:
        with reader.stopped_after(deadline_s):
            if not plan.store.has_index:
                _scan(reader, plan)
                return NO_FTS5
            try:
                _match(reader, plan)
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                    raise
                _scan(reader, plan)
                return DAMAGED.format(error=error)
    except TimeoutError:
        return TOO_SLOW.format(seconds=deadline_s)
    return None


def _match(reader: Reader, plan: Plan) -> None:
    named = plan.store.named
    words = [_outside_project(word) if starts(word.literal) & named else word for word in terms(plan.text)]
    for scope in plan.scopes:
        matching = Matching(
            reader=reader,
            source=scope.source,
            conditions=scope.conditions,
            wanted=plan.query.offset + plan.query.limit,
            ranked=scope.ranked,
            found=scope.found,
        )
        syntax = parse(plan.text, scope.source.columns)
        if syntax is None:
            matching.terms(words)
        else:
            matching.syntax(syntax.outside_project() if named else syntax)


def _outside_project(term: Term) -> Term:
    return replace(term, match=outside_project(term.match))


def _scan(reader: Reader, plan: Plan) -> None:
    words = terms(plan.text)
    for scope in plan.scopes:
        scope.found.clear()
        scan(reader, scope.source, scope.conditions, words, scope.found.scores)


def _ordered(
    reader: Reader, query: SearchQuery, text: str, scopes: Sequence[Scope], near: Sequence[Scored]
) -> list[Scored]:
    """What was found in its order: by date, or the heads by relevance and then, where a page reaches so far, the rest
    by text. Rows without a text score are no part of a head, so that more of them change nothing before them."""
    heads, rest = list[Candidate](), list[tuple[Scope, int]]()
    for scope in scopes:
        scores, whole = scope.found.scores, scope.found.whole
        ids = sorted(scores, key=lambda row_id: (row_id in whole, scores[row_id], row_id), reverse=True)
        best = [row_id for row_id in ids[: scope.head] if scores[row_id] > 0] if query.order is Order.RELEVANCE else ids
        heads += _candidates(reader, scope, best)
        rest += [(scope, row_id) for row_id in ids[len(best) :]]
    if query.order is not Order.RELEVANCE:
        return by_date(heads, query.order)
    found = dict.fromkeys((*heads, *(candidate for _, candidate in near)))
    ranked = by_relevance(list(found), moments(text), by_meaning(near), age_counts=query.age_counts)
    if rest and query.offset + query.limit > len(ranked):
        placed = {candidate for _, candidate in ranked}
        lowest = ranked[-1][0] if ranked else 0.0
        rest.sort(key=lambda found: (-found[0].found.scores[found[1]], found[0].source.kind, -found[1]))
        more = [
            (min(scope.found.scores[row_id], lowest), Candidate(kind=scope.source.kind, id=row_id))
            for scope, row_id in rest
        ]
        ranked += [scored for scored in more if scored[1] not in placed]
    return ranked


def _candidates(reader: Reader, scope: Scope, ids: Sequence[int]) -> list[Candidate]:
    """Rows by id, their text scores with what their neighbours in the session add."""
    rows = _rows(reader, scope, ids)
    gained = gains(scope.found.words, beside(_following(rows))) if scope.found.words else {}
    return [_candidate(scope, row, gained=gained.get(row["id"], 0.0)) for row in rows]


def _rows(reader: Reader, scope: Scope, ids: Sequence[int], where: str = "") -> list[Row]:
    """What is asked of a row that was found before it is in its place."""
    source = scope.source
    following = FOLLOWING if source.kind is Kind.OBSERVATION else NONE_FOLLOWING
    sql = LIGHT.format(table=source.table, changed=source.changed, following=following, where=where)
    return reader.all(sql, {**(scope.conditions.params if where else {}), "ids": orjson.dumps(ids).decode()})


def _following(rows: Sequence[Row]) -> list[tuple[int, list[int]]]:
    return [(row["id"], orjson.loads(row["following"])) for row in rows]


def _near(reader: Reader, scopes: Sequence[Scope], neighbours: Sequence[Neighbour]) -> list[Scored]:
    """The neighbours that exist and pass the filters, by their similarity."""
    found: list[Scored] = []
    for scope in scopes:
        near = {one.record_id: one.similarity for one in neighbours if one.doc_type == scope.source.doc_type}
        rows = _rows(reader, scope, list(near), scope.conditions.where and f" AND {scope.conditions.where}")
        near = meant({row["id"]: near[row["id"]] for row in rows}, beside(_following(rows), MEANING_SHARES))
        found += [(near[row["id"]], _candidate(scope, row)) for row in rows]
    return found


def _grouped(reader: Reader, ranked: Sequence[Scored]) -> tuple[list[Scored], dict[int, tuple[int, ...]]]:
    """The ranking with the newest of each group of near-duplicates in the place of its best, and the ids of the others
    by the newest's. The same for every page, so that paging has no repeats."""
    best = {c.id: c for _, c in ranked[:GROUPED] if c.kind is Kind.OBSERVATION}
    rows = reader.all(DESCRIBED, {"ids": orjson.dumps(list(best)).decode(), "chars": COMPARED_CHARS})
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


def _candidate(scope: Scope, row: Row, *, gained: float = 0.0) -> Candidate:
    row_id, project = row["id"], row["project"]
    return Candidate(
        kind=scope.source.kind,
        id=row_id,
        text_score=scope.found.scores.get(row_id, 0.0) + gained,
        whole=row_id in scope.found.whole,
        session_id=row["session_id"],
        created_at_epoch=row["created_at_epoch"],
        changed=frozenset((project, str(path)) for path in orjson.loads(row["changed"])),
    )


def _hits(reader: Reader, page: Sequence[Scored]) -> tuple[SearchHit, ...]:
    """The page's rows as hits; a row that was deleted meanwhile is left out."""
    rows = {}
    for kind, scored in groupby(sorted(page, key=lambda s: s[1].kind), key=lambda s: s[1].kind):
        ids = orjson.dumps([candidate.id for _, candidate in scored]).decode()
        for row in reader.all(FULL.format(table=SOURCES[kind].table), {"ids": ids}):
            rows[kind, row["id"]] = row
    return tuple(SOURCES[c.kind].hit(rows[c.kind, c.id], score) for score, c in page if (c.kind, c.id) in rows)
