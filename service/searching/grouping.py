"""Near-duplicates among what was found: the newest of a group stands for it, the others are counted (mission E3)."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from service.fulltext import CASE_CHANGE, CJK, WORD, bigrams
from service.searching.words import NEGATED

SIMILAR = 0.85
"""Shared words over all words of two texts, from which they count as the same (mission E3). Their order has no say."""
FEWEST_WORDS = 4
"""A text of fewer says too little to be judged by it: three notes that are called `note` are three."""
NAME = re.compile(r"\.?[\w-]+(?:[./\\:][\w-]+)+|(?<!\w)\.\w+|\w*[\d_]\w*")
"""A path, a file, a dotted name, a number, an identifier: texts of one pattern differ in nothing else."""
NEGATIONS = NEGATED | {"not", "no", "never", "without", "cannot"}
COMPARED_CHARS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A record that was found, by what its text says: the first COMPARED_CHARS of it, and its whole length. `files` are
    the paths it is about, `stated`: somebody asked for it to be remembered."""

    id: int
    project: str
    created_at_epoch: int
    text: str
    length: int
    files: str = ""
    stated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The ids of records that say the same: the newest (of those that were stated, if any were), and the others in the
    order they were given in."""

    leader: int
    others: tuple[int, ...]


def group(found: Sequence[Described]) -> list[Group]:
    """Group records by their texts, in the order of the first of each group. Nothing is chained: all of a group are
    like its first. Records of two projects are never in one group, nor those that differ in their files, or in a name,
    a number or a negation of their texts: `port 6001` and `port 7001` say two things."""
    groups = list[list[Described]]()
    by_place: dict[tuple[str, str], list[list[Described]]] = defaultdict(list)
    for record in found:
        here = by_place[record.project, record.files]
        its = next((members for members in here if _alike(record, members[0])), None)
        if its is None:
            its = []
            here.append(its)
            groups.append(its)
        its.append(record)
    return [_group(members) for members in groups]


def _group(members: Sequence[Described]) -> Group:
    leader = max(members, key=lambda record: (record.stated, record.created_at_epoch, record.id)).id
    return Group(leader=leader, others=tuple(record.id for record in members if record.id != leader))


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    words = WORD.findall(text.casefold())
    if not text.isascii() and CJK.search(text):
        return frozenset(part for word in words for part in (*CJK.sub(" ", word).split(), *_pairs(word)))
    return frozenset(words)


def _pairs(word: str) -> list[str]:
    return [pair for run in CJK.findall(word) for pair in bigrams(run)]


def _alike(one: Described, other: Described) -> bool:
    return _similar(_words(one.text), _words(other.text)) and _says_the_same(one, other)


def _similar(one: frozenset[str], other: frozenset[str]) -> bool:
    if len(one) < FEWEST_WORDS or not SIMILAR * len(one) <= len(other) <= len(one) / SIMILAR:
        return False
    shared = len(one & other)
    return shared >= SIMILAR * (len(one) + len(other) - shared)


def _says_the_same(one: Described, other: Described) -> bool:
    """Of long texts the ends are not compared, so they must be as long at least."""
    as_long = max(one.length, other.length) <= COMPARED_CHARS or (
        min(one.length, other.length) >= SIMILAR * max(one.length, other.length)
    )
    return as_long and _names(one.text) == _names(other.text)


def _names(text: str) -> tuple[set[str], int]:
    """What texts may not differ in: names, and how often they say no."""
    words = WORD.findall(text)
    negations = sum(word.casefold() in NEGATIONS for word in words)
    return {*NAME.findall(text), *filter(CASE_CHANGE.search, words)}, negations
