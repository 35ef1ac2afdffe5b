"""After a vacuum nothing of what is forgotten is in any file of the data folder."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hooks import envelope, spool
from service.database import open_writable
from service.models import Batch, Compressed, ObservationDraft, SummaryDraft
from service.scrubbing import scrub
from tests.memories.stated import Stated
from tests.store.desk import Desk

PLANTED = "zanzibarquokka"


def repeats_all(batch: Batch) -> Compressed:
    ids = tuple(m.message_id for m in batch.messages)
    draft = ObservationDraft(
        type="change", title=PLANTED, narrative=f"about {PLANTED}", facts=(PLANTED,), message_ids=ids
    )
    return Compressed(observations=(draft,), summary=SummaryDraft(message_ids=ids, request=PLANTED, notes=PLANTED))


def files_with(folder: Path, text: str) -> list[str]:
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and text.encode() in path.read_bytes().lower()
    )


def words_of(database: Path, index: str) -> list[str]:
    """What the text index holds that begins as the planted word does: it keeps words without shared beginnings."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', '{index}', 'row')")
        return [row[0] for row in connection.execute("SELECT term FROM temp.words WHERE term LIKE 'zanz%'")]


async def test_no_file_holds_the_bytes_of_what_was_forgotten(desk: Desk, stated: Stated, home: Path) -> None:
    for session in ("s1", "s2"):
        await desk.prompt(f"look at {PLANTED}", session_id=session, prompt_id=session)
        await desk.tool(session_id=session, tool_input={"command": PLANTED})
        await desk.stop(session_id=session, last_assistant_message=PLANTED)
    await desk.work_off(repeats_all)
    await desk.tool(tool_name="Read", tool_input={"file_path": f"/x/{PLANTED}.py"})
    await stated.remember(f"remember {PLANTED}", tags=[PLANTED], keywords=[PLANTED], metadata={"k": PLANTED})
    kept = await stated.id_of("zanzibar is an island")
    assert files_with(home, PLANTED)

    await stated.forget(query=PLANTED)
    await stated.forget(session="s1")
    await stated.forget(session="s2", vacuum=True)

    assert files_with(home, PLANTED) == []
    assert words_of(home / "gapless.db", "observations_fts") == ["zanzibar"]
    assert words_of(home / "gapless.db", "user_prompts_fts") == []
    assert await stated.found("zanzibar") == [str(kept)]


def test_deleted_bytes_go_also_where_sqlite_leaves_them(home: Path) -> None:
    database = home / "gapless.db"
    with closing(open_writable(database)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("INSERT INTO outbox VALUES (1, 'x', :planted, 1)", {"planted": PLANTED * 1000})
        connection.execute("DELETE FROM outbox")
    assert files_with(home, PLANTED)
    scrub(database)
    assert files_with(home, PLANTED) == []


async def test_the_spool_is_left_alone(stated: Stated, home: Path) -> None:
    event = envelope.Envelope(envelope.stamp(client="claude-code", captured_ms=1), f'"{PLANTED}"'.encode())
    spool.write(str(home), event)
    await stated.remember(f"remember {PLANTED}")
    await stated.forget(query=PLANTED, vacuum=True)
    assert all(name.startswith("spool/") for name in files_with(home, PLANTED))
    assert len(spool.pending(str(home))) == 1


async def test_what_is_left_is_found_and_written_to_as_before(desk: Desk, stated: Stated, home: Path) -> None:
    first = await stated.id_of("deploy on Tuesdays")
    scrub(home / "gapless.db")
    second = await stated.id_of("deploy on Wednesdays")
    assert sorted(await stated.found("deploy")) == [str(first), str(second)]
    assert await desk.value("PRAGMA integrity_check") == "ok"
