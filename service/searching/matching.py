"""Which rows of one kind match, with their text score: bounded work at any size, and never by age alone.

bm25 costs some microseconds for every row that matches, so an OR of everyday words over a large memory can't be ranked
whole. Rare words come first: the rows that hold one of them are few and all are ranked, everyday words only add to
their score. Rows that hold everyday words alone are found by their combinations, then by titles, before the newest
fill what is left.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations

import orjson

from service.database import Reader
from service.searching.conditions import Conditions
from service.searching.kinds import Source
from service.searching.syntax import Syntax
from service.searching.words import Term

RANKED_ROWS, RANKED_OF_MANY = 1_500, 600
"""Rows of one kind that one search ranks at most, in a small store and in one of MANY rows: each costs about 7 us: bm25
looks its length up."""
MANY = 20_000
COMMON_POSTINGS = 30_000
"""Everyday words add to the score of rare ones while they stand in so many rows together: bm25 walks all of these."""
MOST_TERMS = 32
MOST_REQUIRED = 8
"""A query of more words than this is a text; no row is expected to hold them all."""
RAREST = 3
"""Everyday words that are looked for in pairs and alone."""
TOGETHER, OF_RAREST = 3, 5
"""A row that holds so many of the so many rarest everyday words is looked at: one that lacks two of a question's words
is found still. Ten conjunctions of three words that stand in 4 % of a million rows each take 20 ms of CPU."""
LOOKED_INTO = 40
"""Of these rows, the best, which are looked through for the other words."""
OPTIONAL = 0.5
"""What a term that is not required counts."""
LEAST_RARITY = 0.3
"""bm25 gives next to nothing for a word that stands in half of all rows; it is not blown up."""
ENOUGH = 50
"""Ranked rows after which no weaker combination is looked at. A later page is filled with unranked rows, never with
ones that would change the order of the pages before it."""

COUNTS = """
SELECT (SELECT json_array(count(*), max(id)) FROM (
    SELECT rowid AS id FROM {index} WHERE {index} MATCH term.value LIMIT :cap)) AS counted,
    (SELECT max(id) FROM {table}) AS span
FROM json_each(:matches) term ORDER BY term.key
"""
ROWS_OF_PROJECT = "SELECT count(*) FROM {table} WHERE project = :project"
RANK = """
SELECT {index}.rowid AS id, -bm25({index}, {weights}) AS score FROM {index}{join} WHERE {index} MATCH :match{where}
"""
RANK_EACH = """
SELECT term.key AS place, {index}.rowid AS id, -bm25({index}, {weights}) AS score
FROM json_each(:matches) term CROSS JOIN {index}{join} WHERE {index} MATCH term.value{where}
"""
NEWEST = """
SELECT {index}.rowid AS id FROM {index}{join} WHERE {index} MATCH :match{where} ORDER BY {index}.rowid DESC LIMIT :limit
"""
HOLDING = """
SELECT (SELECT json_group_array(id) FROM (
    SELECT {index}.rowid AS id FROM {index}{join} WHERE {index} MATCH term.value{where} LIMIT :limit)) AS ids
FROM json_each(:matches) term ORDER BY term.key
"""
HOLD = """
SELECT term.key AS place, {index}.rowid AS id
FROM json_each(:matches) term CROSS JOIN json_each(:ids) row CROSS JOIN {index}
WHERE {index} MATCH term.value AND {index}.rowid = row.value
"""
JOIN = " CROSS JOIN {table} r ON r.id = {index}.rowid"


@dataclass(frozen=True, slots=True)
class Counted:
    """A term and how many rows hold it: exact below the cap, an estimate above. `rarity`: about what a record of middle
    length gets for it; `worth`: what its score by bm25 counts."""

    term: Term
    rows: int
    rarity: float
    worth: float = 1.0


@dataclass(slots=True, kw_only=True)
class Found:
    """Rows of one kind by id. `scores` by text, 0 for rows that were found without being ranked; `words`: the share
    that each rare term has in them; `whole` are the rows that hold every required term."""

    scores: dict[int, float] = field(default_factory=dict)
    words: list[dict[int, float]] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)

    def clear(self) -> None:
        self.scores.clear()
        self.words.clear()
        self.whole.clear()


@dataclass(slots=True, kw_only=True)
class Matching:
    """A search in one kind's index, which fills `found`; `wanted` is how many rows the page reaches to, `ranked` how
    many are ranked at most."""

    reader: Reader
    source: Source
    conditions: Conditions
    wanted: int
    ranked: int
    found: Found
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.ranked

    @property
    def scores(self) -> dict[int, float]:
        return self.found.scores

    def terms(self, terms: Sequence[Term]) -> None:
        """Find rows by a natural-language query's terms."""
        present = self._present(terms)
        rare, common = self._split(present)
        given = [counted.term.match for counted in common]
        if rare:
            self._rank_each(rare)
            if given := _beside(common):
                self._add(rare, given)
            required = [counted.term.match for counted in present if counted.term.required]
            if 1 < len(required) <= MOST_REQUIRED:
                self.found.whole.update(self._newest(" AND ".join(required), self.ranked))
        if common:
            required_common = [counted for counted in common if counted.term.required]
            self._everyday(required_common or common[:1], given)

    def syntax(self, syntax: Syntax) -> None:
        """Find rows by an expression in FTS5's own syntax."""
        for match in filter(None, (syntax.match, syntax.relaxed)):
            if not self.scores and not self._attempt(match):
                self._fill([match])

    def _present(self, terms: Sequence[Term]) -> list[Counted]:
        """The terms that occur at all, the rarest first, not more than are worth looking for."""
        matches = [term.match for term in terms]
        span, counts = self._spans([self.conditions.narrowed(match) for match in matches])
        of, worths = self._worths(matches, counts, span)
        present = [
            Counted(term, rows, _rarity(rows, of), worth if term.required else OPTIONAL * worth)
            for term, rows, worth in zip(terms, counts, worths, strict=True)
            if rows
        ]
        return sorted(present, key=lambda counted: counted.rows)[:MOST_TERMS]

    def _split(self, present: Sequence[Counted]) -> tuple[list[Counted], list[Counted]]:
        """The rare terms, whose rows can all be ranked, and the rest."""
        total = 0
        for place, counted in enumerate(present):
            total += counted.rows
            if total > self.ranked:
                return list(present[:place]), list(present[place:])
        return list(present), []

    def _worths(self, matches: Sequence[str], counts: Sequence[int], span: int) -> tuple[int, list[float]]:
        """How many rows are searched, and what the terms' scores count among them.

        bm25 knows how rare a term is among all rows; what a term tells in a small project is how rare it is there:
        the name of the project's own product tells nothing."""
        if not self.conditions.in_small_project:
            return span, [1.0] * len(matches)
        own = self.reader.value(ROWS_OF_PROJECT.format(table=self.source.table), self.conditions.params)
        rows, everywhere = self._spans(matches)
        return own, [
            _rarity(here, own) / max(_rarity(there, rows), LEAST_RARITY) if here else 0.0
            for here, there in zip(counts, everywhere, strict=True)
        ]

    def _everyday(self, common: Sequence[Counted], given: Collection[str]) -> None:
        """Rows that hold everyday words: those with all of them, with most of them, pairs, then titles. `given` are
        the words that count already in the rows that have a score."""
        matches = [counted.term.match for counted in common]
        together = " AND ".join(matches)
        if not self.scores and len(matches) > 1 and self._attempt(together):
            self.found.whole.update(self.scores)
        if len(self.found.whole) < ENOUGH and len(matches) >= TOGETHER:
            self._most_of(common[:MOST_REQUIRED], given)
        for match in _pairs(matches):
            if len(self.scores) < ENOUGH:
                self._attempt(match)
        self._fill(dict.fromkeys((together, *matches[:RAREST])))

    def _most_of(self, common: Sequence[Counted], given: Collection[str]) -> None:
        """Rows that hold TOGETHER of the rarest words, and what all words add to them. A word counts what it is rare:
        bm25 walks the whole postings of every word, for every conjunction anew; the best row alone is worth that."""
        sets = [tuple(range(len(common))), *combinations(range(min(len(common), OF_RAREST)), TOGETHER)]
        held: dict[int, set[int]] = defaultdict(set)
        matches = [" AND ".join(common[place].term.match for place in places) for places in sets]
        for places, row_ids in zip(sets, self._holding(matches), strict=True):
            for row_id in row_ids:
                held[row_id].update(places)

        def worth(row_id: int) -> float:
            new = (common[place] for place in held[row_id])
            known = self.scores.get(row_id)
            return (known or 0.0) + sum(word.rarity for word in new if known is None or word.term.match not in given)

        best = sorted(held, key=worth, reverse=True)[:LOOKED_INTO]
        if rest := [counted.term.match for counted in common[OF_RAREST:]]:
            params = {"matches": orjson.dumps(rest).decode(), "ids": orjson.dumps(best).decode()}
            for row in self.reader.all(HOLD.format(index=self.source.index), params):
                held[row["id"]].add(OF_RAREST + row["place"])
        self.scores.update({row_id: worth(row_id) for row_id in held})
        if best and not self.found.whole:
            first = max(best, key=worth)
            self._attempt(" AND ".join(common[place].term.match for place in sorted(held[first])))

    def _holding(self, matches: Sequence[str]) -> list[list[int]]:
        """Rows of each expression; FTS5 takes half as long again when it begins with the newest."""
        matches = [self.conditions.within_project(match) for match in matches]
        params = {"matches": orjson.dumps(matches).decode(), "limit": self.ranked}
        params |= self.conditions.params
        return [orjson.loads(row["ids"]) for row in self.reader.all(self._sql(HOLDING), params)]

    def _fill(self, matches: Iterable[str]) -> None:
        """What is left to find: rows that hold it in their title, then the newest."""
        titled = [title for match in matches for title in self._by_title(match)]
        for title in titled:
            if len(self.scores) < ENOUGH:
                self._attempt(title)
        wanted = max(ENOUGH, self.wanted)
        for match in matches:
            if len(self.scores) < wanted:
                for row_id in self._newest(match, wanted):
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

    def _attempt(self, match: str) -> bool:
        """Rank the rows of an expression, if they are not too many; whether that was so."""
        (rows,) = self._count([match])
        if 0 < rows <= self.left:
            self._rank(match)
        return rows <= self.left

    def _count(self, matches: Sequence[str]) -> list[int]:
        """Rows of each expression, within what is searched."""
        return (self._spans([self.conditions.narrowed(match) for match in matches]))[1]

    def _spans(self, matches: Sequence[str]) -> tuple[int, list[int]]:
        """How many rows there are at most, and of each expression; those of more than `ranked` are estimated from
        how dense the first of them lie."""
        sql = COUNTS.format(index=self.source.index, table=self.source.table)
        params = {"matches": orjson.dumps(matches).decode(), "cap": self.ranked + 1}
        counted = [(row["span"], *orjson.loads(row["counted"])) for row in self.reader.all(sql, params)]
        counts = [rows if rows <= self.ranked else max(rows, rows * span // last) for span, rows, last in counted]
        return (counted[0][0] or 0) if counted else 0, counts

    def _rank_each(self, rare: Sequence[Counted]) -> None:
        """Rank the rows of rare terms, each term by itself."""
        words: list[dict[int, float]] = [{} for _ in rare]
        matches = [self.conditions.narrowed(counted.term.match) for counted in rare]
        params = {**self.conditions.params, "matches": orjson.dumps(matches).decode()}
        for place, row_id, score in self.reader.all(self._sql(RANK_EACH, weights=self._weights), params):
            words[place][row_id] = score * rare[place].worth
        scores = self.scores
        for word in words:
            for row_id, score in word.items():
                scores[row_id] = scores.get(row_id, 0.0) + score
        self.found.words += words
        self.left -= len(scores)

    def _add(self, rare: Sequence[Counted], common: Sequence[str]) -> None:
        """What common terms add to the rows of rare ones: bm25 of all together, less what the rare ones gave."""
        either = " OR ".join(counted.term.match for counted in rare)
        match = f"({either}) AND ({' OR '.join([either, *common])})"
        given = dict[int, float]()
        for counted, word in zip(rare, self.found.words, strict=True):
            for row_id, score in word.items():
                given[row_id] = given.get(row_id, 0.0) + score / counted.worth
        scores = self.scores
        for row_id, score in self.reader.all(self._sql(RANK, weights=self._weights), self._params(match)):
            scores[row_id] = scores.get(row_id, 0.0) + max(score - given.get(row_id, 0.0), 0.0)

    def _rank(self, match: str) -> None:
        rows = self.reader.all(self._sql(RANK, weights=self._weights), self._params(match))
        self.left -= len(rows)
        for row in rows:
            self.scores[row["id"]] = max(row["score"], self.scores.get(row["id"], 0.0))

    def _newest(self, match: str, limit: int) -> list[int]:
        params = {**self.conditions.params, "match": self.conditions.within_project(match), "limit": limit}
        rows = self.reader.all(self._sql(NEWEST), params)
        return [row["id"] for row in rows]

    @property
    def _weights(self) -> str:
        return ", ".join(map(str, self.source.weights))

    def _sql(self, template: str, **parts: str) -> str:
        where = self.conditions.where and f" AND {self.conditions.where}"
        join = where and JOIN.format(table=self.source.table, index=self.source.index)
        return template.format(index=self.source.index, join=join, where=where, **parts)

    def _params(self, match: str) -> dict[str, object]:
        return {**self.conditions.params, "match": self.conditions.narrowed(match)}


def _beside(common: Sequence[Counted]) -> list[str]:
    """The common terms that are counted where they stand in a rare one's row."""
    postings = list(accumulate(counted.rows for counted in common))
    return [counted.term.match for counted, sum_of in zip(common, postings, strict=True) if sum_of <= COMMON_POSTINGS]


def _rarity(rows: int, of: int) -> float:
    """Inverse document frequency, as bm25 has it but never below 0."""
    return math.log(1 + (max(of, rows) - rows + 0.5) / (rows + 0.5))


def _pairs(matches: Sequence[str]) -> Iterator[str]:
    """Of the rarest three."""
    yield from (" AND ".join(pair) for pair in combinations(matches[:RAREST], 2))
