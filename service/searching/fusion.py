"""Two rankings made one by weighted ranks: what the words say, and what the meaning says."""

from collections.abc import Sequence

from service.searching.ranking import Candidate, Scored, place

BY_TEXT, BY_MEANING = 1.0, 0.5
"""Equal weights are worse than text alone (benchmarks/README.md, Retrieval)."""
SMOOTHING = 10
"""How slowly the worth of a rank falls: 1 / (SMOOTHING + rank)."""


def fused(by_text: Sequence[Scored], by_meaning: Sequence[Candidate]) -> list[Scored]:
    """Both lists, best first, as one; what stands in both comes once."""
    scores: dict[Candidate, float] = {}
    for weight, ranking in ((BY_TEXT, [candidate for _, candidate in by_text]), (BY_MEANING, by_meaning)):
        for rank, candidate in enumerate(ranking):
            scores[candidate] = scores.get(candidate, 0.0) + weight / (SMOOTHING + rank)
    return sorted(((score, candidate) for candidate, score in scores.items()), key=place, reverse=True)
