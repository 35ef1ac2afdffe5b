"""The text index: FTS5 tables over observations, summaries and prompts, kept by triggers, rebuilt at will.

External content: the index holds no text of its own. `project` is a column of it, so that a query can be narrowed
inside the index; `search_extra` holds what the tokenizer can't see (the parts of identifiers, bigrams of CJK text).
A SQLite without FTS5 (or the setting FTS=off) runs without the triggers; they are made and the index rebuilt when it
is back.
"""

import re
import sqlite3

INDEXED = {
    "observations": ("title", "subtitle", "narrative", "facts", "concepts", "files_read", "files_modified"),
    "session_summaries": (
        *("request", "investigated", "learned", "completed", "next_steps", "notes"),
        *("files_read", "files_edited"),
    ),
    "user_prompts": ("text",),
}
EVERYWHERE = ("search_extra", "project")
TOKENIZER = "porter unicode61"

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*")
CAMEL_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
SHADOW_LIMIT = 4_000
"""Characters; the shadow of one record can't outgrow its text by far."""


def shadow(*texts: str) -> str:
    """The words hidden in texts: `parseHTTPReply` gives `parse HTTP Reply`, a CJK run its bigrams."""
    words: dict[str, None] = {}
    for text in texts:
        for identifier in set(IDENTIFIER.findall(text)):
            words.update(dict.fromkeys(CAMEL_PARTS.findall(identifier)))
        for run in CJK.findall(text):
            words.update(dict.fromkeys(bigrams(run)))
    return " ".join(words)[:SHADOW_LIMIT]


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of characters; a single character stands alone."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def available(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


def ensure(connection: sqlite3.Connection, *, wanted: bool) -> list[str]:
    """Make the index fit its tables; returns what was done, in words. `connection` is in autocommit mode.

    Not wanted or not possible: the triggers go, so that writes work. Otherwise tables and triggers are made where
    they are missing, and an index that missed a write or is damaged is rebuilt.
    """
    done = []
    for table in INDEXED:
        if not (wanted and available(connection)):
            _drop_triggers(connection, table)
        elif _missing_parts(connection, table) or _is_damaged(connection, table):
            rebuild(connection, table)
            done.append(f"rebuilt the text index of {table}")
    return done


def rebuild(connection: sqlite3.Connection, table: str) -> None:
    """Drop and make the index of one table from its rows."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        _drop_triggers(connection, table)
        _drop_index(connection, table)
        for statement in _schema(table).values():
            connection.execute(statement)
        connection.execute(f"INSERT INTO {table}_fts ({table}_fts) VALUES ('rebuild')")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def check(connection: sqlite3.Connection, table: str) -> str | None:
    """What is wrong with the index against its content, or None; reads all of it."""
    try:
        connection.execute(f"INSERT INTO {table}_fts ({table}_fts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.Error as error:
        return str(error)
    return None


def _schema(table: str) -> dict[str, str]:
    """Statements by the name of what they make: the index and its three triggers."""
    columns = ", ".join(INDEXED[table] + EVERYWHERE)
    new = ", ".join(f"new.{column}" for column in INDEXED[table] + EVERYWHERE)
    old = new.replace("new.", "old.")
    fts = f"{table}_fts"
    add = f"INSERT INTO {fts} (rowid, {columns}) VALUES (new.id, {new});"
    remove = f"INSERT INTO {fts} ({fts}, rowid, {columns}) VALUES ('delete', old.id, {old});"
    return {
        fts: f"CREATE VIRTUAL TABLE {fts} USING fts5 "
        f"({columns}, content = '{table}', content_rowid = 'id', tokenize = '{TOKENIZER}')",
        f"{fts}_insert": f"CREATE TRIGGER {fts}_insert AFTER INSERT ON {table} BEGIN {add} END",
        f"{fts}_delete": f"CREATE TRIGGER {fts}_delete AFTER DELETE ON {table} BEGIN {remove} END",
        f"{fts}_update": f"CREATE TRIGGER {fts}_update AFTER UPDATE OF {columns} ON {table} BEGIN {remove} {add} END",
    }


def _missing_parts(connection: sqlite3.Connection, table: str) -> bool:
    there = {
        row[0]: row[1]
        for row in connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE name LIKE :like", {"like": f"{table}_fts%"}
        )
    }
    return any(there.get(name) != sql for name, sql in _schema(table).items())


def _is_damaged(connection: sqlite3.Connection, table: str) -> bool:
    """Cheap: the structure record can be read and the newest row is in it. `check` reads everything."""
    try:
        connection.execute(
            f"SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :query LIMIT 1", {"query": "a OR the"}
        ).fetchall()
        newest, indexed = connection.execute(  # in one statement: another process may be writing
            f"SELECT (SELECT max(id) FROM {table}), (SELECT max(id) FROM {table}_fts_docsize)"
        ).fetchone()
    except sqlite3.Error:
        return True
    return bool(newest != indexed)


def _drop_index(connection: sqlite3.Connection, table: str) -> None:
    try:
        connection.execute(f"DROP TABLE IF EXISTS {table}_fts")
    except sqlite3.Error:  # the virtual table can't be opened any more: take its parts out one by one
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = :name", {"name": f"{table}_fts"})
        connection.execute("PRAGMA writable_schema = RESET")
    for part in ("data", "idx", "docsize", "config", "content"):
        connection.execute(f"DROP TABLE IF EXISTS {table}_fts_{part}")


def _drop_triggers(connection: sqlite3.Connection, table: str) -> None:
    for event in ("insert", "delete", "update"):
        connection.execute(f"DROP TRIGGER IF EXISTS {table}_fts_{event}")
