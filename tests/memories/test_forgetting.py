"""A forgotten memory is gone from every table, and nothing brings it back."""

from functools import partial

import pytest

from service import inspection, observations, outbox, retention, sessions
from service.clock import now_ms
from service.errors import FenceLost, InvalidInput
from service.models import Batch, Compressed, ObservationDraft, SummaryDraft
from tests.memories.stated import T0, Stated
from tests.store.desk import Desk


def of_each_event(batch: Batch) -> Compressed:
    """An observation for each tool event, titled as what it built, and a summary of the turn."""
    tools = [m for m in batch.messages if m.message_type == "observation"]
    drafts = tuple(
        ObservationDraft(type="change", title=m.payload["tool_response"]["stdout"], message_ids=(m.message_id,))
        for m in tools
    )
    ids = tuple(m.message_id for m in batch.messages)
    return Compressed(observations=drafts, summary=SummaryDraft(message_ids=ids[-1:], request="build it all"))


def together(batch: Batch) -> Compressed:
    ids = tuple(m.message_id for m in batch.messages)
    drafts = (
        ObservationDraft(type="change", title="the whole", message_ids=ids),
        ObservationDraft(type="change", title="the first", message_ids=ids[:1]),
    )
    return Compressed(observations=drafts)


async def turn(desk: Desk, *, session: str = "s1", cwd: str = "/nowhere/shop", at_ms: int = 0) -> None:
    """A prompt, two builds and the stop, and what is made of them."""
    where = {"session_id": session, "cwd": cwd}
    await desk.prompt("please build", at_ms=at_ms, prompt_id=f"{session}-{at_ms}", **where)
    for number in (1, 2):
        await desk.tool(at_ms=at_ms + number, **where)
    await desk.stop(at_ms=at_ms + 3, **where)
    await desk.work_off(of_each_event)


async def replay_all(desk: Desk) -> list[int]:
    selection = inspection.Selection(since=1)
    return await desk.core.database.write(lambda tx: inspection.replay(tx, selection, dry_run=False, now=now_ms()))


async def counts(desk: Desk) -> tuple[int, int, int]:
    tables = ("observations", "session_summaries", "user_prompts")
    sizes = [await desk.value(f"SELECT count(*) FROM {table}") for table in tables]
    return sizes[0], sizes[1], sizes[2]


async def test_a_forgotten_memory_does_not_come_back_by_replay(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    told = await stated.forget(1)
    assert (told.observations, told.summaries, told.prompts, told.messages) == (1, 0, 0, 1)
    await replay_all(desk)
    await desk.work_off(of_each_event)
    assert await desk.rows("SELECT title FROM observations") == [("built 2",)]
    assert await desk.rows("SELECT state, reason FROM pending_messages WHERE id = 1") == [("done", "forgotten")]


async def test_a_forgotten_session_leaves_nothing_and_comes_back_neither_by_replay_nor_by_its_events(
    desk: Desk, stated: Stated
) -> None:
    await turn(desk)
    await turn(desk, session="s2", at_ms=100_000)
    told = await stated.forget(session="s1")
    assert (told.observations, told.summaries, told.prompts, told.messages) == (2, 1, 1, 3)
    assert await counts(desk) == (2, 1, 1)
    await replay_all(desk)
    again = await desk.prompt("please build", prompt_id="s1-0", session_id="s1")
    event = desk.payload(session_id="s1", tool_use_id="toolu_1")
    assert (again.status, (await desk.post(event, at_ms=1)).status) == ("duplicate", "duplicate")
    await desk.work_off(of_each_event)
    assert await counts(desk) == (2, 1, 1)


async def test_a_forgotten_session_is_in_no_list_until_it_goes_on(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    await stated.forget(session="s1")

    async def listed() -> tuple[int, int]:
        newest = partial(sessions.newest, project=None, limit=10, offset=0)
        total, rows = await desk.core.database.read(newest)
        return total, len(rows)

    assert await listed() == (0, 0)
    assert await desk.value("SELECT cwd FROM sessions") == ""
    await desk.core.database.write(lambda tx: tx.run("UPDATE sessions SET forgotten_at_epoch = 1"))
    await desk.tool(at_ms=50, tool_use_id="new")
    assert await listed() == (1, 1)


async def test_what_waits_of_a_forgotten_session_is_skipped_and_the_accounts_hold(desk: Desk, stated: Stated) -> None:
    await desk.tool()
    await desk.tool(session_id="s2")
    told = await stated.forget(session="s1")
    assert told.messages == 1
    assert await desk.states() == {"pending": 1, "skipped": 1}
    assert await desk.value("SELECT reason FROM pending_messages WHERE state = 'skipped'") == "forgotten"
    assert await desk.value("SELECT count(*) FROM message_payloads") == 1
    assert len((await desk.claimed()).messages) == 1


async def test_what_is_in_work_when_it_is_forgotten_is_not_stored(desk: Desk, stated: Stated) -> None:
    await desk.tool(cwd="/nowhere/shop")
    await desk.tool(cwd="/nowhere/mill")
    batch = await desk.claimed()
    assert len(batch.messages) == 2
    await stated.forget(project="mill")
    with pytest.raises(FenceLost):
        await desk.complete(batch, together(batch))
    assert await counts(desk) == (0, 0, 0)
    assert await desk.states() == {"pending": 1, "skipped": 1}
    assert [m.project for m in (await desk.claimed()).messages] == ["shop"]


async def test_forgetting_by_id_drops_the_sources_that_another_memory_shares(desk: Desk, stated: Stated) -> None:
    for _ in range(2):
        await desk.tool()
    await desk.work_off(together)
    await stated.forget(2)
    assert await desk.rows("SELECT title FROM observations") == [("the whole",)]
    assert await desk.value("SELECT count(*) FROM message_payloads") == 1
    assert await replay_all(desk) == [2]


async def test_a_forgotten_project_is_empty_and_others_are_untouched(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    await turn(desk, session="s2", cwd="/nowhere/mill", at_ms=100_000)
    told = await stated.forget(project="/nowhere/shop")
    assert (told.observations, told.summaries, told.prompts, told.messages) == (2, 1, 1, 3)
    for table in ("observations", "session_summaries", "user_prompts"):
        assert await desk.rows(f"SELECT DISTINCT project FROM {table}") == [("mill",)]
    assert await stated.found("build", project="shop") == []
    assert len(await stated.found("build", project="mill")) > 0


async def test_before_is_exclusive_and_filters_must_all_hold(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    await turn(desk, at_ms=100_000)
    await turn(desk, session="s2", at_ms=200_000)
    assert (await stated.forget(before=T0 + 1, dry_run=True)).observations == 0
    assert (await stated.forget(before=T0 + 2, dry_run=True)).observations == 1
    assert (await stated.forget(before=T0 + 150_000, session="s2", dry_run=True)).observations == 0
    assert (await stated.forget(1, 3, session="s1", before=T0 + 50_000, dry_run=True)).observations == 1
    assert (await stated.forget(1, "S1", "P1", project="mill", dry_run=True)).observations == 0
    told = await stated.forget(before=T0 + 150_000)
    assert (told.observations, told.summaries, told.prompts, told.messages) == (4, 2, 2, 6)
    assert await counts(desk) == (2, 1, 1)


async def test_ids_name_records_of_each_kind(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    told = await stated.forget("2", "S1", "P1", "S99", "99")
    assert (told.observations, told.summaries, told.prompts) == (1, 1, 1)
    assert await counts(desk) == (1, 0, 0)
    keys = [key for (key,) in await desk.rows("SELECT event_key FROM forgotten ORDER BY event_key")]
    assert sorted(key.split("/")[0] for key in keys) == ["UserPromptSubmit"] * 2 + ["observation", "summary"]


async def test_a_dry_run_counts_the_same_and_changes_nothing(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    before = await counts(desk), await desk.value("SELECT count(*) FROM message_payloads")
    planned = await stated.forget(session="s1", dry_run=True)
    assert (await counts(desk), await desk.value("SELECT count(*) FROM message_payloads")) == before
    done = await stated.forget(session="s1")
    assert planned.dry_run
    assert not done.dry_run
    assert (planned.observations, planned.summaries, planned.prompts, planned.messages) == (
        *(done.observations, done.summaries, done.prompts, done.messages),
    )


async def test_forgetting_needs_to_be_told_what(stated: Stated) -> None:
    with pytest.raises(InvalidInput, match="ids, project, session, before or query"):
        await stated.forget()


@pytest.mark.parametrize(
    ("query", "forgotten"),
    [
        ("falcon launch", {1, 2}),
        ("the falcon's launches", {1, 2}),
        ("falcon launch budget", {2}),
        ('"launch falcon"', set()),
        ("budget OR harbour", {2, 3}),
        ("shop", set()),
        ("falcon volcano", set()),
        ("?!", set()),
        ("*", set()),
    ],
)
async def test_a_query_forgets_what_holds_all_of_its_words(stated: Stated, query: str, forgotten: set[int]) -> None:
    for text in ("the falcon launch moved", "falcon: launch needs a budget", "the harbour is closed"):
        await stated.remember(text)
    told = await stated.forget(query=query)
    assert told.observations == len(forgotten)
    assert {row[0] for row in await stated.rows("SELECT id FROM observations")} == {1, 2, 3} - forgotten


async def test_a_query_forgets_in_its_project_and_with_its_sources(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    await stated.remember("built 1 by hand", project="mill")
    told = await stated.forget(query="built", project="shop")
    assert (told.observations, told.messages) == (2, 2)
    assert await desk.rows("SELECT project FROM observations") == [("mill",)]


async def test_a_query_drops_events_that_say_it_and_of_which_nothing_was_made_yet(desk: Desk, stated: Stated) -> None:
    await desk.tool(tool_input={"command": 'launch "Falcon_9" now'})
    await desk.tool(tool_input={"command": "launch falconX9"})
    assert (await stated.forget(query='"falcon_9" now', project="mill", dry_run=True)).messages == 0
    assert (await stated.forget(query='"falcon_9" now')).messages == 1
    assert await desk.rows("SELECT id, state FROM pending_messages ORDER BY id") == [(1, "skipped"), (2, "pending")]
    assert (await stated.forget(1, query="falconX9")).messages == 0


async def test_without_a_text_index_nothing_is_forgotten_by_query(desk: Desk, stated: Stated) -> None:
    await stated.remember("the falcon launch moved")
    await desk.core.database.write(lambda tx: tx.run("DROP TRIGGER observations_fts_insert"))
    with pytest.raises(InvalidInput) as caught:
        await stated.forget(query="falcon")
    assert caught.value.field == "query"


async def test_the_stream_tells_no_text_of_what_is_forgotten(desk: Desk, stated: Stated) -> None:
    await turn(desk)
    await stated.forget(project="shop")
    told = await desk.core.database.read(lambda reader: outbox.after(reader, 0, limit=100))
    assert all('"deleted":true' in row["data"] for row in told)
    assert not any("build" in row["data"] or "built" in row["data"] for row in told)
    assert [row["event"] for row in told].count("observation") == 4


async def test_vectors_go_and_the_change_is_told(desk: Desk, stated: Stated) -> None:
    number = await stated.id_of("the falcon launch moved")
    insert = """
    INSERT INTO embeddings (doc_type, record_id, part, project, model, text_hash, vector)
    VALUES ('observation', :id, 'narrative', 'shop', 'm', 'h', x'00')
    """
    await desk.core.database.write(lambda tx: tx.run(insert, {"id": number}))
    (before,) = await desk.rows("SELECT seq FROM changes WHERE record_id = :id", id=number)
    await stated.forget(number)
    (after,) = await desk.rows("SELECT seq FROM changes WHERE record_id = :id", id=number)
    assert after > before
    assert await desk.rows("SELECT 1 FROM embeddings") == []


async def test_forgetting_more_than_a_commit_takes_forgets_all_of_it(stated: Stated, desk: Desk) -> None:
    row = "INSERT INTO observations (project, type, title, content_hash, created_at_epoch, stored_at_epoch)"
    await stated.remember("one")
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450)"
    sql = f"{row} SELECT 'shop', 'change', 'row ' || i, 'h', i, i FROM ({numbers} SELECT i FROM n)"
    await desk.core.database.write(lambda tx: tx.run(sql))
    assert (await stated.forget(project="shop")).observations == 451
    assert await desk.value("SELECT count(*) FROM observations") == 0


async def test_an_expired_memory_goes_by_itself(desk: Desk, stated: Stated) -> None:
    await stated.remember("the falcon launch moved", expires_at_epoch=T0)
    await stated.remember("the harbour is closed", expires_at_epoch=now_ms() + 60_000)
    newest = partial(observations.newest, project=None, limit=10, offset=0, now=now_ms())
    total, rows = await desk.core.database.read(newest)
    assert (total, [row["title"] for row in rows]) == (1, ["the harbour is closed"])
    assert await stated.found("falcon") == []
    assert (await stated.search("")).total == 1
    assert not (await stated.remember("the falcon launch moved")).duplicate
    await desk.core.database.write(lambda tx: retention.drop_expired(tx, now=now_ms()))
    assert await desk.rows("SELECT id FROM observations ORDER BY id") == [(2,), (3,)]
