"""A database of any size with text that behaves like a real memory's, and needles in it.

One project holds 22 % of the rows, 499 share the rest, from 1.1 % down to 0.05 %. A session has 25 observations, five
prompts and three summaries and repeats its own topic.
"""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from benchmarks.synthetic_text import Language, Needle, Speaker, Topic, needles
from migrations import runner
from service import fulltext
from service.database import open_writable

TYPES = ("change", "discovery", "bugfix", "feature", "refactor", "decision")
PROJECTS, LARGEST_SHARE, FLATTENING = 500, 0.22, 20
OBSERVATIONS, PROMPTS, SUMMARIES = 25, 5, 3
"""Of a session."""
SESSION_WORDS = OBSERVATIONS * 140 + PROMPTS * 60 + SUMMARIES * 80
"""More than its records take."""
SESSIONS_AT_ONCE = 40
NEEDLES, TITLE_WORDS = 200, 8
START_EPOCH, SPAN_MS = 1_700_000_000_000, 2 * 365 * 86_400_000

OBSERVATION = """
INSERT INTO observations (id, session_id, project, type, title, subtitle, narrative, facts, concepts, files_read,
    files_modified, search_extra, discovery_tokens, content_hash, created_at_epoch, stored_at_epoch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 400, ?, ?, ?)
"""
PROMPT = """
INSERT INTO user_prompts (event_key, session_id, project, prompt_number, text, created_at_epoch)
VALUES (?, ?, ?, ?, ?, ?)
"""
SUMMARY = """
INSERT INTO session_summaries (session_id, project, request, learned, completed, next_steps, created_at_epoch,
    stored_at_epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
SESSION = """
INSERT INTO sessions (session_id, project, platform, status, prompt_count, started_at_epoch, last_event_at_epoch,
    last_seen_epoch, ended_at_epoch) VALUES (?, ?, 'claude-code', 'closed', ?, ?, ?, ?, ?)
"""
PARENTS = """
INSERT INTO projects (name, created_at_epoch) SELECT project, min(started_at_epoch) FROM sessions GROUP BY project
"""
CHANGES = "INSERT INTO changes (doc_type, record_id) SELECT '{doc_type}', id FROM {table} ORDER BY id"
TABLES = {"observations": "observation", "session_summaries": "session_summary", "user_prompts": "user_prompt"}
ATTACHED = """
SELECT type, name, sql FROM sqlite_master
WHERE tbl_name IN (SELECT value FROM json_each(?)) AND type IN ('index', 'trigger') AND sql IS NOT NULL
"""

Row = tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class Rows:
    """Of some sessions, by their statements."""

    sessions: list[Row] = field(default_factory=list)
    observations: list[Row] = field(default_factory=list)
    prompts: list[Row] = field(default_factory=list)
    summaries: list[Row] = field(default_factory=list)

    def insert(self, connection: sqlite3.Connection) -> None:
        connection.executemany(SESSION, self.sessions)
        connection.executemany(OBSERVATION, self.observations)
        connection.executemany(PROMPT, self.prompts)
        connection.executemany(SUMMARY, self.summaries)


def build(path: Path, count: int, *, seed: int = 1) -> None:
    """Make the database at `path` with `count` observations and its text index. Indexes and triggers are made after the
    rows, which takes minutes for a million."""
    connection = open_writable(path)
    runner.migrate(connection, now=START_EPOCH)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -200000")
    attached = connection.execute(ATTACHED, [orjson.dumps(list(TABLES)).decode()]).fetchall()
    connection.execute("BEGIN")
    for kind, name, _ in attached:
        connection.execute(f"DROP {kind} {name}")
    for some in sessions(count, seed=seed):
        some.insert(connection)
    connection.execute(PARENTS)
    for table, doc_type in TABLES.items():
        connection.execute(CHANGES.format(table=table, doc_type=doc_type))
    for _, _, sql in attached:
        connection.execute(sql)
    connection.execute("COMMIT")
    fulltext.ensure(connection, wanted=True)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def planted(count: int, *, seed: int = 1) -> dict[int, Needle]:
    """The needles of a store of this size by the id of their observation."""
    places = random.Random(seed)
    found: dict[int, Needle] = {}
    for needle in needles(Language(seed), min(NEEDLES, count // 2)):
        row_id = 1 + int(needle.place * count)
        while row_id in found:
            row_id = places.randrange(1, count + 1)
        found[row_id] = needle
    return found


def sessions(count: int, *, seed: int = 1) -> Iterator[Rows]:
    """`count` observations with what belongs to them, in the order of their time, some sessions at once."""
    language, hidden = Language(seed), planted(count, seed=seed)
    names = [f"p{number}" for number in range(PROJECTS)]
    weights = [1 / (number + FLATTENING) for number in range(1, PROJECTS)]
    weights = [LARGEST_SHARE * sum(weights) / (1 - LARGEST_SHARE), *weights]
    chosen = language.random.choices(names, cum_weights=list(accumulate(weights)), k=-(-count // OBSERVATIONS))
    some = Rows()
    for number, project in enumerate(chosen):
        ids = range(number * OBSERVATIONS + 1, min((number + 1) * OBSERVATIONS, count) + 1)
        at = [START_EPOCH + SPAN_MS * row_id // count for row_id in ids]
        _session(some, language, f"session-{number}", project, list(zip(ids, at, strict=True)), hidden)
        if len(some.sessions) == SESSIONS_AT_ONCE:
            yield some
            some = Rows()
    yield some


def _session(
    some: Rows,
    language: Language,
    session_id: str,
    project: str,
    moments: Sequence[tuple[int, int]],
    hidden: dict[int, Needle],
) -> None:
    topic = language.topic()
    speaker = Speaker(language, topic, SESSION_WORDS)
    first, last = moments[0][1], moments[-1][1]
    some.sessions.append((session_id, project, PROMPTS, first, last, last, last))
    for row_id, at in moments:
        said = _observation(speaker, topic, language.random, hidden.get(row_id))
        some.observations.append((row_id, session_id, project, *said, f"{row_id:016x}", at, at))
    for number in range(1, PROMPTS + 1):
        key, text = f"{session_id}-{number}", speaker.tell(language.random.randrange(8, 60))
        some.prompts.append((key, session_id, project, number, text, first + (last - first) * number // PROMPTS))
    for number in range(1, SUMMARIES + 1):
        texts = (speaker.say(10), speaker.tell(30), speaker.tell(20), speaker.say(8))
        at = first + (last - first) * number // SUMMARIES
        some.summaries.append((session_id, project, *texts, at, at))


def _observation(speaker: Speaker, topic: Topic, rng: random.Random, needle: Needle | None) -> Row:
    """Type, title, subtitle, narrative, four lists and search_extra."""
    paths = [orjson.dumps([rng.choice(topic.paths)]).decode() for _ in range(2)]
    if needle is not None:
        title = " ".join(needle.text.split()[:TITLE_WORDS]) + "…"
        return (rng.choice(TYPES), title, "", needle.text, "[]", "[]", "[]", "[]", "")
    identifier, extra = speaker.identifier()
    narrative = speaker.tell(rng.randrange(30, 90))
    facts = [speaker.say(8) for _ in range(rng.randrange(4))]
    return (
        rng.choice(TYPES),
        f"{speaker.say(8)} {identifier}".rstrip(),
        speaker.say(5),
        f"{identifier} {narrative}".lstrip(),
        orjson.dumps(facts).decode(),
        orjson.dumps([speaker.say(1), speaker.say(1)]).decode(),
        *paths,
        extra,
    )
