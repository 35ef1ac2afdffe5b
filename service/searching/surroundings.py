"""What stands around a record in its session counts for it: an answer seldom repeats the words of its question."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

SHARES = {1: 0.5, 2: 0.3}
"""Of a word's score in a record, what the next record of the session gets, and the next but one, before and after."""
MEANING_SHARES = {1: 0.2, 2: 0.1}
"""Likewise of the similarity to a query."""
BOTH = 0.3
"""Of the weaker of the two, where a record and its surroundings hold the same word."""

FOLLOWING = """, (
    SELECT json_group_array(id) FROM (
        SELECT n.id AS id FROM observations n WHERE n.session_id = r.session_id AND n.id > r.id ORDER BY n.id LIMIT 2)
) AS following"""
"""For the columns of a SELECT from observations under the alias r: the next record of its session, and the next but
one."""

Beside = Mapping[int, Sequence[tuple[int, float]]]
"""The records near each record of a session, and what they get of its words."""


def beside(following: Iterable[tuple[int, Sequence[int]]], shares: Mapping[int, float] = SHARES) -> Beside:
    """From records with the two that follow each."""
    near: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for one, others in following:
        for distance, other in enumerate(others, 1):
            near[one].append((other, shares[distance]))
            near[other].append((one, shares[distance]))
    return near


def gains(words: Sequence[Mapping[int, float]], near: Beside) -> dict[int, float]:
    """What records gain by what stands beside them, by id.

    Word by word: a word counts where it stands best, in the record or around it. Adding up whole scores would count a
    word that a session repeats again and again.
    """
    gained: dict[int, float] = defaultdict(float)
    for word in words:
        around: dict[int, float] = {}
        for row_id, score in word.items():
            for other, share in near.get(row_id, ()):
                if share * score > around.get(other, 0.0):
                    around[other] = share * score
        for row_id, score in around.items():
            own = word.get(row_id, 0.0)
            gained[row_id] += max(own, score) + BOTH * min(own, score) - own
    return gained


def meant(similarities: Mapping[int, float], near: Beside) -> dict[int, float]:
    """Similarities by id, with what stands beside each; what is not among them is taken for the least of them."""
    least = min(similarities.values(), default=0.0)
    return {
        row_id: similarity
        + sum(share * (similarities.get(other, least) - least) for other, share in dict(near.get(row_id, ())).items())
        for row_id, similarity in similarities.items()
    }
