"""Which observations are worth showing when a session begins, before anyone has said what it is about."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.context.notes import Candidate
from service.searching.words import WORD

HALF_EVERY = 50
"""Places down the list of the newest after which recency counts half. This and the weights were tuned on recorded
sessions with benchmarks/context.py: which rows name the sessions whose work the next one went on with?"""
TYPE_WEIGHT = 0.2
WORTH = {"decision": 1.0, "bugfix": 0.6, "feature": 0.5, "discovery": 0.3, "refactor": 0.2}
FILE_WEIGHT = 0.3
WARM, WARM_HALF = 60, 20
"""The newest observations whose files count as those the work is at, the twentieth half as much as the first."""
PER_SESSION = 3
"""Then the other sessions come first: a long session would fill the list alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """`similar`: how many others say the same and are not shown."""

    candidate: Candidate
    similar: int = 0


def grouped(candidates: Iterable[Candidate]) -> list[Chosen]:
    """Those whose titles have the same words, in any order, as one: the first of them."""
    leaders: dict[tuple[str, ...], Candidate] = {}
    sizes: Counter[tuple[str, ...]] = Counter()
    for candidate in candidates:
        words = tuple(sorted(WORD.findall(candidate.title.casefold()))) or (candidate.title,)
        leaders.setdefault(words, candidate)
        sizes[words] += 1
    return [Chosen(candidate=leader, similar=sizes[words] - 1) for words, leader in leaders.items()]


def ranked(newest: Sequence[Chosen]) -> list[Chosen]:
    """The most useful first: recent, of a telling type, about the files the work is at, from several sessions."""
    warmth: dict[str, float] = defaultdict(float)
    for place, chosen in enumerate(newest[:WARM]):
        for path in chosen.candidate.files:
            warmth[path] += 1 / (1 + place / WARM_HALF)
    warmest = max(warmth.values(), default=1.0)

    def score(place: int, candidate: Candidate) -> float:
        heat = max((warmth.get(path, 0.0) / warmest for path in candidate.files), default=0.0)
        return 2 ** (-place / HALF_EVERY) + TYPE_WEIGHT * WORTH.get(candidate.type, 0.0) + FILE_WEIGHT * heat

    scores = [score(place, chosen.candidate) for place, chosen in enumerate(newest)]
    order = sorted(range(len(newest)), key=lambda place: -scores[place])
    return _spread([newest[place] for place in order])


def _spread(best: Iterable[Chosen]) -> list[Chosen]:
    shown: Counter[str | None] = Counter()
    first: list[Chosen] = []
    rest: list[Chosen] = []
    for chosen in best:
        shown[chosen.candidate.session_id] += 1
        enough = chosen.candidate.session_id is not None and shown[chosen.candidate.session_id] > PER_SESSION
        (rest if enough else first).append(chosen)
    return first + rest
