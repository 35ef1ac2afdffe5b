"""`gapless doctor`: looks at every part that can be broken, says what to do, and repairs what is safe to repair."""

import sqlite3
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Json
from service.cli.output import local_time, print_json, print_line, print_table

if TYPE_CHECKING:
    from service.settings import Configuration

ACCESS_OF_OTHERS = 0o077
PROBLEMS_SHOWN = 5
READ_WHOLE_BYTES = 256 * 1024 * 1024
"""Up to here the check of every page takes a few seconds; writers wait while the text index is compared."""
NOT_READ = "large, not read whole; `gapless doctor --deep` does, and takes a minute for each 2 GB"
INTEGRITY = (
    "PRAGMA integrity_check",
    """SELECT "table" || ' row ' || rowid || ' refers to a missing row of ' || parent FROM pragma_foreign_key_check""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at. `advice` says what to do when it is not `ok`; a note is `ok` with something to tell."""

    check: str
    ok: bool
    message: str
    advice: str = ""
    fixed: bool = False


def doctor(
    *,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what is safe to repair.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Read all of a large database; writes wait meanwhile.")] = False,
    as_json: Json = False,
) -> None:
    """Check the data folder, database, text index, spool and service; exits 1 when something is wrong."""
    from service.settings import load

    configuration = load()
    findings = [
        *_check_permissions(configuration, fix=fix),
        *_check_database(configuration, fix=fix, deep=deep),
        *_check_spool(configuration),
        *_check_service(configuration),
    ]
    healthy = all(finding.ok or finding.fixed for finding in findings)
    if as_json:
        print_json({"healthy": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        print_table(("check", "", "finding"), ((f.check, _word(f), f.message) for f in findings))
        for finding in findings:
            if finding.advice and not finding.fixed:
                print_line(f"{finding.check}: {finding.advice}")
    if not healthy:
        raise typer.Exit(1)


def _word(finding: Finding) -> str:
    return "fixed" if finding.fixed else "ok" if finding.ok else "wrong"


def _check_permissions(configuration: "Configuration", *, fix: bool) -> Iterator[Finding]:
    from service.private_files import PRIVATE_FILE, PRIVATE_FOLDER

    home = configuration.home
    if not home.is_dir():
        yield Finding(check="data folder", ok=True, message=f"{home} is not there yet; the first start makes it")
        return
    open_paths = [path for path in (home, *home.rglob("*")) if _mode(path) & ACCESS_OF_OTHERS]
    if not open_paths:
        yield Finding(check="data folder", ok=True, message=f"{home}, private")
        return
    if fix:
        for path in open_paths:
            path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)
    shown = ", ".join(str(path) for path in open_paths[:PROBLEMS_SHOWN])
    yield Finding(
        check="data folder",
        ok=False,
        fixed=fix,
        message=f"{len(open_paths)} files or folders are open to other users: {shown}",
        advice="`gapless doctor --fix` makes them private",
    )


def _mode(path: Path) -> int:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a live service's temporary file
        return 0
    return 0 if stat.S_ISLNK(mode) else mode


def _check_database(configuration: "Configuration", *, fix: bool, deep: bool) -> Iterator[Finding]:
    from migrations import runner
    from service.database import open_writable

    if not configuration.database.exists():
        yield Finding(check="database", ok=True, message="not there yet; the first start makes it")
        return
    whole = deep or configuration.database.stat().st_size <= READ_WHOLE_BYTES
    try:
        with closing(open_writable(configuration.database)) as connection:
            due = runner.due(connection)
            applied = f"{len(due)} migrations are due; the next start applies them" if due else "up to date"
            yield Finding(check="schema", ok=True, message=applied)
            if not due:  # first, as the check of the whole file finds a damaged index as well
                wanted = configuration.settings.fts == "on"
                yield from _check_text_index(connection, wanted=wanted, fix=fix, whole=whole)
                yield _check_vector_index(connection, wanted=configuration.settings.chroma != "off", fix=fix)
            checks = INTEGRITY if whole else ()
            problems = [row[0] for statement in checks for row in connection.execute(statement) if row[0] != "ok"]
    except runner.MigrationError as error:
        yield Finding(check="schema", ok=False, message=str(error))
        return
    except sqlite3.DatabaseError as error:
        problems = [f"cannot be read: {error}"]
    yield Finding(
        check="database",
        ok=not problems,
        message="; ".join(problems[:PROBLEMS_SHOWN]) or ("sound" if whole else NOT_READ),
        advice=_way_back(configuration.home / "backups") if problems else "",
    )


def _way_back(folder: Path) -> str:
    from service import backups

    newest = backups.newest(folder)
    if newest is None:
        return f"there is no backup in {folder}; keep the file, `sqlite3 gapless.db .recover` may save what is in it"
    return f"`gapless down`, then `gapless restore {newest}`"


def _check_text_index(connection: sqlite3.Connection, *, wanted: bool, fix: bool, whole: bool) -> Iterator[Finding]:
    from service import fulltext

    if not wanted or not fulltext.available(connection):
        reason = "FTS=off" if not wanted else "this SQLite has no FTS5"
        yield Finding(check="text index", ok=True, message=f"not in use ({reason}); search is slower and ranks worse")
        return
    for table in fulltext.INDEXED:
        if whole:
            problem = fulltext.check(connection, table)
        else:
            problem = "it can't be read or lacks the newest row" if fulltext.is_damaged(connection, table) else None
        if problem and fix:
            fulltext.rebuild(connection, table)
        yield Finding(
            check=f"text index of {table}",
            ok=problem is None,
            fixed=bool(problem) and fix,
            message=problem or ("agrees with its table" if whole else "can be read and has the newest row"),
            advice="`gapless doctor --fix` rebuilds it" if problem else "",
        )


def _check_vector_index(connection: sqlite3.Connection, *, wanted: bool, fix: bool) -> Finding:
    from service import watermarks
    from service.clock import now_ms

    if not wanted:
        return Finding(check="vector index", ok=True, message="not in use (CHROMA=off); search goes by words")
    broken = connection.execute(
        watermarks.BROKEN, {"name": watermarks.NAME, "failures": watermarks.BROKEN_AFTER}
    ).fetchone()
    if broken:
        return Finding(
            check="vector index",
            ok=False,
            message=f"fails since {local_time(broken['failing_epoch'])}: {broken['error']}",
            advice="search goes by words meanwhile; what is said there corrects it, then the index goes on by itself",
        )
    given_up = connection.execute(watermarks.GIVEN_UP).fetchall()
    if given_up and fix:
        connection.execute(watermarks.TRY_AGAIN, {"now": now_ms()})
    shown = "; ".join(f"{row['doc_type']} {row['record_id']}: {row['error']}" for row in given_up[:PROBLEMS_SHOWN])
    return Finding(
        check="vector index",
        ok=not given_up,
        fixed=bool(given_up) and fix,
        message=f"{len(given_up)} records were given up: {shown}" if given_up else "no record was given up",
        advice="`gapless doctor --fix` tries them again" if given_up else "",
    )


def _check_spool(configuration: "Configuration") -> Iterator[Finding]:
    from hooks import spool

    home = str(configuration.home)
    waiting = spool.pending(home)
    yield Finding(
        check="spool",
        ok=True,
        message=f"{len(waiting)} events wait, the oldest since {_captured(waiting[0])}" if waiting else "empty",
        advice="the service takes them in; `gapless up` starts it" if waiting else "",
    )
    rejected = spool.rejected(home)
    if not rejected:
        yield Finding(check="rejected events", ok=True, message="none")
        return
    reasons = Counter(_reason(path) for path in rejected)
    listed = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    yield Finding(
        check="rejected events",
        ok=False,
        message=f"{listed}; from {_captured(rejected[0])} to {_captured(rejected[-1])}",
        advice=f"these never become memories: look into {Path(rejected[0]).parent}, then delete what you have seen",
    )


def _reason(path: str) -> str:
    from urllib.parse import unquote

    from hooks import envelope, spool

    try:
        return unquote(spool.read(path).headers[envelope.REJECTED])
    except (OSError, ValueError, KeyError):
        return "unreadable"


def _captured(path: str) -> str:
    digits = Path(path).name.partition("-")[0]
    return local_time(int(digits)) if digits.isdecimal() else "an unknown time"


def _check_service(configuration: "Configuration") -> Iterator[Finding]:
    from service import liveness
    from service.cli import live
    from service.version import VERSION

    found = live.find(configuration)
    if found is None:
        yield Finding(
            check="service",
            ok=True,
            message="not running; hooks keep events in the spool",
            advice="`gapless up` starts it",
        )
        return
    readiness = live.readiness(configuration)
    reasons = "; ".join(readiness.reasons)
    yield Finding(
        check="service",
        ok=readiness.ready,
        message=f"ready at {found.address}, pid {found.pid}" if readiness.ready else f"not ready: {reasons}",
        advice="" if readiness.ready else f"look into {configuration.home / 'logs'}; `gapless down`, then `gapless up`",
    )
    same = found.version in (None, VERSION)
    yield Finding(
        check="version",
        ok=same,
        message=VERSION if same else f"the service is {found.version}, this command {VERSION}",
        advice="" if same else "`gapless down`, then `gapless up`",
    )
    workers = liveness.live_workers(configuration.run)
    yield Finding(
        check="workers",
        ok=workers > 0,
        message=f"{workers} processes" if workers else "none: events are taken and wait",
        advice="" if workers else "`gapless work` starts one",
    )
