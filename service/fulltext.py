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

WORD = re.compile(r"[^\W_]+")
HUMP = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
CASE_CHANGE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}(?!s(?![a-z]))[a-z]")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
SHADOW_LIMIT = 32_000
"""Characters. CJK text takes three for each of its own; of a longer one the rest is found by its whole runs only."""


def shadow(*texts: str) -> str:
    """The words hidden in texts: `parseHTTPReply` gives `parse HTTP Reply`, a CJK run its bigrams and its last
    character, text that is glued to a run is set free. Each sequence stands once, whole: it can be found as a phrase.
    """
    hidden: dict[str, None] = {}
    for text in texts:
        for word in dict.fromkeys(WORD.findall(text)):
            if CJK.search(word):
                hidden.update(dict.fromkeys(" ".join([*bigrams(run), run[-1]]) for run in CJK.findall(word)))
                hidden.update(dict.fromkeys(CJK.sub(" ", word).split()))
            elif CASE_CHANGE.search(word):
                hidden[" ".join(HUMP.findall(word))] = None
    return " ".join(hidden)[:SHADOW_LIMIT]


def humps(word: str) -> list[str]:
    """The words inside an identifier: `getUserById` and `get_user_by_id` both give get User By Id; a plain word itself.

    Letters that no hump covers (other alphabets) leave the word whole.
    """
    parts = [piece for piece in word.split("_") if piece]
    if CASE_CHANGE.search(word) and word.isascii():
        parts = [hump for piece in parts for hump in HUMP.findall(piece)]
    return parts


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
        elif _missing_parts(connection, table) or is_damaged(connection, table):
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


def repair(connection: sqlite3.Connection) -> None:
    """Rebuild the indexes that don't hold together; reads all of them."""
    for table in INDEXED:
        if check(connection, table) is not None:
            rebuild(connection, table)


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


def is_damaged(connection: sqlite3.Connection, table: str) -> bool:
    """Cheap: the index can be read and finds the newest row by its project. `check` reads everything."""
    try:
        connection.execute(
            f"SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH :query LIMIT 1", {"query": "a OR the"}
        ).fetchall()
        newest, indexed = connection.execute(  # in one statement: another process may be writing
            f"SELECT (SELECT max(id) FROM {table}), (SELECT max(id) FROM {table}_fts_docsize)"
        ).fetchone()
        return newest != indexed or (newest is not None and not _finds(connection, table, newest))
    except sqlite3.Error:
        return True


def _finds(connection: sqlite3.Connection, table: str, row_id: int) -> bool:
    project = connection.execute(f"SELECT project FROM {table} WHERE id = :id", {"id": row_id}).fetchone()[0]
    word = next(filter(str.isascii, WORD.findall(project)), None)
    if word is None:  # nothing that the tokenizer would surely take for a word
        return True
    query = f"SELECT 1 FROM {table}_fts WHERE {table}_fts MATCH :query AND rowid = :id"
    return connection.execute(query, {"query": f'project : "{word}"', "id": row_id}).fetchone() is not None


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
