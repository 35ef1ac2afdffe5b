"""What is read for a context: rows of a few projects, through their indexes, never more than so many."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import orjson

from service.clock import local_minute
from service.database import Reader, Row
from service.searching.conditions import Within, conditions
from service.searching.kinds import SOURCES, tokens
from service.searching.planning import HAS_INDEX
from service.searching.request import Kind, SearchQuery

LOOKED_AT = 400
"""The newest observations of a project among which the ones to show are chosen."""
SUMMARIES_LOOKED_AT = 60
COUNTED = 50_000
"""Rows counted at most, in some milliseconds; of more it is only said that there are more."""
LEAST_CONFIDENCE = 0.6
"""Inferred facts below it are not told unasked (mission I2)."""
DAY = len("2026-11-30")
TEXT_CHARS = 20_000
"""Of one field: more than any context has room for."""

ALIVE = "confidence >= :confidence AND (expires_at_epoch IS NULL OR expires_at_epoch > :now)"
NEWEST = f"""
SELECT id, session_id, type, title, files_modified, created_at_epoch FROM (
    SELECT id, session_id, type, title, files_modified, created_at_epoch, confidence, expires_at_epoch
    FROM observations WHERE project = :project ORDER BY created_at_epoch DESC, id DESC LIMIT :limit)
WHERE {ALIVE}
"""
REMEMBERED = f"""
SELECT id FROM (
    SELECT id, confidence, expires_at_epoch FROM observations
    WHERE project = :project AND layer = :layer AND layer IN ('L1', 'L2')
    ORDER BY created_at_epoch DESC, id DESC LIMIT :limit)
WHERE {ALIVE}
"""
DETAILS = f"""
SELECT id, session_id, project, type, title, subtitle, substr(narrative, 1, {TEXT_CHARS}) AS narrative,
    facts, files_read, files_modified, discovery_tokens, created_at_epoch
FROM observations WHERE id IN (SELECT value FROM json_each(:ids)) AND {ALIVE}
"""
SUMMARIES = """
SELECT id, session_id, request, learned, completed, next_steps, created_at_epoch FROM session_summaries
WHERE project = :project ORDER BY created_at_epoch DESC, id DESC LIMIT :limit
"""
ABOUT_FILE = f"""
SELECT r.id, r.session_id, r.type, r.title, r.files_modified, r.files_read, r.created_at_epoch FROM (
    SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH :narrow
    ORDER BY rowid DESC LIMIT :limit) found CROSS JOIN observations r ON r.id = found.id
WHERE {{where}} AND {ALIVE} ORDER BY r.created_at_epoch DESC, r.id DESC
"""
COUNT = "SELECT count(*) FROM (SELECT 1 FROM observations WHERE project = :project LIMIT :limit)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An observation that may be shown."""

    id: int
    session_id: str | None
    type: str
    title: str
    files: tuple[str, ...]
    created_at_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An observation as a context tells it. `tokens`: what reading all of it would cost (estimate). `when`: local time,
    as `2026-11-30 14:05`."""

    id: int
    session_id: str | None
    project: str
    type: str
    title: str
    subtitle: str
    narrative: str
    facts: tuple[str, ...]
    files: tuple[str, ...]
    tokens: int
    discovery_tokens: int
    created_at_epoch: int
    when: str

    @property
    def day(self) -> str:
        return self.when[:DAY]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The newest summary of a session. `when`: local time."""

    id: int
    request: str
    learned: str
    completed: str
    next_steps: str
    when: str


def newest(reader: Reader, projects: Sequence[str], *, now: int) -> list[Candidate]:
    """The newest of several projects, the newest first."""
    found = []
    for project in projects:
        params = {"project": project, "confidence": LEAST_CONFIDENCE, "now": now, "limit": LOOKED_AT}
        found += [_candidate(row) for row in reader.all(NEWEST, params)]
    return sorted(found, key=lambda candidate: (candidate.created_at_epoch, candidate.id), reverse=True)


def about_file(reader: Reader, project: str, path: str, *, now: int) -> list[Candidate]:
    """The newest that touched a file, its path given from the top of the working tree. Needs the text index."""
    query = SearchQuery(files=(path,), project=project)
    limits = conditions(SOURCES[Kind.OBSERVATION], query, Within(project=project, small=True, narrows=True))
    if limits is None or not reader.value(HAS_INDEX):
        return []
    narrow = " AND ".join(f"({part})" for part in limits.narrow)
    params = {**limits.params, "narrow": narrow, "confidence": LEAST_CONFIDENCE, "now": now, "limit": LOOKED_AT}
    rows = reader.all(ABOUT_FILE.format(where=limits.where), params)
    return [_candidate(row) for row in rows if _touches(row, path)]


def remembered(reader: Reader, places: Sequence[tuple[str, str]], *, limit: int, now: int) -> list[int]:
    """Ids of what was remembered at each (project, layer), the newest first, in the order of the places."""
    ids: list[int] = []
    for project, layer in places:
        params = {"project": project, "layer": layer, "confidence": LEAST_CONFIDENCE, "now": now, "limit": limit}
        ids += [row["id"] for row in reader.all(REMEMBERED, params)]
    return ids


def details(reader: Reader, ids: Sequence[int], *, now: int) -> dict[int, Note]:
    """Notes by id; those that are gone, expired or too uncertain are left out."""
    params = {"ids": orjson.dumps(list(ids)).decode(), "confidence": LEAST_CONFIDENCE, "now": now}
    return {row["id"]: _note(row) for row in reader.all(DETAILS, params)}


def summaries(reader: Reader, projects: Sequence[str], *, sessions: int) -> list[Summary]:
    """The newest summary of each of the last sessions, the newest first."""
    rows = []
    for project in projects:
        rows += reader.all(SUMMARIES, {"project": project, "limit": SUMMARIES_LOOKED_AT if sessions else 0})
    rows.sort(key=lambda row: (row["created_at_epoch"], row["id"]), reverse=True)
    by_session: dict[str, Row] = {}
    for row in rows:
        by_session.setdefault(row["session_id"], row)
    return [_summary(row) for row in list(by_session.values())[:sessions]]


def count(reader: Reader, projects: Sequence[str]) -> int:
    """Observations of the projects; each counts as `COUNTED` when it has more."""
    return sum(reader.value(COUNT, {"project": project, "limit": COUNTED}) for project in projects)


def _touches(row: Row, path: str) -> bool:
    """A name alone is a file at the top, which others below have the name of, too."""
    stored = orjson.loads(row["files_modified"]) + orjson.loads(row["files_read"])
    return "/" in path or any(each == path or PurePath(each).is_absolute() for each in stored)


def _candidate(row: Row) -> Candidate:
    return Candidate(
        id=row["id"],
        session_id=row["session_id"],
        type=row["type"],
        title=row["title"],
        files=tuple(orjson.loads(row["files_modified"])),
        created_at_epoch=row["created_at_epoch"],
    )


def _note(row: Row) -> Note:
    given: dict[str, Any] = {
        name: row[name]
        for name in ("id", "session_id", "project", "type", "title", "subtitle", "narrative", "discovery_tokens")
    }
    facts = tuple(orjson.loads(row["facts"]))
    files = tuple(dict.fromkeys(orjson.loads(row["files_modified"]) + orjson.loads(row["files_read"])))
    return Note(
        **given,
        facts=facts,
        files=files,
        tokens=tokens(row["title"], row["subtitle"], row["narrative"], *facts, *files),
        created_at_epoch=row["created_at_epoch"],
        when=local_minute(row["created_at_epoch"]),
    )


def _summary(row: Row) -> Summary:
    return Summary(
        id=row["id"],
        request=row["request"],
        learned=row["learned"],
        completed=row["completed"],
        next_steps=row["next_steps"],
        when=local_minute(row["created_at_epoch"]),
    )
