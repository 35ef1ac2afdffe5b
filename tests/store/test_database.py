"""The writer and its readers: one commit for what waits together, and errors that stay where they happened."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from service.core import Core
from service.database import Tx, open_writable
from service.errors import FenceLost, StoreError, StoreUnavailable
from service.models import Batch, Compressed, ObservationDraft
from tests.store.desk import Desk

ROOT = Path(__file__).parents[2]
PROJECT = "INSERT INTO projects (name, created_at_epoch) VALUES (:name, 1)"


def add(name: str) -> Callable[[Tx], int]:
    return lambda tx: tx.insert(PROJECT, {"name": name})


@contextmanager
def locked(path: Path, *, for_s: float) -> Iterator[threading.Thread]:
    """Another process holds a write transaction for a while; it begins before this returns."""
    program = f"""
import sqlite3, sys, time
connection = sqlite3.connect({str(path)!r}, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep({for_s})
connection.execute("ROLLBACK")
"""
    child = subprocess.Popen([sys.executable, "-I", "-c", program], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"locked\n"
        yield threading.current_thread()
    finally:
        child.kill()
        child.communicate()


async def test_a_job_that_fails_undoes_its_own_writes_and_no_others(core: Core) -> None:
    def fails(tx: Tx) -> None:
        tx.insert(PROJECT, {"name": "half"})
        raise FenceLost("on purpose")

    work = [core.database.write(add(name)) for name in ("a", "b")]
    results = await asyncio.gather(work[0], core.database.write(fails), work[1], return_exceptions=True)
    assert isinstance(results[1], FenceLost)
    rows = await core.database.read(lambda reader: reader.all("SELECT name FROM projects ORDER BY name"))
    assert [row[0] for row in rows] == ["a", "b"]


async def test_a_refused_statement_is_ours_to_catch_and_the_next_write_works(core: Core) -> None:
    with pytest.raises(StoreError):
        await core.database.write(lambda tx: tx.run("INSERT INTO projects (name) VALUES (NULL)"))
    with pytest.raises(StoreError):
        await core.database.write(lambda tx: tx.run("SELECT :missing", {"other": 1}))
    await core.database.write(add("a"))


async def test_a_cancelled_caller_leaves_the_writer_usable(core: Core) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        tx.insert(PROJECT, {"name": "kept"})
        entered.set()
        leave.wait(10)

    write = asyncio.ensure_future(core.database.write(slow))
    await asyncio.to_thread(entered.wait, 10)
    write.cancel()
    leave.set()
    with pytest.raises(asyncio.CancelledError):
        await write
    await core.database.write(add("next"))
    assert await core.database.read(lambda reader: reader.value("SELECT count(*) FROM projects")) == 2


async def test_what_waits_together_shares_a_commit(core: Core) -> None:
    entered, leave = threading.Event(), threading.Event()

    def gate(_tx: Tx) -> None:
        entered.set()
        leave.wait(10)

    first = asyncio.ensure_future(core.database.write(gate))
    await asyncio.to_thread(entered.wait, 10)
    writes = [asyncio.ensure_future(core.database.write(add(f"p{number}"))) for number in range(50)]
    await asyncio.sleep(0)  # let each of them take its place in the queue
    before = log_bytes(core)
    leave.set()
    await asyncio.gather(first, *writes)
    assert log_bytes(core) - before < 20 * 4_120, "50 commits would have written 50 copies of their pages"


def log_bytes(core: Core) -> int:
    return Path(f"{core.database.path}-wal").stat().st_size


async def test_readers_cannot_write(core: Core) -> None:
    with pytest.raises(StoreUnavailable):
        await core.database.read(
            lambda reader: reader.all("INSERT INTO projects (name, created_at_epoch) VALUES ('x', 1)")
        )


async def test_more_readers_than_connections_wait_their_turn(core: Core) -> None:
    async def read() -> int:
        return await core.database.read(lambda reader: int(reader.value("SELECT count(*) FROM sqlite_master")))

    assert len(set(await asyncio.gather(*(read() for _ in range(40))))) == 1


async def test_the_files_are_the_owners_alone(core: Core) -> None:
    await core.database.write(add("a"))
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in core.configuration.home.rglob("*") if path.is_file()
    }
    assert modes.keys() >= {"gapless.db", "gapless.db-wal"}
    assert set(modes.values()) == {0o600}
    folders = [core.configuration.home, *filter(Path.is_dir, core.configuration.home.iterdir())]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


async def test_the_database_is_durable_and_its_log_is_bounded(core: Core) -> None:
    def pragmas(tx: Tx) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "journal_size_limit")
        return [tx.value(f"PRAGMA {name}") for name in names]

    assert await core.database.write(pragmas) == ["wal", 2, 1, 4 * 1024 * 1024]


@pytest.mark.slow
async def test_events_posted_while_another_process_writes_for_three_seconds_are_all_accepted(desk: Desk) -> None:
    with locked(desk.core.database.path, for_s=3):
        started = time.monotonic()
        receipts = await asyncio.gather(*(desk.tool() for _ in range(20)))
        took_s = time.monotonic() - started
    assert {r.status for r in receipts} == {"queued"}
    assert 1 < took_s < 5
    assert await desk.states() == {"pending": 20}


@pytest.mark.slow
def test_a_new_file_that_another_process_writes_first_is_waited_for(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.2, other.execute, ["COMMIT"]).start()
        with closing(open_writable(tmp_path / "new.db")) as ours:
            assert ours.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


async def test_a_lock_longer_than_the_timeout_is_an_error_that_says_so_and_passes(desk: Desk) -> None:
    with locked(desk.core.database.path, for_s=30), pytest.raises(StoreUnavailable, match="locked"):
        await desk.tool()
    assert (await desk.tool()).status == "queued"


@pytest.mark.slow
async def test_eight_processes_writing_200_events_each_make_1600(desk: Desk) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from service.core import Core, Incoming
from service.intake import Envelope
from service.settings import load

async def main(home, writer):
    core = Core.open(load(home=Path(home), environment={}))
    for number in range(200):
        payload = {"hook_event_name": "PostToolUse", "session_id": f"s{writer}", "tool_use_id": str(number),
                   "cwd": "/nowhere/shop", "tool_name": "Bash", "tool_input": {"command": "make"}}
        assert (await core.ingest(Incoming(payload=payload, size=100, envelope=Envelope()))).status == "queued"
    await core.close()

asyncio.run(main(*sys.argv[1:]))
"""
    home = str(desk.core.configuration.home)
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", program, home, str(writer), cwd=ROOT)
        for writer in range(8)
    ]
    async with asyncio.timeout(60):
        assert [await child.wait() for child in children] == [0] * 8
    assert await desk.states() == {"pending": 1600}
    assert await desk.value("PRAGMA integrity_check") == "ok"


@pytest.mark.slow
def test_a_full_disk_refuses_events_clearly_and_takes_them_again_when_there_is_space(
    home: Path, tmp_path: Path
) -> None:
    program = """
import asyncio, resource, sys
from pathlib import Path
from service.core import Core, Incoming
from service.errors import StoreUnavailable
from service.intake import Envelope
from service.settings import load

async def post(core, number):
    payload = {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_use_id": str(number), "cwd": "/x",
               "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": "no secret " * 2000}}
    return await core.ingest(Incoming(payload=payload, size=100, envelope=Envelope()))

async def main(home):
    core = Core.open(load(home=Path(home), environment={}))
    size = (Path(home) / "gapless.db").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200_000, resource.RLIM_INFINITY))
    accepted, refused = [], []
    for number in range(60):
        try:
            accepted.append((await post(core, number)).message_id)
        except StoreUnavailable as error:
            refused.append(number)
            assert "disk" in str(error), error
    assert accepted and refused, (accepted, refused)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for number in refused:
        assert (await post(core, number)).status == "queued"
    assert await core.database.read(lambda reader: reader.value("SELECT count(*) FROM pending_messages")) == 60
    assert await core.database.read(lambda reader: reader.value("PRAGMA integrity_check")) == "ok"
    await core.close()

asyncio.run(main(sys.argv[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(home)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_no_database_is_refused_in_words(home: Path, configuration: object) -> None:
    (home / "gapless.db").write_bytes(b"this is no database, and long enough to have a header" * 100)
    with pytest.raises(StoreError, match="damaged"):
        Core.open(configuration)  # type: ignore[arg-type]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_data_folder_that_cannot_be_written_is_refused_in_words(home: Path, configuration: object) -> None:
    (home / "gapless.db").chmod(0o400)
    with pytest.raises(StoreError):
        Core.open(configuration)  # type: ignore[arg-type]


async def test_a_text_index_damaged_under_a_running_service_heals_and_loses_nothing(desk: Desk) -> None:
    def draft(batch: Batch) -> Compressed:
        ids = (batch.messages[0].message_id,)
        return Compressed(observations=(ObservationDraft(type="change", title="needle", message_ids=ids),))

    await desk.tool(at_ms=0)
    await desk.work_off(draft)
    other = sqlite3.connect(desk.core.database.path, isolation_level=None)
    other.execute("UPDATE observations_fts_data SET block = zeroblob(4) WHERE id > 10")
    other.execute("UPDATE observations_fts_data SET block = x'ffffffffff' WHERE id = 10")
    other.close()
    await desk.tool(at_ms=100_000)
    batch = await desk.claimed()
    with pytest.raises(StoreUnavailable, match="rebuilt"):
        await desk.complete(batch, draft(batch))
    await desk.complete(batch, draft(batch))
    found = await desk.rows("SELECT rowid FROM observations_fts WHERE observations_fts MATCH 'needle' ORDER BY 1")
    assert found == [(1,), (2,)]
