"""Two engines made one: what the meaning of a record counts beside what its words say."""

from collections.abc import Sequence

from service.searching.ranking import Candidate, Scored

MEANING_WORTH = 0.5
"""Of the best score by words, for the record that is nearest in meaning. It counts before the ranking looks at sessions
and files, so that these gain by it as they do by words; ranks of two finished lists told less (benchmarks/README.md,
Retrieval)."""


def by_meaning(near: Sequence[Scored]) -> dict[Candidate, float]:
    """From similarities: what each is worth, as a share of the best score by words. Only how the nearest differ tells:
    all of them are about as near when a query says little."""
    similarities = [similarity for similarity, _ in near]
    least, most = min(similarities, default=0.0), max(similarities, default=0.0)
    span = (most - least) or 1.0
    return {candidate: MEANING_WORTH * (similarity - least) / span for similarity, candidate in near}
