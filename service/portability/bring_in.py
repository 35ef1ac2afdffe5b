"""Taking lines in: each record once, however often it comes, with its own times."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from service import observations, projects, sessions
from service.database import Tx
from service.fulltext import shadow
from service.memories import text_hash, title_of
from service.portability.lines import AnyLine, ObservationLine, PromptLine, SessionLine, SummaryLine
from service.projects import ProjectRef

FORGOTTEN = "SELECT 1 FROM forgotten WHERE event_key = :said"
KNOWN_OBSERVATIONS = """
SELECT count(*) FROM observations
WHERE content_hash = :hash AND created_at_epoch = :created_at_epoch AND project = :project AND type = :type
  AND facts = :facts
"""
INSERT_OBSERVATION = """
INSERT INTO observations (session_id, project, type, title, subtitle, narrative, facts, concepts, files_read,
    files_modified, search_extra, prompt_number, discovery_tokens, content_hash, text_hash, repeats, layer, tags,
    keywords, confidence, expires_at_epoch, metadata, created_at_epoch, stored_at_epoch)
VALUES (:session_id, :project, :type, :title, :subtitle, :narrative, :facts, :concepts, :files_read,
    :files_modified, :search_extra, :prompt_number, :discovery_tokens, :hash, :text_hash, :repeats, :layer, :tags,
    :keywords, :confidence, :expires_at_epoch, :metadata, :created_at_epoch, :now)
"""
KNOWN_SUMMARIES = """
SELECT count(*) FROM session_summaries
WHERE session_id = :session_id AND created_at_epoch = :created_at_epoch AND request = :request
  AND completed = :completed AND learned = :learned
"""
INSERT_SUMMARY = """
INSERT INTO session_summaries (session_id, project, request, investigated, learned, completed, next_steps, files_read,
    files_edited, notes, search_extra, prompt_number, discovery_tokens, created_at_epoch, stored_at_epoch)
VALUES (:session_id, :project, :request, :investigated, :learned, :completed, :next_steps, :files_read,
    :files_edited, :notes, :search_extra, :prompt_number, :discovery_tokens, :created_at_epoch, :now)
"""
KNOWN_PROMPT = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM user_prompts WHERE event_key = :event_key)
    OR EXISTS (SELECT 1 FROM forgotten WHERE event_key = :event_key)
    OR EXISTS (SELECT 1 FROM user_prompts WHERE session_id = :session_id AND text = :text
               AND abs(created_at_epoch - :created_at_epoch) <= :near
               AND event_key NOT IN (SELECT value FROM json_each(:told)))
"""
SAME_PROMPT_MS = 2_000
"""The same words in the same session so close are one prompt, though another client numbered it; but not when one file
tells of both: people say yes twice."""
TOLD = 50
"""Keys of the file's last prompts that are kept for that."""
INSERT_PROMPT = """
INSERT INTO user_prompts (event_key, session_id, project, prompt_number, client_prompt_id, text, search_extra,
    created_at_epoch)
VALUES (:event_key, :session_id, :project, :prompt_number, :client_prompt_id, :text, :search_extra, :created_at_epoch)
"""
COUNT_PROMPTS = """
UPDATE sessions SET prompt_count = max(prompt_count, :prompt_number) WHERE session_id = :session_id
"""
INSERT_SESSION = """
INSERT INTO sessions (session_id, project, platform, cwd, status, started_at_epoch, last_event_at_epoch,
    last_seen_epoch, ended_at_epoch)
VALUES (:session_id, :project, :platform, :cwd, CASE WHEN :ended_at_epoch IS NULL THEN 'active' ELSE 'closed' END,
    :started_at_epoch, :last_event_at_epoch, :now, :ended_at_epoch)
ON CONFLICT (session_id) DO NOTHING
"""

SAYING: dict[type[AnyLine], tuple[str, ...]] = {
    SessionLine: (),
    PromptLine: ("text",),
    ObservationLine: ("title", "subtitle", "narrative", "facts"),
    SummaryLine: ("request", "investigated", "learned", "completed", "next_steps", "notes"),
}
"""Without any of these a record says nothing."""


@dataclass(slots=True)
class BringIn:
    """Takes lines in, in their order. `project` overrides the name that they bring; `clean` takes private parts and
    secrets out of a text."""

    project: str | None
    clean: Callable[[str], str]
    _names: dict[str, str] = field(default_factory=dict)
    """What projects are called here, by the name they bring."""
    _at_once: Counter[object] = field(default_factory=Counter)
    _moment: int = -1
    _told: tuple[str, ...] = ()

    def attempt(self) -> "BringIn":
        """A copy to try with: a transaction may be undone, or run twice."""
        return BringIn(self.project, self.clean, dict(self._names), self._at_once.copy(), self._moment, self._told)

    def take(self, tx: Tx, lines: Sequence[AnyLine], *, now: int) -> list[str]:
        """Whether each was new, known, or skipped: nothing is left of a text that is private. Run again, it goes on
        where it was stopped."""
        return [self._taken(tx, line, now) for line in lines]

    def _taken(self, tx: Tx, line: AnyLine, now: int) -> str:
        row = self._cleaned(line) | {"now": now}
        texts = [text for name in SAYING[type(line)] for text in _texts(row[name]) if text.strip()]
        if not texts and not isinstance(line, SessionLine):
            return "skipped"
        if isinstance(line, ObservationLine) and not row["title"].strip():
            row["title"] = title_of(texts[0])
        return "new" if self._take(tx, line, row, now) else "known"

    def _take(self, tx: Tx, line: AnyLine, row: dict[str, Any], now: int) -> bool:
        row["project"] = self._project(tx, line, now)
        match line:
            case SessionLine():
                return tx.run(INSERT_SESSION, row) > 0
            case PromptLine():
                return self._prompt(tx, row)
            case ObservationLine():
                return self._observation(tx, line, row)
            case SummaryLine():
                return self._summary(tx, row)

    def _project(self, tx: Tx, line: AnyLine, now: int) -> str:
        if self.project is not None:
            return projects.resolve(tx, ProjectRef(override=self.project), fallback=None, now=now)
        name = self._names.get(line.project)
        key = line.project_key if isinstance(line, SessionLine | ObservationLine) else None
        if name is None or key:
            ref = ProjectRef(key=key, name=line.project) if key else ProjectRef(override=line.project)
            name = self._names[line.project] = projects.resolve(tx, ref, fallback=None, now=now)
        return name

    def _prompt(self, tx: Tx, row: dict[str, Any]) -> bool:
        told, self._told = self._told, (*self._told[1 - TOLD :], row["event_key"])
        if tx.value(KNOWN_PROMPT, row | {"near": SAME_PROMPT_MS, "told": _json(told)}):
            return False
        self._know_session(tx, row)
        tx.run(INSERT_PROMPT, row | {"search_extra": shadow(row["text"])})
        tx.run(COUNT_PROMPTS, row)
        return True

    def _observation(self, tx: Tx, line: ObservationLine, row: dict[str, Any]) -> bool:
        texts = (row["title"], row["subtitle"], row["narrative"], *row["facts"], *row["concepts"])
        row |= {
            "search_extra": observations.search_extra(texts, row["tags"], row["keywords"]),
            "hash": observations.content_hash(row["session_id"], row["title"], row["narrative"]),
            "text_hash": text_hash(row["narrative"]) if line.remembered else None,
        }
        for name in ("facts", "concepts", "files_read", "files_modified", "tags", "keywords", "metadata"):
            row[name] = _json(row[name])
        row["said"] = f"observation/{row['hash']}/{row['created_at_epoch']}"
        if self._is_known(tx, KNOWN_OBSERVATIONS, row, (row["hash"], row["project"], row["type"], row["facts"])):
            return False
        if row["session_id"] is not None:
            self._know_session(tx, row)
        tx.run(INSERT_OBSERVATION, row)
        return True

    def _summary(self, tx: Tx, row: dict[str, Any]) -> bool:
        texts = [row[name] for name in ("request", "investigated", "learned", "completed", "next_steps", "notes")]
        row |= {"search_extra": shadow(*texts)}
        for name in ("files_read", "files_edited"):
            row[name] = _json(row[name])
        row["said"] = f"summary/{row['session_id']}/{row['created_at_epoch']}"
        if self._is_known(tx, KNOWN_SUMMARIES, row, (row["session_id"], *texts)):
            return False
        self._know_session(tx, row)
        tx.run(INSERT_SUMMARY, row)
        return True

    def _is_known(self, tx: Tx, sql: str, row: dict[str, Any], key: object) -> bool:
        """The n-th of its kind at one moment is known when n are there: a memory may be said twice at once. What was
        forgotten or changed since is known."""
        if row["created_at_epoch"] != self._moment:
            self._moment = row["created_at_epoch"]
            self._at_once.clear()
        self._at_once[key] += 1
        known: int = tx.value(sql, row)
        return known >= self._at_once[key] or tx.one(FORGOTTEN, row) is not None

    def _know_session(self, tx: Tx, row: dict[str, Any]) -> None:
        at, now = row["created_at_epoch"], row["now"]
        if sessions.get(tx, row["session_id"]) is None:
            sessions.know(tx, row["session_id"], project=row["project"], platform="import", at=at, now=now)

    def _cleaned(self, line: AnyLine) -> dict[str, Any]:
        return {name: _each(value, self.clean) for name, value in line.model_dump(mode="json").items()}


def _texts(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _each(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_each(item, clean) for item in value]
    if isinstance(value, dict):
        return {key: _each(item, clean) for key, item in value.items()}
    return value


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
