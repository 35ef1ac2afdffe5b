"""The order of what was found: what words and meaning say, all terms in one record first, a share of the session's
score, a date that was named, age, and the files that the work changed at the last."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from service.searching.moments import Moment
from service.searching.request import Kind, Order

HEAD, HEAD_OF_MANY, HEAD_OF_SMALL_PROJECT = 200, 100, 600
"""Rows of each kind, the best by text, that are ranked together with their sessions; the rest follow by text alone.
Fewer where a store has many rows; in a small project all of them: what has few of the words may have the rest beside
it."""
SESSION_SHARE = 0.2
SESSION_HITS = 20
"""A session's score is the harmonic sum of its best so many hits."""
WHOLE_BONUS = 0.3
"""Of the best text score, for a record that holds every word: it stands before those that lack one."""
MOMENT_WORTH = 2.0
"""Of a date, in words that are as rare: what falls on it is very likely meant."""
FRESHNESS, HALF_LIFE_MS = 0.02, 90 * 86_400_000
"""The newest record counts 2 % more than a very old one: enough between equals, never a cut."""
LEADING = 20
"""Hits, the best ones, whose files count for other sessions."""
FILES_WORTH = 0.3
"""Of the best score, for a session that changed all the files that the leading hits changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A row that was found. `whole`: it holds every term; `changed`: files, as (project, path). Two of the same row are
    equal."""

    kind: Kind
    id: int
    text_score: float = field(default=0.0, compare=False)
    whole: bool = field(default=False, compare=False)
    session_id: str | None = field(default=None, compare=False)
    created_at_epoch: int = field(default=0, compare=False)
    changed: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)


Scored = tuple[float, Candidate]


def by_relevance(
    candidates: Sequence[Candidate],
    moments: Sequence[Moment],
    meaning: Mapping[Candidate, float],
    *,
    age_counts: bool,
) -> list[Scored]:
    """The heads of all kinds together, best first. A total order: the same candidates give the same list.

    `moments` are dates that the query names, `meaning` is what candidates gain by theirs, as shares of the best score.
    Without `age_counts` the same score is the same rank at any age, and only between equals the newer comes first.
    """
    best = max((candidate.text_score for candidate in candidates), default=0.0) or 1.0
    scores = [(c.text_score + best * (WHOLE_BONUS * c.whole + meaning.get(c, 0.0)), c) for c in candidates]
    sessions: dict[str, list[float]] = defaultdict(list)
    for score, candidate in sorted(scores, key=place, reverse=True):
        if candidate.session_id is not None:
            sessions[candidate.session_id].append(score)
    shares = {
        session: SESSION_SHARE * sum(score / place for place, score in enumerate(hits[:SESSION_HITS], 1))
        for session, hits in sessions.items()
    }
    newest = max((candidate.created_at_epoch for candidate in candidates), default=0)
    bonus = _moment_bonus(candidates, moments)
    freshness = FRESHNESS if age_counts else 0.0
    ranked = []
    for score, c in scores:
        share = shares.get(c.session_id or "", SESSION_SHARE * score)
        age = math.exp2((c.created_at_epoch - newest) / HALF_LIFE_MS)
        ranked.append(((score + share + bonus.get(c, 0.0)) * (1 + freshness * age), c))
    return _by_files(sorted(ranked, key=place, reverse=True))


def _by_files(ranked: list[Scored]) -> list[Scored]:
    """Sessions gain by changing the files that the leading hits changed: work goes on where it went on before, whatever
    it was called then. What changed no file gets the mean: it tells neither for nor against a record."""
    worth: dict[tuple[str, str], float] = defaultdict(float)
    for score, candidate in ranked[:LEADING]:
        for file in candidate.changed:
            worth[file] += score
    if not worth:
        return ranked
    changed: dict[str | Candidate, set[tuple[str, str]]] = defaultdict(set)
    for _, candidate in ranked:
        changed[candidate.session_id or candidate] |= candidate.changed
    total = math.fsum(worth.values())  # fsum: in any order of a set the same to the last bit
    gains = {it: math.fsum(worth.get(file, 0.0) for file in files) / total for it, files in changed.items() if files}
    best, mean = ranked[0][0], fmean(gains.values())
    with_files = [(score + FILES_WORTH * best * gains.get(c.session_id or c, mean), c) for score, c in ranked]
    return sorted(with_files, key=place, reverse=True)


def _moment_bonus(candidates: Sequence[Candidate], moments: Sequence[Moment]) -> dict[Candidate, float]:
    """The rarer a date is among the candidates, the more it says, as with words."""
    bonus: dict[Candidate, float] = {}
    for moment in moments:
        then = [candidate for candidate in candidates if moment.holds(candidate.created_at_epoch)]
        rarity = math.log(1 + (len(candidates) - len(then) + 0.5) / (len(then) + 0.5))
        bonus |= {candidate: bonus.get(candidate, 0.0) + MOMENT_WORTH * rarity for candidate in then}
    return bonus


def by_date(candidates: Iterable[Candidate], order: Order) -> list[Scored]:
    """By time, then as the rows were made."""
    ranked = [(candidate.text_score, candidate) for candidate in candidates]
    return sorted(ranked, key=lambda s: (s[1].created_at_epoch, s[1].kind, s[1].id), reverse=order is Order.DATE_DESC)


def place(scored: Scored) -> tuple[float, int, Kind, int]:
    """The sort key of a ranking: no two candidates have the same."""
    score, candidate = scored
    return (score, candidate.created_at_epoch, candidate.kind, candidate.id)
