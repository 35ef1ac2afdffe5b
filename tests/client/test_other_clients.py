"""What other clients send becomes the same memories, whether a hook of ours brought it or the client itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from hooks import clients
from service.cli.queue import until_drained
from service.core import Core, Incoming
from service.database import Row
from service.envelopes import from_headers
from tests.hooks.hook_process import http, run_hook, unix_service
from workers.drain import Drain
from workers.supervisor import Workers

PAYLOADS = Path(__file__).parent / "payloads"
CLIENTS = sorted(path.stem for path in PAYLOADS.iterdir())
PROMPT = "Let the ferry timetable show cancelled trips"
MESSAGES = {
    "codex": ["Bash", "PreCompact", "apply_patch", "SubagentStop", "Stop"],
    "gemini": ["Bash", "PreCompact", "Edit", "Read failed", "Stop"],
    "cursor": ["Bash", "PreCompact", "Write", "Read failed", "Bash", "MultiEdit", "query", "SubagentStop", "Stop"],
    "opencode": ["Bash", "PreCompact", "Edit", "SubagentStop", "Stop"],
}
SKIPPED = {"codex": {"ignored"}, "gemini": {"ignored", "self"}, "cursor": {"ignored"}, "opencode": {"ignored", "self"}}


def recorded(client: str, folder: Path) -> list[dict[str, Any]]:
    text = (PAYLOADS / f"{client}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line.replace("{cwd}", str(folder))) for line in text.splitlines()]


def test_the_table_has_payloads_for_every_adapter() -> None:
    assert set(CLIENTS) == set(clients.ADAPTERS)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_session_is_stored_with_its_prompt_tools_and_end(client: str, core: Core, tmp_path: Path) -> None:
    folder = tmp_path / "ferries"
    folder.mkdir()
    home = core.configuration.home
    for payload in recorded(client, folder):
        run = run_hook(home, json.dumps(payload).encode(), args=("--client", client))
        assert (run.code, run.stdout, run.stderr) == (0, b"", "")
    await Drain(core).tick()
    [session] = await rows(core, "SELECT session_id, platform, project, status FROM sessions")
    prompts = await rows(core, "SELECT text FROM user_prompts")
    stored = await rows(core, "SELECT tool_name, hook_event FROM pending_messages ORDER BY id")
    skipped = await rows(core, "SELECT reason FROM not_queued")
    assert (session["platform"], session["project"], session["status"]) == (client, "ferries", "closed")
    assert [row["text"] for row in prompts] == [PROMPT]
    assert [_label(row) for row in stored] == MESSAGES[client]
    assert {row["reason"] for row in skipped} == SKIPPED[client]


def _label(row: Any) -> str:
    failed = " failed" if row["hook_event"] == "PostToolUseFailure" else ""
    return f"{row['tool_name']}{failed}" if row["tool_name"] else str(row["hook_event"])


@pytest.mark.parametrize("client", CLIENTS)
async def test_it_becomes_memories_that_name_the_file(client: str, core: Core, tmp_path: Path) -> None:
    (tmp_path / "ferries").mkdir()
    envelope = from_headers({}, platform=client)
    payloads = recorded(client, tmp_path / "ferries")
    await core.ingest_many([Incoming(payload=payload, size=500, envelope=envelope) for payload in payloads])
    workers = Workers(core)
    await _run_until_drained(core, workers)
    files = await rows(core, "SELECT files_modified FROM observations")
    summaries = await rows(core, "SELECT request FROM session_summaries")
    assert any("timetable.py" in row["files_modified"] for row in files)
    assert PROMPT in {row["request"] for row in summaries}


async def rows(core: Core, sql: str) -> list[Row]:
    return await core.database.read(lambda reader: reader.all(sql))


async def _run_until_drained(core: Core, workers: Workers) -> None:
    import asyncio

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(workers.run())
        assert await until_drained(core, timeout_s=30) is None
        workers.stop.set()


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "gemini"])  # it gives tool calls no ids
async def test_the_client_and_our_hook_bring_the_same_event_once(client: str, core: Core, tmp_path: Path) -> None:
    (tmp_path / "ferries").mkdir()
    events = recorded(client, tmp_path / "ferries")
    tool = next(payload for payload in events if payload["hook_event_name"].lower() == "posttooluse")
    translated = json.loads(clients.in_our_words(client, json.dumps(tool).encode()))
    envelope = from_headers({}, platform=client)
    receipts = [
        await core.ingest(Incoming(payload=payload, size=500, envelope=envelope)) for payload in (tool, translated)
    ]
    assert [receipt.status for receipt in receipts] == ["queued", "duplicate"]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_in_our_words_stays_as_it_is(client: str, tmp_path: Path) -> None:
    for payload in recorded(client, tmp_path):
        once = clients.translated(client, payload)
        assert clients.translated(client, once) == once


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"tool_name":7,"tool_input":[]}', b'{"workspace_roots":[4]}'])
def test_odd_payloads_pass_through_every_adapter(client: str, raw: bytes) -> None:
    clients.in_our_words(client, raw)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_private_prompt_of_any_client_leaves_no_text(client: str, tmp_path: Path) -> None:
    prompt = next(payload for payload in recorded(client, tmp_path) if "prompt" in payload)
    prompt["prompt"] = "<private>my own affair</private>"
    run_hook(tmp_path / "data", json.dumps(prompt).encode(), args=("--client", client))
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert b"X-Gapless-Private: 1" in kept
    assert b"affair" not in kept


@pytest.mark.parametrize(
    ("client", "answer"),
    [
        ("codex", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "notes"}}),
        ("gemini", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "notes"}}),
        ("cursor", {"additional_context": "notes"}),
        ("opencode", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "notes"}}),
    ],
)
def test_context_is_given_in_the_clients_own_form(client: str, answer: object, tmp_path: Path) -> None:
    output = {"hookEventName": "SessionStart", "additionalContext": "notes", "permissionDecision": "deny"}
    start = recorded(client, tmp_path)[0]
    with unix_service(tmp_path / "data", lambda _: http(202, {"status": "recorded", "hookSpecificOutput": output})):
        run = run_hook(tmp_path / "data", json.dumps(start).encode(), args=("--client", client))
    assert json.loads(run.stdout) == answer


def test_gemini_is_answered_by_its_own_event_names() -> None:
    answer = clients.context_answer("gemini", "UserPromptSubmit", "notes")
    assert answer["hookSpecificOutput"]["hookEventName"] == "BeforeAgent"


def test_a_windows_workspace_of_cursor_is_a_windows_path() -> None:
    payload = {"hook_event_name": "stop", "conversation_id": "c", "workspace_roots": ["/c:/Users/dev/app"]}
    assert clients.translated("cursor", payload)["cwd"] == "c:/Users/dev/app"
