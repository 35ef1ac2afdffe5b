"""A database of claude-mem as records of ours; of older schemas, what they have."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from service.clock import epoch_ms
from service.errors import InvalidInput
from service.memories import title_of
from service.models import ObservationType

ORIGIN = "claude-mem"
TABLES = ("sdk_sessions", "user_prompts", "observations", "session_summaries")
OF_GAPLESS = "message_payloads"
"""A table that only we have; observations and sessions have both."""
COLUMNS = "SELECT name FROM pragma_table_info(:table)"
TYPES = frozenset(kind.value for kind in ObservationType)
SUMMARY_TEXTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")

Record = dict[str, Any]
Row = Mapping[str, Any]


def is_one(path: Path) -> bool:
    """Whether a SQLite file is a database of claude-mem."""
    try:
        with closing(_open(path)) as connection:
            return _is_one(connection)
    except sqlite3.DatabaseError:
        return False


def records(path: Path) -> Iterator[tuple[str, Record]]:
    """Where each record stands (table and id) and the record as `lines.parsed` takes it. Sessions come first.

    Raises `InvalidInput` when this is no database of claude-mem.
    """
    try:
        with closing(_open(path)) as connection:
            connection.row_factory = sqlite3.Row
            if not _is_one(connection):
                raise InvalidInput(f"{path} is no database of claude-mem", field="paths")
            there = {table: _columns(connection, table) for table in TABLES}
            known = {_memory_id(row) or _client_id(row): row for row in _rows(connection, "sdk_sessions", there)}
            for table, make in MAKERS.items():
                for row in _rows(connection, table, there):
                    yield f"{table} {row.get('id')}", make(row, known)
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path} cannot be read: {error}", field="paths") from error


def _open(path: Path) -> sqlite3.Connection:
    """Without a log beside it nobody writes to it, and its folder may be read-only."""
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    connection = sqlite3.connect(
        uri, uri=True, check_same_thread=False
    )  # read in portions, by whichever thread is free
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


def _is_one(connection: sqlite3.Connection) -> bool:
    says = _columns(connection, "observations") & {"narrative", "text", "title"}
    return bool(says) and not _columns(connection, OF_GAPLESS)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[0] for row in connection.execute(COLUMNS, {"table": table})}


def _rows(connection: sqlite3.Connection, table: str, there: Mapping[str, set[str]]) -> Iterator[Row]:
    if there[table]:
        order = ", ".join(column for column in ("created_at_epoch", "id") if column in there[table])
        for row in connection.execute(f"SELECT * FROM {table}{f' ORDER BY {order}' if order else ''}"):
            yield dict(row)


def _memory_id(row: Row) -> object:
    return row.get("memory_session_id") or row.get("sdk_session_id")


def _client_id(row: Row) -> object:
    return row.get("content_session_id") or row.get("claude_session_id")


def _session(row: Row, _: Mapping[object, Row]) -> Record:
    started = _at(row, "started_at")
    ended = _at(row, "completed_at")
    return {
        "kind": "session",
        "session_id": _client_id(row) or _memory_id(row),
        "project": row.get("project") or "unknown",
        "platform": ORIGIN,
        "started_at_epoch": started,
        "last_event_at_epoch": ended or started,
        "ended_at_epoch": ended or started,
    }


def _prompt(row: Row, known: Mapping[object, Row]) -> Record:
    by_number = {session.get("id"): session for session in known.values()}
    by_client = {_client_id(session): session for session in known.values()}
    session = by_number.get(row.get("session_db_id")) or by_client.get(_client_id(row)) or {}
    client_id = _client_id(row) or _client_id(session)
    return {
        "kind": "prompt",
        "session_id": client_id,
        "project": session.get("project") or "unknown",
        "event_key": f"{ORIGIN}/{client_id}/prompt-{row.get('prompt_number')}-{_at(row, 'created_at')}",
        "prompt_number": row.get("prompt_number") or 1,
        "text": row.get("prompt_text") or "",
        "created_at_epoch": _at(row, "created_at"),
    }


def _observation(row: Row, known: Mapping[object, Row]) -> Record:
    kind, narrative = str(row.get("type") or ""), row.get("narrative") or row.get("text") or ""
    metadata = {"origin": ORIGIN} | ({} if kind in TYPES else {"type": kind})
    if model := row.get("generated_by_model"):
        metadata["model"] = model
    return {
        **_common(row, known),
        "kind": "observation",
        "type": kind if kind in TYPES else ObservationType.DISCOVERY.value,
        "title": row.get("title") or title_of(row.get("subtitle") or narrative),
        "subtitle": row.get("subtitle") or "",
        "narrative": narrative,
        "facts": _list(row.get("facts")),
        "concepts": _list(row.get("concepts")),
        "files_read": _list(row.get("files_read")),
        "files_modified": _list(row.get("files_modified")),
        "metadata": metadata,
    }


def _summary(row: Row, known: Mapping[object, Row]) -> Record:
    return {
        **_common(row, known),
        **{name: row.get(name) or "" for name in SUMMARY_TEXTS},
        "kind": "summary",
        "files_read": _list(row.get("files_read")),
        "files_edited": _list(row.get("files_edited")),
    }


MAKERS = {
    "sdk_sessions": _session,
    "user_prompts": _prompt,
    "observations": _observation,
    "session_summaries": _summary,
}


def _common(row: Row, known: Mapping[object, Row]) -> Record:
    memory_id = _memory_id(row)
    return {
        "session_id": _client_id(known.get(memory_id, {})) or memory_id,
        "project": row.get("merged_into_project") or row.get("project") or "unknown",
        "prompt_number": row.get("prompt_number"),
        "discovery_tokens": row.get("discovery_tokens") or 0,
        "created_at_epoch": _at(row, "created_at"),
    }


def _at(row: Row, name: str) -> int | None:
    return epoch_ms(row.get(f"{name}_epoch") or row.get(name))


def _list(value: object) -> list[str]:
    """A JSON array; of older rows, lines or what commas part."""
    if not value:
        return []
    try:
        found = orjson.loads(str(value))
    except orjson.JSONDecodeError:
        found = [part.strip(" -*\t") for part in re.split(r"[\n,]", str(value))]
    return [str(item) for item in (found if isinstance(found, list) else [found]) if item]
