"""The order of what was found: text score, all terms in one record first, a share of the session's, age at the last."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.searching.request import Kind, Order

HEAD = 200
"""Rows of each kind, the best by text, that are ranked together with their sessions; the rest follow by text alone."""
SESSION_SHARE = 0.5
SESSION_HITS = 20
"""A session's score is the harmonic sum of its best so many hits."""
WHOLE_BONUS = 0.3
"""Of the best text score, for a record that holds every word: it stands before those that lack one."""
FRESHNESS, HALF_LIFE_MS = 0.02, 90 * 86_400_000
"""The newest record counts 2 % more than a very old one: enough between equals, never a cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A row that was found. `whole`: it holds every term."""

    kind: Kind
    id: int
    text_score: float
    whole: bool
    session_id: str | None
    created_at_epoch: int


Scored = tuple[float, Candidate]


def by_relevance(candidates: Sequence[Candidate]) -> list[Scored]:
    """The heads of all kinds together, best first. A total order: the same candidates give the same list."""
    best = max((candidate.text_score for candidate in candidates), default=0.0)
    scores = [(c.text_score + WHOLE_BONUS * best * c.whole, c) for c in candidates]
    sessions: dict[str, list[float]] = defaultdict(list)
    for score, candidate in sorted(scores, key=_order, reverse=True):
        if candidate.session_id is not None:
            sessions[candidate.session_id].append(score)
    shares = {
        session: SESSION_SHARE * sum(score / place for place, score in enumerate(hits[:SESSION_HITS], 1))
        for session, hits in sessions.items()
    }
    newest = max((candidate.created_at_epoch for candidate in candidates), default=0)
    ranked = [
        ((score + shares.get(c.session_id or "", SESSION_SHARE * score)) * _freshness(newest - c.created_at_epoch), c)
        for score, c in scores
    ]
    return sorted(ranked, key=_order, reverse=True)


def by_date(candidates: Iterable[Candidate], order: Order) -> list[Scored]:
    """By time, then as the rows were made."""
    ranked = [(candidate.text_score, candidate) for candidate in candidates]
    return sorted(ranked, key=lambda s: (s[1].created_at_epoch, s[1].kind, s[1].id), reverse=order is Order.DATE_DESC)


def _freshness(age_ms: int) -> float:
    return 1 + FRESHNESS * math.exp2(-age_ms / HALF_LIFE_MS)


def _order(scored: Scored) -> tuple[float, int, Kind, int]:
    score, candidate = scored
    return (score, candidate.created_at_epoch, candidate.kind, candidate.id)
