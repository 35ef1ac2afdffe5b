"""Brings a database file to this code's schema: numbered SQL once each, checked against the real tables.

The ledger `schema_migrations` says what was applied and with which checksum; it is advisory. What counts is the real
layout: it is compared with a fresh database made from the same SQL, and what is missing is added.
"""

import hashlib
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files

LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number           INTEGER PRIMARY KEY,
    name             TEXT NOT NULL,
    checksum         TEXT NOT NULL,
    applied_at_epoch INTEGER NOT NULL
) STRICT
"""

APPLIED = "SELECT number FROM schema_migrations"


class MigrationError(Exception):
    """The database can't be brought to this schema; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations of this code, by number."""
    found = []
    for entry in files("migrations").iterdir():
        number, _, words = entry.name.removesuffix(".sql").partition("_")
        if entry.name.endswith(".sql"):
            found.append(Migration(number=int(number), name=words, sql=entry.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def due(connection: sqlite3.Connection) -> list[Migration]:
    """What is not applied yet. Raises `MigrationError` when the file is newer than the code or its history differs."""
    applied = _ledger(connection)
    known = {migration.number: migration for migration in shipped()}
    if newer := sorted(set(applied) - set(known)):
        raise MigrationError(
            f"the database was made by a newer version of Gapless (schema {newer[-1]}, this code knows {max(known)}): "
            "upgrade Gapless, or restore a backup made by this version"
        )
    for number, checksum in applied.items():
        if checksum != known[number].checksum:
            raise MigrationError(
                f"migration {number} of this database differs from the one shipped: it was made by another build; "
                "restore a backup, or use the version that made it"
            )
    return [migration for number, migration in known.items() if number not in applied]


def missing(applied: Collection[int]) -> list[int]:
    """The numbers of this code's migrations that are not among those applied."""
    return [migration.number for migration in shipped() if migration.number not in applied]


def migrate(connection: sqlite3.Connection, *, now: int) -> list[str]:
    """Apply what is due and add what is missing; returns what was done, in words. `connection` is in autocommit mode.

    The caller makes a backup first when `due` names something and the database holds data.
    """
    done = []
    for migration in due(connection):
        script = f"BEGIN IMMEDIATE;\n{LEDGER};\n{migration.sql}\n"
        try:
            connection.executescript(script)
            connection.execute(
                "INSERT INTO schema_migrations VALUES (:number, :name, :checksum, :now)",
                {"number": migration.number, "name": migration.name, "checksum": migration.checksum, "now": now},
            )
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if migration.number in _ledger(connection):  # another process that starts now was faster
                continue
            raise MigrationError(f"migration {migration.number} ({migration.name}) failed: {error}") from error
        done.append(f"applied migration {migration.number} {migration.name}")
    return done + _repair(connection)


def _ledger(connection: sqlite3.Connection) -> dict[int, str]:
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchone()
    rows = connection.execute("SELECT number, checksum FROM schema_migrations").fetchall() if exists else []
    return {row[0]: row[1] for row in rows}


def _repair(connection: sqlite3.Connection) -> list[str]:
    """Add the tables, columns, indexes and triggers that the migrations should have left and that are not there."""
    reference = sqlite3.connect(":memory:")
    for migration in shipped():
        reference.executescript(migration.sql)
    done = []
    for kind in ("table", "index", "trigger"):
        for name, sql in _objects(reference, kind).items():
            if name not in _objects(connection, kind):
                connection.execute(sql)
                done.append(f"made the missing {kind} {name}")
            elif kind == "table":
                done += _add_columns(connection, reference, name)
    reference.close()
    return done


def _objects(connection: sqlite3.Connection, kind: str) -> dict[str, str]:
    query = "SELECT name, sql FROM sqlite_master WHERE type = :kind AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    return dict(connection.execute(query, {"kind": kind}).fetchall())


def _add_columns(connection: sqlite3.Connection, reference: sqlite3.Connection, table: str) -> list[str]:
    query = 'SELECT name, type, "notnull", dflt_value FROM pragma_table_info(:table)'
    there = {row[0] for row in connection.execute(query, {"table": table})}
    done = []
    for name, kind, not_null, default in reference.execute(query, {"table": table}):
        if name in there:
            continue
        fallback = default if default is not None or not not_null else "0" if kind == "INTEGER" else "''"
        rule = ("" if fallback is None else f" DEFAULT {fallback}") + (" NOT NULL" if not_null else "")
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}{rule}")
        done.append(f"added the missing column {table}.{name}")
    return done
