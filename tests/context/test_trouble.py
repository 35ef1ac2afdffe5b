"""A session begins with one line when capture is broken, and with none when it is well."""

import os
from functools import partial
from pathlib import Path

import pytest

from hooks import spool
from hooks.envelope import Envelope, stamp
from service import providers, watermarks
from service.clock import local_minute
from service.core import Core
from service.database import Tx
from service.settings import load
from service.watermarks import Mark
from tests.context.notebook import NOW, Notebook

MINUTE_MS = 60_000
MESSAGE = """
INSERT INTO pending_messages (event_key, session_id, project, message_type, hook_event, payload_bytes, tokens, state,
    error, captured_at_epoch, created_at_epoch, finished_at_epoch)
VALUES (:key, 's1', 'shop', 'observation', 'PostToolUse', 1, 1, :state, :error, :at, :at,
    CASE :state WHEN 'pending' THEN NULL ELSE :at END)
"""
DUE = "UPDATE sessions SET due_at_epoch = :at"


async def line(notebook: Notebook) -> str:
    lines = (await notebook.start()).text.splitlines()
    assert sum("Capture is broken" in each for each in lines) <= 1
    return next((each for each in lines if "Capture is broken" in each), "")


async def finish(core: Core, state: str, count: int, *, at: int, error: str | None = None) -> None:
    def insert(tx: Tx) -> None:
        for number in range(count):
            row = {"key": f"{state}-{at}-{number}", "state": state, "error": error, "at": at + number}
            tx.run(MESSAGE, row)

    await core.database.write(insert)


@pytest.fixture
async def begun(notebook: Notebook) -> Notebook:
    await notebook.note("work")
    return notebook


async def test_all_is_well_without_a_line(begun: Notebook) -> None:
    await finish(begun.core, "done", 3, at=NOW - MINUTE_MS)
    assert await line(begun) == ""


async def test_dead_letters_are_told_until_something_succeeds_again(begun: Notebook) -> None:
    await finish(begun.core, "done", 1, at=NOW - 20 * MINUTE_MS)
    await finish(begun.core, "failed", 10, at=NOW - 10 * MINUTE_MS, error="the answer\nwas no JSON")
    told = await line(begun)
    assert f"10 events are dead letters since {local_minute(NOW - 10 * MINUTE_MS)}" in told
    assert "the answer was no JSON" in told
    await finish(begun.core, "done", 1, at=NOW - MINUTE_MS)
    assert await line(begun) == ""


async def test_a_paused_provider_is_told_while_the_pause_lasts(begun: Notebook) -> None:
    pause = {"reason": "auth", "message": "the key was refused", "until": NOW + MINUTE_MS, "step": 1, "now": NOW}

    def write(tx: Tx) -> None:
        tx.run(providers.PAUSE, {"provider": "rules", **pause})

    await begun.core.database.write(write)
    assert "paused (auth): the key was refused" in await line(begun)
    pause["until"] = NOW - 1
    await begun.core.database.write(write)
    assert await line(begun) == ""


async def test_a_pause_that_someone_wanted_is_no_trouble(begun: Notebook) -> None:
    await begun.core.database.write(lambda tx: providers.pause_by_hand(tx, now=NOW))
    assert await line(begun) == ""


async def test_failures_in_a_row_are_counted_with_their_beginning(begun: Notebook) -> None:
    for number in range(4):
        at = NOW - (10 - number) * MINUTE_MS
        await begun.core.database.write(partial(providers.failed, provider="rules", message="no luck", now=at))
    assert f"4 failures in a row since {local_minute(NOW - 10 * MINUTE_MS)}, the last: no luck" in await line(begun)
    await begun.core.database.write(lambda tx: providers.succeeded(tx, "rules", now=NOW))
    assert await line(begun) == ""


async def test_due_work_that_nobody_does_is_told(begun: Notebook) -> None:
    await begun.core.database.write(lambda tx: tx.run(DUE, {"at": NOW - 10 * MINUTE_MS}))
    assert f"nothing was compressed since {local_minute(NOW - 10 * MINUTE_MS)}" in await line(begun)


async def test_a_broken_vector_index_is_told_where_one_is_used(begun: Notebook, home: Path) -> None:
    def fail(tx: Tx) -> None:
        for failures in range(watermarks.BROKEN_AFTER):
            watermarks.fail(tx, Mark(failures=failures), "disk full", now=NOW - (9 - failures) * MINUTE_MS)

    await begun.core.database.write(fail)
    assert "vector index" not in (await begun.start()).text
    begun.core.configuration = load(home=home, environment={})
    text = (await begun.start()).text
    assert f"The vector index fails since {local_minute(NOW - 9 * MINUTE_MS)} (disk full)" in text
    assert "Capture is broken" not in text


async def test_events_that_wait_in_the_spool_are_told_when_they_wait_long(begun: Notebook, home: Path) -> None:
    for minutes in (30, 20, 1):
        headers = stamp(client="claude-code", captured_ms=NOW - minutes * MINUTE_MS)
        spool.write(os.fspath(home), Envelope(headers, b"{}"))
    assert f"3 events wait in the spool since {local_minute(NOW - 30 * MINUTE_MS)}" in await line(begun)


async def test_events_just_spooled_are_no_trouble(begun: Notebook, home: Path) -> None:
    spool.write(os.fspath(home), Envelope(stamp(client="claude-code", captured_ms=NOW - 1_000), b"{}"))
    assert await line(begun) == ""


async def test_empty_payloads_of_the_last_hour_are_told_those_of_last_week_are_not(begun: Notebook, home: Path) -> None:
    old = stamp(client="claude-code", captured_ms=NOW - 7 * 24 * 60 * MINUTE_MS)
    spool.write_rejected(os.fspath(home), Envelope(old, b""), reason="empty")
    assert await line(begun) == ""
    for minutes in range(20):
        headers = stamp(client="claude-code", captured_ms=NOW - (minutes + 1) * MINUTE_MS)
        spool.write_rejected(os.fspath(home), Envelope(headers, b""), reason="empty")
    assert f"20 events were unusable since {local_minute(NOW - 20 * MINUTE_MS)}" in await line(begun)
