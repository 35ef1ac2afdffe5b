"""Which rows of one kind match, with their text score: bounded work at any size, and never by age alone.

bm25 costs some microseconds for every row that matches, so an OR of everyday words over a large memory can't be ranked
whole. Rare words come first: the rows that hold one of them are few and all are ranked, everyday words only add to
their score. Rows that hold everyday words alone are found by their combinations, then by titles, before the newest
fill what is left.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import orjson

from service.database import Reader
from service.searching.conditions import Conditions
from service.searching.kinds import Source
from service.searching.syntax import Syntax
from service.searching.words import Term

RANKED_ROWS = 1_500
"""Rows of one kind that one search ranks at most; measured with benchmarks/search_latency.py."""
COMMON_POSTINGS = 60_000
"""Everyday words add to the score of rare ones while they stand in so many rows together: bm25 walks all of these."""
MOST_TERMS = 32
MOST_REQUIRED = 8
"""A query of more words than this is a text; no row is expected to hold them all."""
RAREST = 3
"""Everyday words that are looked for in pairs and alone."""
ENOUGH = 50
"""Ranked rows after which no weaker combination is looked at. A later page is filled with unranked rows, never with
ones that would change the order of the pages before it."""

COUNTS = """
SELECT (SELECT json_array(count(*), max(id)) FROM (
    SELECT rowid AS id FROM {index} WHERE {index} MATCH term.value LIMIT :cap)) AS counted,
    (SELECT max(id) FROM {table}) AS span
FROM json_each(:matches) term ORDER BY term.key
"""
RANK = """
SELECT {index}.rowid AS id, -bm25({index}, {weights}) AS score FROM {index}{join} WHERE {index} MATCH :match{where}
"""
NEWEST = """
SELECT {index}.rowid AS id FROM {index}{join} WHERE {index} MATCH :match{where} ORDER BY {index}.rowid DESC LIMIT :limit
"""
JOIN = " CROSS JOIN {table} r ON r.id = {index}.rowid"


@dataclass(frozen=True, slots=True)
class Counted:
    """A term and how many rows hold it: exact below the cap, an estimate above."""

    term: Term
    rows: int


@dataclass(slots=True, kw_only=True)
class Matching:
    """A search in one kind's index. `scores` by row id, 0 for rows that were found without being ranked; `whole` are
    the rows that hold every required term; `wanted` is how many rows the page reaches to."""

    reader: Reader
    source: Source
    conditions: Conditions
    wanted: int
    scores: dict[int, float] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    left: int = RANKED_ROWS

    async def terms(self, terms: Sequence[Term]) -> None:
        """Find rows by a natural-language query's terms."""
        present = await self._present(terms)
        rare, common = _split(present)
        if rare:
            await self._rank(_beside(rare, common))
            required = [counted.term.match for counted in present if counted.term.required]
            if 1 < len(required) <= MOST_REQUIRED:
                self.whole.update(await self._newest(" AND ".join(required), RANKED_ROWS))
        if common:
            await self._everyday([c.term.match for c in common if c.term.required] or [common[0].term.match])

    async def syntax(self, syntax: Syntax) -> None:
        """Find rows by an expression in FTS5's own syntax."""
        for match in filter(None, (syntax.match, syntax.relaxed)):
            if not self.scores and not await self._attempt(match):
                await self._fill([match])

    async def _present(self, terms: Sequence[Term]) -> list[Counted]:
        """The terms that occur at all, the rarest first, not more than are worth looking for."""
        counts = await self._count([term.match for term in terms])
        present = [Counted(term, rows) for term, rows in zip(terms, counts, strict=True) if rows]
        return sorted(present, key=lambda counted: counted.rows)[:MOST_TERMS]

    async def _everyday(self, matches: Sequence[str]) -> None:
        """Rows that hold everyday words only: those with all of them, all but one, pairs, then titles."""
        together = " AND ".join(matches)
        if not self.scores and len(matches) > 1 and await self._attempt(together):
            self.whole.update(self.scores)
        for match in _combined(matches):
            if len(self.scores) < ENOUGH:
                await self._attempt(match)
        await self._fill(dict.fromkeys((together, *matches[:RAREST])))

    async def _fill(self, matches: Iterable[str]) -> None:
        """What is left to find: rows that hold it in their title, then the newest."""
        titled = [title for match in matches for title in self._by_title(match)]
        for title in titled:
            if len(self.scores) < ENOUGH:
                await self._attempt(title)
        wanted = max(ENOUGH, self.wanted)
        for match in matches:
            if len(self.scores) < wanted:
                for row_id in await self._newest(match, wanted):
                    self.scores.setdefault(row_id, 0.0)

    def _by_title(self, match: str) -> Iterator[str]:
        titles = self.source.columns["title"]
        if titles == self.source.texts:
            return
        in_title = f"({{{' '.join(titles)}}} : ({match}))"
        # a title without the word after NOT says nothing of the rest of the record
        yield f"{in_title} AND ({match})" if " NOT " in match else in_title
        if match.startswith('"') and match.count('"') == len('""'):
            yield f"({{{' '.join(titles)}}} : ^{match})"

    async def _attempt(self, match: str) -> bool:
        """Rank the rows of an expression, if they are not too many; whether that was so."""
        (rows,) = await self._count([match])
        if 0 < rows <= self.left:
            await self._rank(match)
        return rows <= self.left

    async def _count(self, matches: Sequence[str]) -> list[int]:
        """Rows of each expression; those above RANKED_ROWS are estimated from how dense the first of them lie."""
        sql = COUNTS.format(index=self.source.index, table=self.source.table)
        narrowed = [self.conditions.narrowed(match) for match in matches]
        params = {"matches": orjson.dumps(narrowed).decode(), "cap": RANKED_ROWS + 1}
        counted = [(row["span"], *orjson.loads(row["counted"])) for row in await self.reader.all(sql, params)]
        return [rows if rows <= RANKED_ROWS else max(rows, rows * span // last) for span, rows, last in counted]

    async def _rank(self, match: str) -> None:
        weights = ", ".join(map(str, self.source.weights))
        rows = await self.reader.all(self._sql(RANK, weights=weights), self._params(match))
        self.left -= len(rows)
        for row in rows:
            self.scores[row["id"]] = max(row["score"], self.scores.get(row["id"], 0.0))

    async def _newest(self, match: str, limit: int) -> list[int]:
        rows = await self.reader.all(self._sql(NEWEST), self._params(match) | {"limit": limit})
        return [row["id"] for row in rows]

    def _sql(self, template: str, **parts: str) -> str:
        where = self.conditions.where and f" AND {self.conditions.where}"
        join = where and JOIN.format(table=self.source.table, index=self.source.index)
        return template.format(index=self.source.index, join=join, where=where, **parts)

    def _params(self, match: str) -> dict[str, object]:
        return {**self.conditions.params, "match": self.conditions.narrowed(match)}


def _split(present: Sequence[Counted]) -> tuple[list[Counted], list[Counted]]:
    """The rare terms, whose rows can all be ranked, and the rest."""
    total = 0
    for place, counted in enumerate(present):
        total += counted.rows
        if total > RANKED_ROWS:
            return list(present[:place]), list(present[place:])
    return list(present), []


def _beside(rare: Sequence[Counted], common: Sequence[Counted]) -> str:
    """The rows of the rare terms; common ones count where they stand in such a row."""
    either = " OR ".join(counted.term.match for counted in rare)
    postings, beside = 0, []
    for counted in common:
        postings += counted.rows
        if postings > COMMON_POSTINGS:
            break
        beside.append(counted.term.match)
    return f"({either}) AND ({' OR '.join([either, *beside])})" if beside else either


def _combined(matches: Sequence[str]) -> Iterator[str]:
    """Conjunctions of terms given by rarity, the strictest first: all, all but one, pairs of the rarest three."""
    sets = [tuple(matches), *combinations(matches, len(matches) - 1), *combinations(matches[:RAREST], 2)]
    yield from dict.fromkeys(" AND ".join(some) for some in sets if len(some) > 1)
