"""Recorded sessions come in as if their hooks had been there, and beside hooks that were they add nothing."""

import json
import lzma
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from service.portability.transcripts import claude_code
from tests.cli.command_line import Command, environment, run_process

SESSION = "5f0c0000-0000-4000-8000-000000000001"
Lines = Sequence[dict[str, Any] | str]


def line(kind: str, second: int, content: Any, **fields: Any) -> dict[str, Any]:
    stamp = f"2026-03-01T10:00:{second:02}.000Z"
    common = {"sessionId": SESSION, "cwd": "/nowhere/till", "timestamp": stamp, "uuid": f"u{second}", "type": kind}
    return {**common, "message": {"role": kind, "content": content}, **fields}


def call(second: int, use_id: str, name: str = "Edit", **asked: Any) -> dict[str, Any]:
    return line("assistant", second, [{"type": "tool_use", "id": use_id, "name": name, "input": asked}])


def answer(second: int, use_id: str, response: Any, **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": use_id, "content": "ok", **fields}
    return line("user", second, [block], toolUseResult=response)


EDIT = {"file_path": "/nowhere/till/drawer.py", "old_string": "shut()", "new_string": "open_drawer()"}
TURN: Lines = [
    line("user", 1, "Mend the till drawer"),
    call(2, "toolu_a", **EDIT),
    answer(3, "toolu_a", {"filePath": EDIT["file_path"]}),
    line("assistant", 4, [{"type": "text", "text": "The drawer opens again."}]),
]


@pytest.fixture
def recording(tmp_path: Path) -> Callable[[Lines], Path]:
    def write(lines: Lines) -> Path:
        path = tmp_path / f"{SESSION}.jsonl"
        path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
        return path

    return write


def events(path: Path) -> list[tuple[str, Any]]:
    told = (event.payload for event in claude_code.read(path).events)
    words = ("prompt", "tool_use_id", "error", "last_assistant_message", "trigger")
    return [(one["hook_event_name"], next((one[word] for word in words if word in one), None)) for one in told]


def rows(home: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        return connection.execute(sql).fetchall()


def test_a_turn_is_told_from_its_prompt_to_the_words_at_its_end(recording: Callable[[Lines], Path]) -> None:
    assert events(recording(TURN)) == [
        ("SessionStart", None),
        ("UserPromptSubmit", "Mend the till drawer"),
        ("PostToolUse", "toolu_a"),
        ("Stop", "The drawer opens again."),
        ("SessionEnd", None),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "<local-command-stdout>clean</local-command-stdout>",
        "<bash-input>ls</bash-input>",
        "Caveat: The messages below were generated",
        "<command-name>/clear</command-name>",
        "<system-reminder>be brief</system-reminder>",
    ],
)
def test_what_the_client_wrote_in_the_user_s_name_is_no_prompt(recording: Callable[[Lines], Path], said: str) -> None:
    told = events(recording([*TURN, line("user", 9, said)]))
    assert [words for event, words in told if event == "UserPromptSubmit"] == ["Mend the till drawer"]


def test_a_slash_command_with_an_expansion_is_a_prompt(recording: Callable[[Lines], Path]) -> None:
    command = "<command-name>/review</command-name><command-args>the till</command-args>"
    told = events(recording([line("user", 1, command), line("user", 2, "Review …", isMeta=True)]))
    assert ("UserPromptSubmit", "/review the till") in told


def test_an_interrupted_turn_has_no_stop(recording: Callable[[Lines], Path]) -> None:
    told = events(recording([*TURN, line("user", 5, "[Request interrupted by user]")]))
    assert "Stop" not in dict(told)


def test_a_failure_is_told_and_a_refused_call_is_not(recording: Callable[[Lines], Path]) -> None:
    failed = {"is_error": True, "content": "exit code 2: no such till"}
    refused = {"is_error": True, "content": "The user doesn't want to proceed with this tool use."}
    told = events(
        recording([*TURN, call(5, "b"), answer(6, "b", None, **failed), call(7, "c"), answer(8, "c", None, **refused)])
    )
    assert [event for event, words in told if event.startswith("PostToolUseF")] == ["PostToolUseFailure"]


def test_lines_that_a_resumed_session_repeats_count_once(recording: Callable[[Lines], Path]) -> None:
    assert events(recording([*TURN, *TURN])) == events(recording(TURN))


def test_a_subagent_s_lines_are_its_own(recording: Callable[[Lines], Path]) -> None:
    side = {"isSidechain": True, "agentId": "a7"}
    told = claude_code.read(
        recording(
            [
                *TURN[:3],
                line("assistant", 5, [{"type": "tool_use", "id": "s1", "name": "Grep", "input": {}}], **side),
                line("user", 6, [{"type": "tool_result", "tool_use_id": "s1", "content": "3 hits"}], **side),
                line("assistant", 7, "Three places.", **side),
                line("assistant", 8, "Done."),
            ]
        )
    ).events
    said = {one.payload["hook_event_name"]: one.payload.get("last_assistant_message") for one in told}
    assert said["SubagentStop"] == "Three places."
    assert said["Stop"] == "Done."
    assert [one.payload.get("agent_id") for one in told if one.payload.get("tool_use_id") == "s1"] == ["a7"]


def test_broken_lines_are_named_and_two_objects_on_a_line_both_count(
    command: Command, recording: Callable[[Lines], Path], tmp_path: Path
) -> None:
    path = recording([*TURN[:2], '{"type": "user", "mess', f"{json.dumps(TURN[2])}{json.dumps(TURN[3])}", "[1, 2]"])
    told = command(tmp_path / "other", "import", path, "--json")
    assert told.code == 0
    assert f"{path}:3" in told.stderr
    assert told.json["records"]["event"]["new"] == 4


def test_a_recording_twice_is_the_store_of_one(
    command: Command, recording: Callable[[Lines], Path], tmp_path: Path
) -> None:
    everything = (
        "SELECT event_key, captured_at_epoch FROM pending_messages UNION ALL SELECT event_key, 1 FROM user_prompts"
    )
    path = recording(TURN)
    command(tmp_path / "other", "import", path)
    once = rows(tmp_path / "other", everything)
    again = command(tmp_path / "other", "import", path, "--json").json["records"]["event"]
    assert again["new"] == 0
    assert rows(tmp_path / "other", everything) == once
    assert len(once) == 3


def test_an_import_that_was_killed_goes_on_and_ends_as_one_that_was_not(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for number in range(60):
        said = [json.dumps(line_) for line_ in TURN]
        own = [one.replace(SESSION, f"s{number}").replace("toolu_a", f"toolu_{number}") for one in said]
        (folder / f"s{number}.jsonl").write_text("\n".join(own))
    stored = """
        SELECT event_key, captured_at_epoch, project FROM pending_messages UNION ALL
        SELECT event_key, created_at_epoch, project FROM user_prompts UNION ALL
        SELECT session_id, started_at_epoch, status FROM sessions ORDER BY 1, 2"""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "service.cli", "import", str(folder)],
        env=environment(killed),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None and not _has_some(killed):
            os.sched_yield()
        process.kill()
    assert run_process(killed, "import", str(folder)).code == 0
    assert run_process(whole, "import", str(folder)).code == 0
    assert rows(killed, stored) == rows(whole, stored)
    assert len(rows(whole, stored)) == 60 * 4


def _has_some(home: Path) -> bool:
    try:
        return bool(rows(home, "SELECT 1 FROM pending_messages LIMIT 1"))
    except sqlite3.Error:
        return False


def capture(path: Path, home: Path) -> None:
    """As hooks tell of what was recorded: with the client's ids, which a recording lacks, and clocks of their own."""
    import asyncio

    from service.core import Core, Incoming
    from service.intake import Envelope
    from service.settings import load

    async def ingest() -> None:
        core = Core.open(load(home=home, environment={}, flags={"chroma": "off"}))
        for event in claude_code.read(path).events:
            payload = event.payload | {"prompt_id": "p1"}
            await core.ingest(Incoming(payload=payload, size=1, envelope=Envelope(captured_at=event.at + 300)))
        await core.close()

    asyncio.run(ingest())


def test_what_hooks_captured_is_not_taken_in_again(
    command: Command, recording: Callable[[Lines], Path], home: Path
) -> None:
    path = recording(TURN)
    capture(path, home)
    before = rows(home, "SELECT count(*) FROM pending_messages UNION ALL SELECT count(*) FROM user_prompts")
    assert command(home, "import", path, "--json").json["records"]["event"]["new"] == 0
    assert rows(home, "SELECT count(*) FROM pending_messages UNION ALL SELECT count(*) FROM user_prompts") == before


def test_what_hooks_captured_and_someone_forgot_does_not_come_back_by_its_recording(
    command: Command, recording: Callable[[Lines], Path], home: Path
) -> None:
    path = recording(TURN)
    capture(path, home)
    command(home, "forget", "--session", SESSION, "--yes")
    assert command(home, "import", path, "--json").json["records"]["event"]["new"] == 0
    assert rows(home, "SELECT 1 FROM user_prompts UNION ALL SELECT 1 FROM message_payloads") == []


def test_a_dry_run_of_a_recording_says_what_is_new_and_leaves_nothing(
    command: Command, recording: Callable[[Lines], Path], tmp_path: Path
) -> None:
    told = command(tmp_path / "other", "import", recording(TURN), "--dry-run", "--json").json
    assert told["records"]["event"]["new"] == 4
    assert rows(tmp_path / "other", "SELECT count(*) FROM pending_messages") == [(0,)]
    assert not list((tmp_path / "other").glob("dry-run-*"))


def test_a_compressed_recording_in_a_folder_is_found_and_other_files_are_passed_over(
    command: Command, recording: Callable[[Lines], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "recordings" / "deep"
    folder.mkdir(parents=True)
    with lzma.open(folder / f"{SESSION}.jsonl.xz", "wb") as file:
        file.write(recording(TURN).read_bytes())
    (folder / "package.json").write_text('{"name": "till"}')
    (folder / "notes.txt").write_text("nothing")
    told = command(tmp_path / "other", "import", tmp_path / "recordings", "--project", "till", "--json").json
    assert told["files"] == 1
    assert rows(tmp_path / "other", "SELECT DISTINCT project FROM pending_messages") == [("till",)]


def test_a_rollout_of_codex_comes_in(command: Command, tmp_path: Path) -> None:
    def item(second: int, kind: str, **payload: Any) -> str:
        return json.dumps({"timestamp": f"2026-03-01T10:00:{second:02}Z", "type": kind, "payload": payload})

    shell = {"type": "function_call", "name": "shell", "arguments": '{"command": "make"}', "call_id": "c1"}
    path = tmp_path / "rollout.jsonl"
    path.write_text(
        "\n".join(
            [
                item(1, "session_meta", id="codex-1", cwd="/nowhere/till"),
                item(2, "event_msg", type="user_message", message="Build it"),
                item(3, "response_item", **shell),
                item(4, "response_item", type="function_call_output", call_id="c1", output="Exit code: 2\nno rule"),
                item(5, "event_msg", type="agent_message", message="It needs a rule."),
            ]
        )
    )
    command(tmp_path / "other", "import", path)
    told = rows(tmp_path / "other", "SELECT hook_event, tool_name, session_id FROM pending_messages ORDER BY id")
    assert told == [("PostToolUseFailure", "shell", "codex-1"), ("Stop", None, "codex-1")]
    assert rows(tmp_path / "other", "SELECT platform FROM sessions") == [("codex",)]


def test_a_chat_of_gemini_comes_in(command: Command, tmp_path: Path) -> None:
    tool = {"id": "g1", "name": "write_file", "args": {"file_path": "a.md"}, "status": "success", "result": []}
    chat = {
        "sessionId": "gemini-1",
        "projectHash": "x",
        "startTime": "2026-03-01T10:00:00Z",
        "messages": [
            {"id": "m1", "timestamp": "2026-03-01T10:00:01Z", "type": "user", "content": "Write it down"},
            {
                "id": "m2",
                "timestamp": "2026-03-01T10:00:05Z",
                "type": "gemini",
                "content": "Done.",
                "toolCalls": [tool],
            },
        ],
    }
    (tmp_path / "chat.json").write_text(json.dumps(chat, indent=1))
    command(tmp_path / "other", "import", tmp_path / "chat.json")
    told = rows(tmp_path / "other", "SELECT hook_event, tool_name FROM pending_messages ORDER BY id")
    assert told == [("PostToolUse", "write_file"), ("Stop", None)]
