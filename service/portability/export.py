"""Export: every record as a line, oldest first, the same bytes for the same records."""

import heapq
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from service.portability.lines import AnyLine, ObservationLine, PromptLine, SessionLine, SummaryLine

PROJECT_KEY = "(SELECT key FROM projects WHERE name = project) AS project_key"
SESSION_COLUMNS = f"""session_id, project, {PROJECT_KEY}, platform, cwd,
started_at_epoch, last_event_at_epoch, ended_at_epoch"""
SESSIONS = f"""
SELECT {SESSION_COLUMNS}, id, started_at_epoch AS at FROM sessions
WHERE coalesce(last_seen_epoch > forgotten_at_epoch, TRUE) AND (:project IS NULL OR project = :project)
ORDER BY started_at_epoch, id
"""
SESSION = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE session_id = :session_id"
RECORDS: dict[type[AnyLine], str] = {
    PromptLine: "user_prompts",
    ObservationLine: "observations",
    SummaryLine: "session_summaries",
}
IN_TIME = f"SELECT *, {PROJECT_KEY}, created_at_epoch AS at FROM {{table}}{{where}} ORDER BY created_at_epoch, id"
ONE_PROJECT = " WHERE project = :project"
LISTS = frozenset(("facts", "concepts", "files_read", "files_modified", "files_edited", "tags", "keywords", "metadata"))


@dataclass(slots=True)
class Export:
    """`project` is a name; None exports all. Reads one state of the database, however long it takes."""

    connection: sqlite3.Connection
    project: str | None
    now: int
    _told: set[str] = field(default_factory=set)

    def lines(self) -> Iterator[AnyLine]:
        """A session comes before the first record that names it."""
        self.connection.execute("BEGIN")
        where = "" if self.project is None else ONE_PROJECT
        ranked = [self._rows(SESSIONS, 0, SessionLine)]
        for rank, (model, table) in enumerate(RECORDS.items(), 1):
            ranked.append(self._rows(IN_TIME.format(table=table, where=where), rank, model))
        for _, _, _, model, row in heapq.merge(*ranked, key=lambda item: item[:3]):
            if model is SessionLine:
                yield from self._session(row)
            elif model is not ObservationLine or not self._has_expired(row):
                if row["session_id"] is not None and row["session_id"] not in self._told:
                    yield from self._session(self._one_session(row["session_id"]))
                yield _line(model, row)

    def _rows(
        self, sql: str, rank: int, model: type[AnyLine]
    ) -> Iterator[tuple[int, int, int, type[AnyLine], sqlite3.Row]]:
        for row in self.connection.execute(sql, {"project": self.project}):
            yield row["at"], rank, row["id"], model, row

    def _session(self, row: sqlite3.Row) -> Iterator[AnyLine]:
        if row["session_id"] not in self._told:
            self._told.add(row["session_id"])
            yield _line(SessionLine, row)

    def _one_session(self, session_id: str) -> sqlite3.Row:
        row: sqlite3.Row = self.connection.execute(SESSION, {"session_id": session_id}).fetchone()
        return row

    def _has_expired(self, row: sqlite3.Row) -> bool:
        return row["expires_at_epoch"] is not None and row["expires_at_epoch"] <= self.now


def lines(database: Path, *, project: str | None, now: int) -> Iterator[AnyLine]:
    """Every record of the database as lines. Raises `sqlite3.Error`."""
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        connection.isolation_level = None
        yield from Export(connection, project, now).lines()


def _line(model: type[AnyLine], row: sqlite3.Row) -> AnyLine:
    record: dict[str, Any] = {
        name: orjson.loads(value) if name in LISTS else value
        for name, value in dict(row).items()
        if name in model.model_fields
    }
    if model is ObservationLine:
        record["remembered"] = row["text_hash"] is not None
        record["project_key"] = row["project_key"] if row["session_id"] is None else None
    return model(**record)
