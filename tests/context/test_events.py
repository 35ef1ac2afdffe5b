"""Context over HTTP: in the answers to events, and by its own routes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.context.notebook import FOLDER, Notebook
from tests.edge.edge_service import Service, edit, prompt, running, stop

ASKING = "Which package manager do we use in the workspaces?"


def begin(source: str = "startup", *, session: str = "s9", **more: Any) -> dict[str, Any]:
    return {"hook_event_name": "SessionStart", "session_id": session, "source": source, "cwd": FOLDER} | more


def read(path: str, *, session: str = "s9", tool: str = "Read", **more: Any) -> dict[str, Any]:
    event = {"hook_event_name": "PreToolUse", "session_id": session, "cwd": FOLDER, "tool_name": tool}
    return event | {"tool_use_id": "toolu_1", "tool_input": {"file_path": path}} | more


async def told(service: Service, event: dict[str, Any], **params: str) -> str:
    """The context in the answer; '' when there is none."""
    answer = await service.client.post("/api/events", content=json.dumps(event), params=params)
    assert answer.status_code in (200, 202)
    output = answer.json().get("hookSpecificOutput")
    if output is None:
        return ""
    assert output.keys() == {"hookEventName", "additionalContext"}
    assert output["hookEventName"] == event["hook_event_name"]
    assert output["additionalContext"].startswith("<gapless-context>\n")
    return str(output["additionalContext"])


@pytest.fixture
async def notebook(service: Service) -> Notebook:  # the service's own core
    notebook = Notebook(service.edge.core)
    await notebook.note("Use pnpm", "pnpm is the package manager of every workspace", files_modified=["package.json"])
    return notebook


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork", ""])
async def test_every_new_session_begins_with_what_is_remembered(
    service: Service, notebook: Notebook, source: str
) -> None:
    assert "pnpm is the package manager" in await told(service, begin(source))


async def test_a_resumed_session_is_not_told_again_what_it_still_has(service: Service, notebook: Notebook) -> None:
    assert await told(service, begin())
    assert await told(service, begin("resume")) == ""
    assert await told(service, begin("resume", session="another"))


async def test_after_compaction_everything_is_told_again_and_then_stands(service: Service, notebook: Notebook) -> None:
    await told(service, begin())
    assert "pnpm" in await told(service, begin("compact"))
    assert await told(service, begin("resume")) == ""


async def test_two_hooks_that_tell_of_one_start_are_answered_once(service: Service, notebook: Notebook) -> None:
    texts = await asyncio.gather(*(told(service, begin()) for _ in range(4)))
    assert sorted(map(bool, texts)) == [False, False, False, True]


async def test_a_session_that_began_without_memories_is_told_when_it_is_resumed(service: Service) -> None:
    assert "Nothing is remembered" in await told(service, begin())
    await Notebook(service.edge.core).note("first note")
    assert "first note" in await told(service, begin("resume"))


@pytest.mark.parametrize("event", [edit("/nowhere/shop/a.py"), stop("done"), {"hook_event_name": "SessionEnd"}])
async def test_no_other_event_is_answered_with_context(
    service: Service, notebook: Notebook, event: dict[str, Any]
) -> None:
    answer = await service.post({"session_id": "s9", "cwd": FOLDER} | event)
    assert "hookSpecificOutput" not in answer.json()


async def test_an_excluded_folder_is_told_nothing(service: Service, notebook: Notebook, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    assert "pnpm" in await told(service, begin(cwd=str(folder)))
    (folder / ".gapless-off").touch()
    for event in (begin(cwd=str(folder)), prompt(ASKING, cwd=str(folder)), read("package.json", cwd=str(folder))):
        assert await told(service, event, project="shop") == ""
    answer = await service.client.get("/api/context/inject", params={"cwd": str(folder)})
    assert answer.json() == {"text": "", "tokens": 0, "left_out": 0}


async def test_a_prompt_is_answered_with_what_is_known_once(service: Service, notebook: Notebook) -> None:
    assert "pnpm is the package manager" in await told(service, prompt(ASKING, session="s9"))
    assert await told(service, prompt(f"{ASKING} Again.", session="s9", number=2)) == ""
    assert await told(service, prompt(ASKING, session="other"))


async def test_a_prompt_is_not_answered_with_what_the_session_began_with(service: Service, notebook: Notebook) -> None:
    await told(service, begin())
    assert await told(service, prompt(ASKING, session="s9")) == ""
    await told(service, begin("compact"))
    assert await told(service, prompt(ASKING, session="s9", number=2)) == ""


async def test_after_compaction_a_prompt_is_answered_again(home: Path) -> None:
    async with running(home, chroma="off", semantic_inject="on", context_full_count=0) as service:
        await Notebook(service.edge.core).note("Use pnpm", "pnpm is the package manager of every workspace")
        await told(service, begin())
        assert await told(service, prompt(ASKING, session="s9"))
        assert await told(service, prompt(ASKING, session="s9", number=2)) == ""
        await told(service, begin("compact"))
        assert await told(service, prompt(ASKING, session="s9", number=3))


async def test_short_private_and_repeated_prompts_are_not_answered(service: Service, notebook: Notebook) -> None:
    assert await told(service, prompt("pnpm workspace?", session="s9")) == ""
    assert await told(service, prompt(f"<private>{ASKING}</private>", session="s9", number=2)) == ""
    assert await told(service, prompt(f"hello <private>{ASKING}</private> there, you", session="s9", number=3)) == ""
    event = prompt("What else is there to be done in the evening?", session="s9", number=4)
    assert await told(service, event) == await told(service, event) == ""


async def test_a_machines_turn_is_not_answered(service: Service, notebook: Notebook) -> None:
    event = prompt(f"<task-notification>{ASKING}</task-notification>", session="s9")
    assert await told(service, event) == ""


@pytest.mark.parametrize("tool", ["Read", "Edit", "MultiEdit"])
async def test_a_file_is_told_about_before_it_is_opened_once_a_session(
    service: Service, notebook: Notebook, tool: str
) -> None:
    assert "pnpm" in await told(service, read(f"{FOLDER}/package.json", tool=tool))
    await notebook.note("another note on it", files_modified=["package.json"])
    assert await told(service, read(f"{FOLDER}/package.json", tool=tool)) == ""
    assert await told(service, read(f"{FOLDER}/package.json", tool="Bash", session="s10")) == ""


async def test_recall_by_prompt_and_by_file_is_off_unless_switched_on(home: Path) -> None:
    async with running(home, chroma="off") as service:
        await Notebook(service.edge.core).note("Use pnpm", "the package manager", files_read=["package.json"])
        assert await told(service, prompt(ASKING)) == ""
        assert await told(service, read("package.json")) == ""
        assert await told(service, begin())


async def test_nothing_is_told_without_a_budget(home: Path) -> None:
    async with running(home, chroma="off", context_budget=0, semantic_inject="on", file_inject="on") as service:
        await Notebook(service.edge.core).note("Use pnpm", "the package manager", files_read=["package.json"])
        for event in (begin(), prompt(ASKING), read("package.json")):
            assert await told(service, event) == ""


async def test_an_event_is_taken_when_its_context_fails(service: Service, notebook: Notebook) -> None:
    def break_it(tx: Any) -> None:
        tx.run("DROP TABLE injected")

    await service.edge.core.database.write(break_it)
    answer = await service.post(begin())
    assert answer.status_code == 202
    assert "hookSpecificOutput" not in answer.json()


@pytest.mark.parametrize("value", [None, 7, ["x"], {"a": 1}, "\ud800", "x" * 100_000])
async def test_odd_fields_of_an_event_are_no_trouble(service: Service, notebook: Notebook, value: Any) -> None:
    await told(service, begin() | {"source": value})
    await told(service, read("package.json") | {"tool_input": value})
    await told(service, read("package.json") | {"tool_input": {"file_path": value}})
    await told(service, read("package.json") | {"tool_name": value})


async def test_the_route_shows_what_a_session_would_be_told_and_gives_nothing(
    service: Service, notebook: Notebook
) -> None:
    for _ in range(2):
        answer = await service.client.get("/api/context/inject", params={"cwd": FOLDER, "source": "startup"})
        assert answer.status_code == 200
        assert answer.json().keys() == {"text", "tokens", "left_out"}
        assert "pnpm is the package manager" in answer.json()["text"]
        assert answer.json()["tokens"] > 0
    assert await told(service, begin("resume"))


async def test_the_route_takes_a_project_by_name_and_asks_for_one_of_the_two(
    service: Service, notebook: Notebook
) -> None:
    answer = await service.client.get("/api/context/inject", params={"project": "shop"})
    assert "pnpm is the package manager" in answer.json()["text"]
    answer = await service.client.get("/api/context/inject", params={"project": "nosuch"})
    assert "Nothing is remembered" in answer.json()["text"]
    answer = await service.client.get("/api/context/inject")
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "cwd"


@pytest.mark.parametrize("folder", ["\0", "/work/\0shop", "x" * 5_000, "~", "C:\\work\\mill", "\N{GRINNING FACE}"])
async def test_no_folder_is_too_odd_to_be_asked_about(service: Service, notebook: Notebook, folder: str) -> None:
    answer = await service.client.get("/api/context/inject", params={"cwd": folder})
    assert (answer.status_code, "pnpm" in answer.text) == (200, False)
    answer = await service.client.post("/api/context/semantic", json={"q": ASKING, "cwd": folder})
    assert answer.json() == {"text": "", "tokens": 0, "left_out": 0}


async def test_a_question_is_answered_in_its_project_or_in_all(service: Service, notebook: Notebook) -> None:
    for where in ({}, {"project": "shop"}, {"cwd": FOLDER}):
        answer = await service.client.post("/api/context/semantic", json={"q": ASKING, **where})
        assert answer.status_code == 200
        assert "pnpm is the package manager" in answer.json()["text"], where
    for asked in ({"q": ASKING, "project": "market"}, {"q": "zxqv plumbus 9911"}, {"q": ""}, {"q": '\ud800 *"'}):
        answer = await service.client.post("/api/context/semantic", content=json.dumps(asked))
        assert answer.json() == {"text": "", "tokens": 0, "left_out": 0}


@pytest.mark.parametrize("asked", [{}, {"q": 1}, {"q": "x", "limit": 0}, {"q": "x", "limit": 21}, {"q": "x", "z": 1}])
async def test_a_question_that_is_none_is_refused_in_words(service: Service, asked: dict[str, Any]) -> None:
    answer = await service.client.post("/api/context/semantic", json=asked)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]
