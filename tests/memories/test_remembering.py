"""What is stated is kept word for word, found at once, told apart from what the project has, and edited in place."""

from functools import partial
from typing import Any

import pytest

from service import memories, observations, sessions
from service.clock import now_ms
from service.errors import InvalidInput, NotFound
from service.memories import NewMemory
from service.models import Layer, ObservationType
from service.projects import ProjectRef
from tests.memories.stated import T0, Stated

KEY = "AKIA" + "IOSFODNN7EXAMPLE"


async def record(stated: Stated, observation_id: int) -> dict[str, Any]:
    (found,) = await stated.core.database.read(lambda reader: observations.by_ids(reader, [observation_id]))
    return found


@pytest.mark.parametrize(
    "text",
    [
        "short",
        "  two\n\nlines and  blanks\t",
        "x" * 100 + "\nthe rest",
        "日本語のメモ 🦅",
        "a < b && <b>c</b>",
        "0" * 50_000,
    ],
)
async def test_a_text_is_kept_word_for_word(stated: Stated, text: str) -> None:
    assert (await record(stated, await stated.id_of(text)))["narrative"] == text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("deploy on Tuesdays", "deploy on Tuesdays"),
        ("\n  first   line \nsecond", "first line"),
        ("w" * 80, "w" * 80),
        ("w" * 81, "w" * 79 + "…"),
    ],
)
async def test_the_first_line_is_the_title_cut_at_80_characters(stated: Stated, text: str, title: str) -> None:
    assert (await record(stated, await stated.id_of(text)))["title"] == title


async def test_what_is_not_said_has_the_defaults(stated: Stated) -> None:
    before = now_ms()
    found = await record(stated, await stated.id_of("deploy on Tuesdays", project=None))
    assert (found["project"], found["layer"], found["type"]) == ("global", "L1", "discovery")
    assert (found["session_id"], found["confidence"], found["expires_at_epoch"]) == (None, 1.0, None)
    assert before <= found["created_at_epoch"] <= now_ms()
    assert (await record(stated, await stated.id_of("deploy on Tuesdays")))["layer"] == "L2"


async def test_what_is_said_is_kept(stated: Stated) -> None:
    number = await stated.id_of(
        "deploy on Tuesdays",
        title="When to deploy",
        session_id="s9",
        type=ObservationType.DECISION,
        layer=Layer.TRANSIENT,
        tags=["Stack:Python", "stack:python ", ""],
        keywords=["Release  Train"],
        confidence=0.5,
        expires_at_epoch=now_ms() + 60_000,
        created_at_epoch=T0,
        metadata={"from": "meeting", "n": [1]},
    )
    found = await record(stated, number)
    assert (found["title"], found["session_id"], found["type"], found["layer"]) == (
        *("When to deploy", "s9", "decision", "L4"),
    )
    assert (found["tags"], found["keywords"], found["confidence"]) == (["stack:python"], ["release train"], 0.5)
    assert (found["created_at_epoch"], found["metadata"]) == (T0, {"from": "meeting", "n": [1]})


async def test_a_session_that_is_only_named_is_made_and_one_that_a_client_told_of_stays(stated: Stated) -> None:
    for at in (T0 + 5, T0, T0 + 9):
        await stated.remember(f"said at {at}", session_id="s9", created_at_epoch=at)
    newest = partial(sessions.newest, project="shop", limit=10, offset=0)
    total, (row,) = await stated.core.database.read(newest)
    assert (total, row["platform"], row["status"]) == (1, "api", "closed")
    assert (row["started_at_epoch"], row["last_event_at_epoch"]) == (T0, T0 + 9)
    await stated.core.database.write(lambda tx: tx.run("UPDATE sessions SET platform = 'claude-code'"))
    await stated.remember("said much later", session_id="s9", created_at_epoch=T0 + 100)
    assert await stated.rows("SELECT last_event_at_epoch FROM sessions") == [(T0 + 9,)]


@pytest.mark.parametrize("query", ["tuesdays", "Deploy", "stack:python", "release train"])
async def test_it_is_found_at_once_by_its_words_tags_and_keywords(stated: Stated, query: str) -> None:
    await stated.remember("deploy on Tuesdays", tags=["stack:python"], keywords=["release train"])
    assert await stated.found(query, project="shop") == ["1"]


async def test_a_text_that_the_project_has_is_the_same_memory_and_is_counted(stated: Stated) -> None:
    first = await stated.remember("Deploy on Tuesdays, café")
    again = await stated.remember(" deploy  on\ntuesdays, cafe\u0301", title="other")
    assert (again.duplicate, again.observation_id) == (True, first.observation_id)
    assert (await record(stated, 1))["repeats"] == 1
    assert not (await stated.remember("Deploy on Tuesdays, café", project="mill")).duplicate
    assert not (await stated.remember("Deploy on Wednesdays")).duplicate


async def test_private_parts_and_secrets_are_gone_everywhere(stated: Stated) -> None:
    text = f"the key {KEY} is <private>for me alone</private> old"
    number = await stated.id_of(text, title=f"key {KEY}", tags=["<private>t</private>x"], metadata={"k": KEY})
    (everything,) = await stated.rows("SELECT * FROM observations")
    assert KEY.lower() not in str(everything).lower()
    assert "for me alone" not in str(everything)
    assert (await record(stated, number))["narrative"] == "the key [secret:aws-key] is  old"
    assert await stated.found(KEY) == []
    assert KEY not in str(await stated.rows("SELECT data FROM outbox"))


@pytest.mark.parametrize("text", ["", "  \n", "<private>all of it</private>", "<private>unclosed"])
async def test_a_text_of_which_nothing_is_left_is_refused(stated: Stated, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await stated.remember(text)
    assert caught.value.field == "text"


async def test_many_are_stored_in_order_and_never_collapsed(stated: Stated) -> None:
    texts = ["one", "two", "one", "three"]
    project = ProjectRef(override="shop")
    prepared = memories.prepare([NewMemory(text=text, project=project) for text in texts], now=now_ms())
    ids = await stated.core.database.write(lambda tx: memories.remember_all(tx, prepared, now=now_ms()))
    assert [(await record(stated, number))["narrative"] for number in ids] == texts
    assert ids == sorted(set(ids))


async def test_of_many_the_bad_one_is_named(stated: Stated) -> None:
    with pytest.raises(InvalidInput) as caught:
        memories.prepare([NewMemory(text="one"), NewMemory(text=" ")], now=now_ms())
    assert caught.value.field == "1.text"


async def test_an_edit_changes_what_it_names_and_search_follows(stated: Stated) -> None:
    number = await stated.id_of("the port is 6001", tags=["net"])
    (before,) = await stated.rows("SELECT seq FROM changes WHERE record_id = 1")
    told = await stated.edit(
        number, narrative="the harbour is 7001", title="Harbour", tags=["Sea"], facts=["deepWater"]
    )
    assert told == await record(stated, number)
    assert (told["narrative"], told["tags"], told["facts"]) == ("the harbour is 7001", ["sea"], ["deepWater"])
    assert told["content_hash"] == observations.content_hash(None, "Harbour", "the harbour is 7001")
    found = {query: await stated.found(query) for query in ("harbour", "sea", "water", "port", "net")}
    assert found == {"harbour": ["1"], "sea": ["1"], "water": ["1"], "port": [], "net": []}
    (after,) = await stated.rows("SELECT seq FROM changes WHERE record_id = 1")
    assert after > before
    assert (await stated.remember("the harbour is 7001")).duplicate
    assert not (await stated.remember("the port is 6001")).duplicate


async def test_an_edit_moves_a_memory_to_another_project(stated: Stated) -> None:
    number = await stated.id_of("deploy on Tuesdays")
    assert (await stated.edit(number, project="mill"))["project"] == "mill"
    assert await stated.found("deploy", project="shop") == []
    assert await stated.found("deploy", project="mill") == ["1"]


async def test_an_edit_cleans_its_texts_too(stated: Stated) -> None:
    number = await stated.id_of("deploy on Tuesdays")
    told = await stated.edit(number, subtitle=f"with {KEY}", facts=["<private>x</private>y"], metadata={"k": KEY})
    assert told["subtitle"] == "with [secret:aws-key]"
    assert told["facts"] == ["y"]
    assert KEY not in str(told["metadata"])


async def test_an_edit_that_says_nothing_or_would_leave_no_title_is_refused(stated: Stated) -> None:
    number = await stated.id_of("deploy on Tuesdays")
    with pytest.raises(InvalidInput, match="say what to change"):
        await stated.edit(number)
    with pytest.raises(InvalidInput) as caught:
        await stated.edit(number, title="<private>x</private>")
    assert caught.value.field == "title"
    with pytest.raises(NotFound):
        await stated.edit(number + 1, title="x")
