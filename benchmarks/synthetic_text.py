"""Text that behaves like a real memory's: words by a Zipf law, topics that a session repeats, identifiers and paths.

What makes search slow or wrong at scale is kept: a few words stand in a third of all rows, most words are rare, and a
session says its own words again and again.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from service import fulltext
from service.searching.words import STOP_WORDS

COMMON = """
the to of in for a test file error when commit session is and on with not code run from that function use fix by
as be this data branch git hook command it are check if new return path value now config was state build change string
list type call read write update user log fail instead set key start end line output already only into each because add
first should has without after all before same name then message default status empty make case time missing server
request response token cache queue worker retry timeout index table column query row schema migration transaction lock
thread process memory buffer stream socket port client service handler route header cookie login password account
payment invoice order customer email template page button form field label style theme color image upload download
folder directory version release deploy container cluster node network proxy certificate secret variable environment
setting option flag argument parameter result object class method interface module package import export dependency
library framework parser lexer syntax compiler linker debugger profiler benchmark metric trace alert dashboard report
event message signal callback promise future task job schedule timer clock date zone locale currency number float
integer boolean array map filter sort search match replace split join merge diff patch review comment thread reply
approve reject pending failed passed skipped broken stale duplicate orphan partial nested recursive parallel atomic
idempotent readable writable public private static dynamic lazy eager strict loose safe unsafe stable flaky slow fast
large small early late single double random ordered unique common rare hidden visible active closed open remote local
""".split()  # noqa: SIM905 - a list this long is read as a text
ONSETS = [*"bcdfghjklmnprstvw", *"br cl cr dr fl gr pl pr sc sh sl sp st th tr".split()]  # noqa: SIM905
VOWELS = [*"aeiou", "ai", "ea", "ee", "ia", "io", "oo", "ou"]
CODAS = ["", "", "", "b", "ck", "d", "ft", "g", "l", "ll", "m", "n", "nd", "nt", "p", "r", "rd", "s", "st", "t", "x"]
VOCABULARY = 50_000
TOPIC_WORDS, TOPIC_SHARE = 24, 0.4
COMMON_RANKS = 200
SENTENCE_WORDS = 12

Ranks = NDArray[np.int64]


class Language:
    """Words by a Zipf law (exponent 1); the first ranks are common English and programming words."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        made = dict.fromkeys(COMMON)
        while len(made) < VOCABULARY:
            made["".join(self._syllable() for _ in range(self.random.choice((1, 2, 2, 3, 3))))] = None
        self.words = np.array(list(made), dtype=object)
        weights = 1 / (np.arange(VOCABULARY) + 3)
        self.shares = weights / weights.sum()
        self._cumulated = np.cumsum(self.shares)

    def _syllable(self) -> str:
        return "".join(map(self.random.choice, (ONSETS, VOWELS, CODAS)))

    def draw(self, count: int) -> Ranks:
        ranks = np.searchsorted(self._cumulated, self.numbers.random(count))
        return np.minimum(ranks, VOCABULARY - 1)

    def rare(self, count: int) -> Ranks:
        return self.numbers.integers(COMMON_RANKS, VOCABULARY, count)

    def topic(self) -> "Topic":
        identifiers = [
            "".join(word.capitalize() for word in self.words[self.rare(self.random.choice((2, 3)))]) for _ in range(6)
        ]
        return Topic(
            ranks=np.concatenate([self.draw(TOPIC_WORDS // 2), self.rare(TOPIC_WORDS // 2)]),
            identifiers=identifiers,
            hidden=[fulltext.shadow(identifier) for identifier in identifiers],
            paths=[f"src/{'/'.join(self.words[self.rare(2)])}.go" for _ in range(4)],
        )

    def speech(self, topic: "Topic", count: int) -> list[str]:
        """`count` words, of which TOPIC_SHARE are the topic's."""
        ranks = self.draw(count)
        own = self.numbers.random(count) < TOPIC_SHARE
        ranks[own] = topic.ranks[self.numbers.integers(0, TOPIC_WORDS, int(own.sum()))]
        return list(map(str, self.words[ranks]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What a session is about. `hidden`: the parts of each identifier, as the text index holds them."""

    ranks: Ranks
    identifiers: list[str]
    hidden: list[str]
    paths: list[str]


class Speaker:
    """Hands out one session's words, drawn at once."""

    def __init__(self, language: Language, topic: Topic, words: int) -> None:
        self._random = language.random
        self._topic = topic
        self._words = language.speech(topic, words)
        self._place = 0

    def say(self, count: int) -> str:
        """Words without an end, as titles are."""
        self._place += count
        return " ".join(self._words[self._place - count : self._place])

    def tell(self, count: int) -> str:
        """Sentences."""
        lengths = [SENTENCE_WORDS] * (count // SENTENCE_WORDS) + [count % SENTENCE_WORDS]
        return " ".join(f"{self.say(length).capitalize()}." for length in lengths if length)

    def identifier(self) -> tuple[str, str]:
        """One in two times an identifier of the topic and what hides in it, else nothing."""
        which = self._random.randrange(2 * len(self._topic.identifiers))
        if which >= len(self._topic.identifiers):
            return "", ""
        return self._topic.identifiers[which], self._topic.hidden[which]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A text that stands once, and what a person asks who remembers it. `place` in 0..1 is its age; `blurred` has a
    word that the text has not."""

    place: float
    text: str
    asked: str
    blurred: str


ASKED_WORDS = range(3, 9)
OPENINGS = ("how did we", "why does the", "what was the", "where is", "when did", "")
TOLD_ROWS, LEFT_BY_CHANCE = 1_000_000, 0.1
ROW_WORDS = 100
EVERYDAY = [rank for rank, word in enumerate(dict.fromkeys(COMMON)) if word not in STOP_WORDS]


def needles(language: Language, count: int) -> Iterator[Needle]:
    """Texts of 14 to 24 words, asked with 3 to 8 of them in their order after an opening of stop words. Every second
    text has everyday words only, the others common and rare ones as they come. Words are taken until they tell one row
    of TOLD_ROWS from the others: three everyday words stand together in many rows, and nobody could say which was
    meant. The same for any size of the store."""
    made = 0
    while made < count:
        length = language.random.randrange(14, 25)
        ranks = language.numbers.permutation(EVERYDAY)[:length] if made % 2 else language.draw(length)
        asked = _identifying(language, ranks)
        if asked is None:
            continue
        made += 1
        words = [language.words[rank] for rank in asked]
        opening = language.random.choice(OPENINGS)
        strange = list(words)
        strange.insert(language.random.randrange(len(words) + 1), language.words[language.draw(1)[0]])
        yield Needle(
            place=language.random.random(),
            text=f"{' '.join(language.words[ranks]).capitalize()}.",
            asked=f"{opening} {' '.join(words)}".strip(),
            blurred=f"{opening} {' '.join(strange)}".strip(),
        )


def _identifying(language: Language, ranks: Sequence[int] | Ranks) -> list[int] | None:
    """Some of the words, in their order; None when ASKED_WORDS of them would say too little."""
    order = list({int(rank): place for place, rank in enumerate(ranks)}.values())
    language.random.shuffle(order)
    shares = [min(1.0, ROW_WORDS * float(language.shares[ranks[place]])) for place in order]
    rows = list(accumulate(shares, lambda left, share: left * share, initial=float(TOLD_ROWS)))[1:]
    fewest = next((count for count, left in enumerate(rows, 1) if left < LEFT_BY_CHANCE), None)
    if fewest is None or fewest not in ASKED_WORDS:
        return None
    count = language.random.randrange(fewest, ASKED_WORDS.stop)
    return [int(ranks[place]) for place in sorted(order[:count])]
