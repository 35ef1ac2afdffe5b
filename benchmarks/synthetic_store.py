"""A database of any size with text that behaves like a real memory's: Zipf vocabulary, bursts by session and project.

What makes search slow or wrong at scale is kept: a few words stand in a third of all rows, a session repeats its own
topic, identifiers and paths are rare and exact, one project holds 22 % of the rows and 499 share the rest.
"""

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import orjson

from migrations import runner
from service import fulltext
from service.database import open_writable

COMMON = """
add the a to of in for test file error when commit session is and on with not code run from that function use fix by
as be this data branch git hook command it are check if new return path value now config was state build change string
list type call read write update user log fail instead set key start end line output already only into each because
first should has without after all before same name then message default status empty make case time missing
""".split()  # noqa: SIM905 - a list this long is read as a text
ONSETS = [
    *"bcdfghjklmnprstvw",
    "br",
    "cl",
    "cr",
    "dr",
    "fl",
    "gr",
    "pl",
    "pr",
    "sc",
    "sh",
    "sl",
    "sp",
    "st",
    "th",
    "tr",
]
VOWELS = [*"aeiou", "ai", "ea", "ee", "ia", "io", "oo", "ou"]
CODAS = ["", "", "", "b", "ck", "d", "ft", "g", "l", "ll", "m", "n", "nd", "nt", "p", "r", "rd", "s", "st", "t", "x"]
TYPES = ("change", "discovery", "bugfix", "feature", "refactor", "decision")
VOCABULARY = 50_000
PROJECTS, LARGEST_SHARE = 500, 0.22
ROWS_PER_SESSION = 25
TOPIC_WORDS, TOPIC_SHARE = 24, 0.4
START_EPOCH, SPAN_MS = 1_700_000_000_000, 2 * 365 * 86_400_000

INSERT = """
INSERT INTO observations (session_id, project, type, title, subtitle, narrative, facts, concepts, files_read,
    files_modified, search_extra, content_hash, created_at_epoch, stored_at_epoch)
VALUES (:session_id, :project, :type, :title, :subtitle, :narrative, :facts, :concepts, :files_read, :files_modified,
    :search_extra, :hash, :at, :at)
"""


class Language:
    """Words by a Zipf law (exponent 1); the first ranks are common English and programming words."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        made = dict.fromkeys(COMMON)
        while len(made) < VOCABULARY:
            made["".join(self._syllable() for _ in range(rng.choice((1, 2, 2, 3, 3))))] = None
        self.words = list(made)
        self.weights = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))

    def _syllable(self) -> str:
        return "".join(map(self.rng.choice, (ONSETS, VOWELS, CODAS)))

    def draw(self, count: int) -> list[str]:
        return self.rng.choices(self.words, cum_weights=self.weights, k=count)

    def rare(self, count: int) -> list[str]:
        return self.rng.choices(self.words[200:], k=count)


@dataclass
class Topic:
    """What a session is about."""

    project: str
    words: list[str]
    identifiers: list[str]
    paths: list[str]


def rows(count: int, *, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Observations in the order of their time, as parameters of INSERT."""
    rng = random.Random(seed)
    language = Language(rng)
    topic = _topic(language, rng)
    for number in range(count):
        if number % ROWS_PER_SESSION == 0:
            topic = _topic(language, rng)
        yield _row(number, count, topic, language, rng)


def _topic(language: Language, rng: random.Random) -> Topic:
    project = "p0" if rng.random() < LARGEST_SHARE else f"p{rng.randrange(1, PROJECTS)}"
    identifiers = ["".join(word.capitalize() for word in language.rare(rng.choice((2, 3)))) for _ in range(6)]
    paths = [f"src/{'/'.join(language.rare(2))}.go" for _ in range(4)]
    return Topic(project, language.draw(TOPIC_WORDS // 2) + language.rare(TOPIC_WORDS // 2), identifiers, paths)


def _text(length: int, topic: Topic, language: Language, rng: random.Random) -> str:
    words = language.draw(length)
    for place in range(length):
        if rng.random() < TOPIC_SHARE:
            words[place] = rng.choice(topic.words)
    if rng.random() < 0.5:
        words.insert(rng.randrange(length), rng.choice(topic.identifiers))
    return " ".join(words)


def _row(number: int, count: int, topic: Topic, language: Language, rng: random.Random) -> dict[str, Any]:
    title, subtitle = _text(8, topic, language, rng), _text(10, topic, language, rng)
    narrative = _text(rng.randrange(30, 90), topic, language, rng)
    facts = [_text(8, topic, language, rng) for _ in range(rng.randrange(4))]
    return {
        "session_id": f"session-{number // ROWS_PER_SESSION}",
        "project": topic.project,
        "type": rng.choice(TYPES),
        "title": title,
        "subtitle": subtitle,
        "narrative": narrative,
        "facts": orjson.dumps(facts).decode(),
        "concepts": orjson.dumps(rng.sample(topic.words, 2)).decode(),
        "files_read": orjson.dumps([rng.choice(topic.paths)]).decode(),
        "files_modified": orjson.dumps([rng.choice(topic.paths)]).decode(),
        "search_extra": fulltext.shadow(title, subtitle, narrative, *facts),
        "hash": f"{number:016x}",
        "at": START_EPOCH + SPAN_MS * number // count,
    }


def build(path: Path, count: int, *, seed: int = 1) -> None:
    """Make the database at `path` with `count` observations and its text index."""
    connection = open_writable(path)
    runner.migrate(connection, now=START_EPOCH)
    connection.execute("PRAGMA foreign_keys = OFF")
    made = rows(count, seed=seed)
    connection.execute("BEGIN")
    while some := list(islice(made, 1_000)):
        connection.executemany(INSERT, some)
    _parents(connection)
    connection.execute("COMMIT")
    fulltext.ensure(connection, wanted=True)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _parents(connection: sqlite3.Connection) -> None:
    """The projects and sessions that the rows name."""
    connection.execute(
        "INSERT INTO projects (name, created_at_epoch) "
        "SELECT project, min(created_at_epoch) FROM observations GROUP BY project"
    )
    connection.execute(
        "INSERT INTO sessions (session_id, project, platform, started_at_epoch, last_event_at_epoch, last_seen_epoch) "
        "SELECT session_id, min(project), 'claude-code', min(created_at_epoch), max(created_at_epoch), "
        "max(created_at_epoch) FROM observations WHERE session_id IS NOT NULL GROUP BY 1"
    )
