"""What is known of what a prompt says: found by its rare words, kept when it is about them. Silence beats noise.

A search finds whatever there is. This has to be quiet where nothing fits and quick before a prompt at any size of the
memory, so that it looks at a few hundred rows only: those with a word that is rare, or with several that are less so.
"""

import asyncio
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson

from service.context.notes import Note, details
from service.database import Database, Reader
from service.fulltext import CJK
from service.searching.words import PART, Term, phrase, terms
from service.vectors.protocol import Nearest, VectorsUnavailable

COUNTED_ROWS = 300
"""A word in more rows is common; how common is estimated from how dense the first of them lie."""
RANKED_ROWS, COMPARED_ROWS = 500, 24
TOGETHER, WALKED_ROWS = 3, 60_000
"""So many of the common words are looked for together, if they stand in no more rows than that: all are walked."""
NARROWED_ROWS = 20_000
"""Of projects with no more rows only theirs are looked at: the index walks a project's rows one by one, 25 ms for
220,000. Among the newest of all rows, those of a larger project are many enough."""
SMALLEST_STORE = 1_000
"""Rows. In a smaller one every word is rare, so that it counts as this large."""
EVERYDAY_WEIGHT = 2.0
LEAST_SHARE, LEAST_WEIGHT, LEAST_HALF, LEAST_WORDS = 0.2, 14.0, 0.5, 3
"""What a record must hold of a prompt's words by weight: this share, and so much of it in all, or half where the prompt
is short; so many of the words, or half of them."""
EVERYDAY = frozenset(
    """add build call case change changes check class clean code command comment commit create data default delete done
    edit error example explain fail failed failing feature file files find finish first fix fixed folder function get
    give go help implement improve issue last line list look main make method missing move name need new number old open
    order output page part pass path problem project pull push put question read really refactor remove rename replace
    result return review run see set show start state still string support sure test testing tests text thing things
    think time todo tool try turn type update use used user using value version view way word work working works write
    wrong""".split()  # noqa: SIM905 - a list this long is read as a text
)
"""Words of any work on code: sharing them says little."""

MEANING_S = 0.25
"""Then the words answer alone: a person waits."""
NEIGHBOURS, LEAST_SIMILARITY = 10, 0.55
"""Cosine. No question about other things came near it (0.40 at most of 160), prompts on the same matter often do."""
ENDINGS = re.compile("(?<=....)(?:ing|ed|es|e)$|(?<=...)(?<!s)s$")

COUNTS = """
SELECT (SELECT json_array(count(*), max(id)) FROM (
    SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH term.value LIMIT :cap)) AS counted,
    (SELECT max(id) FROM observations) AS span
FROM json_each(:matches) term ORDER BY term.key
"""
BEST = """
SELECT found.id FROM (
    SELECT rowid AS id, bm25(observations_fts) AS rank FROM observations_fts WHERE observations_fts MATCH :match
    ORDER BY rowid DESC LIMIT :ranked) found
CROSS JOIN observations r ON r.id = found.id
WHERE :projects IS NULL OR r.project IN (SELECT value FROM json_each(:projects)) ORDER BY found.rank LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A term, in about how many rows it stands, and what it tells: its inverse document frequency, a natural logarithm.
    `said`: its words without their endings."""

    term: Term
    rows: int
    weight: float
    said: tuple[str, ...]

    def is_in(self, words: Collection[str], text: str) -> bool:
        """Whether a text, casefolded, with these words without their endings, holds it."""
        if CJK.search(self.term.literal):
            return self.term.literal.casefold() in text
        return all(word in words for word in self.said)

    @property
    def is_telling(self) -> bool:
        return self.weight > EVERYDAY_WEIGHT


async def about(
    database: Database, prompt: str, projects: Sequence[str] | None, *, vectors: Nearest | None, now: int
) -> list[Note]:
    """The observations of these projects (None: of all) that are about the prompt, the best first: those that hold its
    words, then those that are near it in meaning. The words need the text index."""
    by_words, near = await asyncio.gather(  # not a TaskGroup, which would wrap a StoreError in a group
        database.read(lambda reader: _by_words(reader, prompt, projects, now=now)), _near(vectors, prompt, projects)
    )
    known = {note.id for note in by_words}
    others = [row_id for row_id in near if row_id not in known]
    if not others:
        return by_words
    by_meaning = await database.read(lambda reader: details(reader, others, now=now))
    here = [by_meaning[row_id] for row_id in others if row_id in by_meaning]
    return [*by_words, *(note for note in here if projects is None or note.project in projects)]


async def _near(vectors: Nearest | None, prompt: str, projects: Sequence[str] | None) -> list[int]:
    if vectors is None or not terms(prompt):  # signs alone are near anything that is as short
        return []
    try:
        async with asyncio.timeout(MEANING_S):
            each = await asyncio.gather(
                *(
                    vectors.nearest(prompt, doc_types=("observation",), project=project, limit=NEIGHBOURS)
                    for project in (projects if projects is not None else (None,))
                )
            )
    except (TimeoutError, VectorsUnavailable):
        return []
    found = [neighbour for of_one in each for neighbour in of_one if neighbour.similarity >= LEAST_SIMILARITY]
    found.sort(key=lambda neighbour: neighbour.similarity, reverse=True)
    return list(dict.fromkeys(neighbour.record_id for neighbour in found))


def _by_words(reader: Reader, prompt: str, projects: Sequence[str] | None, *, now: int) -> list[Note]:
    asked = [term for term in terms(prompt) if _counts(term)]
    within = _within(projects or ())
    span, rows = _rows(reader, [*(term.match for term in asked), *within])
    weighed = [_weighed(term, count, span) for term, count in zip(asked, rows, strict=False)]
    narrows = sum(rows[len(asked) :]) <= NARROWED_ROWS
    named = None if projects is None else orjson.dumps(projects).decode()
    found: list[int] = []
    for match in _matches(weighed, within if narrows else ()):
        params = {"match": match, "projects": named, "ranked": RANKED_ROWS, "limit": COMPARED_ROWS}
        found += [row["id"] for row in reader.all(BEST, params)]
    notes = details(reader, list(dict.fromkeys(found)), now=now)
    held = [
        (sum(each.weight for each in terms_held), note)
        for note in notes.values()
        if (terms_held := _fit(weighed, note))
    ]
    held.sort(key=lambda each: (each[0], each[1].created_at_epoch), reverse=True)
    return [note for _, note in held]


def _within(projects: Sequence[str]) -> list[str]:
    """FTS5 expressions for the rows of each; none where one has a name that the index cannot tell."""
    named = [f"project : ^{phrase(project)}" for project in projects if PART.search(project)]
    return named if len(named) == len(projects) else []


def _counts(term: Term) -> bool:
    """Whole words; of a run of ideographs, which is a sentence, its pairs."""
    if CJK.fullmatch(term.literal):
        return len(term.literal) <= len("二字")
    return term.required


def _rows(reader: Reader, matches: Sequence[str]) -> tuple[int, list[int]]:
    """The highest id, and in about how many rows each expression is true: exact where they are few."""
    params = {"matches": orjson.dumps(matches).decode(), "cap": COUNTED_ROWS}
    span, rows = 0, []
    for row in reader.all(COUNTS, params):
        span = row["span"] or 0
        count, last = orjson.loads(row["counted"])
        rows.append(count if count < COUNTED_ROWS else max(count, count * span // last))
    return span, rows


def _weighed(term: Term, rows: int, span: int) -> _Weighed:
    weight = math.log((max(span, SMALLEST_STORE) + 1) / (rows + 1))
    is_everyday = term.literal.casefold() in EVERYDAY
    said = tuple(_stem(part) for part in PART.findall(term.literal.casefold()))
    return _Weighed(term, rows, min(weight, EVERYDAY_WEIGHT) if is_everyday else weight, said)


def _matches(weighed: Iterable[_Weighed], within: Sequence[str]) -> list[str]:
    """FTS5 expressions with few rows: any of the rare words, and the rarest of the others together, `within` some
    projects."""
    telling = sorted((each for each in weighed if each.rows and each.is_telling), key=lambda each: each.rows)
    rare, rows = [], 0
    for each in telling:
        rows += each.rows
        if rows > RANKED_ROWS:
            break
        rare.append(each.term.match)
    matches = [" OR ".join(rare)] if rare else []
    common, rows = [], 0
    for each in telling[len(rare) :][:TOGETHER]:
        rows += each.rows
        if rows <= WALKED_ROWS:
            common.append(each.term.match)
    if len(common) > 1 or (common and not rare):
        narrowed = [" OR ".join(within)] if within else []
        matches.append(" AND ".join(f"({match})" for match in narrowed + common))
    return matches


def _fit(weighed: Sequence[_Weighed], note: Note) -> list[_Weighed]:
    """The terms that the note holds; none when they are too few to say that it is about them."""
    text = " ".join((note.title, note.subtitle, note.narrative, *note.facts, *note.files)).casefold()
    words = {_stem(part) for part in PART.findall(text)}
    held = [each for each in weighed if each.is_in(words, text)]
    total, weight = sum(each.weight for each in weighed), sum(each.weight for each in held)
    enough = max(LEAST_SHARE * total, min(LEAST_WEIGHT, LEAST_HALF * total))
    fits = weight >= enough and len(held) >= min(LEAST_WORDS, math.ceil(len(weighed) / 2))
    return held if fits and any(each.is_telling for each in held) else []


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    """Alike for most forms of a word, as for `retries` and `retry`, `caching` and `caches`, `stopped` and `stop`."""
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    stem = ENDINGS.sub("", word)
    return stem[:-1] if stem != word and stem[-2:-1] == stem[-1:] else stem
