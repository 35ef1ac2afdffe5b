"""Of recordings that are odd, damaged or out of reach everything else comes in, and what does not is named."""

import copy
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.portability.reading import TRANSCRIPTS, Format
from tests.cli.command_line import Command

Document = list[dict[str, Any]]

STAMP = "2026-03-01T10:00:0{}Z"
CLAUDE_CODE: Document = [
    {"type": "user", "message": {"role": "user", "content": "Mend the drawer"}},
    {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "t", "name": "Edit", "input": {"a": "b"}}]},
    },
    {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok", "is_error": False}]},
        "toolUseResult": {"agentId": "a1", "content": [{"type": "text", "text": "done"}]},
    },
    {"type": "progress", "data": {"type": "agent_progress", "agentId": "a2", "message": {"type": "assistant"}}},
    {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "It opens."}], "model": "m"}},
]
for place, record in enumerate(CLAUDE_CODE):
    record |= {"sessionId": "s", "cwd": "/nowhere", "timestamp": STAMP.format(place), "uuid": f"u{place}"}
CODEX: Document = [
    {"type": "session_meta", "payload": {"id": "c", "cwd": "/nowhere"}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Build it"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "1"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "1", "output": "Exit code: 2"}},
    {"type": "event_msg", "payload": {"type": "agent_message", "message": "It needs a rule."}},
]
for place, record in enumerate(CODEX):
    record |= {"timestamp": STAMP.format(place)}
GEMINI_TOOL = {"id": "g", "name": "write_file", "args": {"a": "b"}, "status": "success", "result": [{"x": 1}]}
GEMINI: Document = [
    {
        "sessionId": "g",
        "projectHash": "x",
        "startTime": STAMP.format(0),
        "messages": [
            {"id": "m1", "timestamp": STAMP.format(1), "type": "user", "content": "Write it"},
            {
                "id": "m2",
                "timestamp": STAMP.format(2),
                "type": "gemini",
                "content": "Done.",
                "toolCalls": [GEMINI_TOOL],
            },
        ],
    }
]
DEEP: Any = []
for _ in range(400):
    DEEP = [DEEP]
ODD = [None, True, 7, 10**30, "", "\ud83d", "\0", [], ["x"], {}, {"x": [1]}, DEEP]


def odd_ones(document: Any) -> Iterator[Any]:
    """The document with each of its values in turn replaced by each odd one."""
    for keys in list(places(document)):
        for value in ODD:
            changed = copy.deepcopy(document)
            holder = changed
            for key in keys[:-1]:
                holder = holder[key]
            holder[keys[-1]] = value
            yield changed


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (key,)
        yield from ((key, *deeper) for deeper in places(child))


def write(path: Path, document: Document) -> Path:
    path.write_text("\n".join(map(json.dumps, document)))
    return path


@pytest.mark.parametrize(
    ("form", "document"), [(Format.CLAUDE_CODE, CLAUDE_CODE), (Format.CODEX, CODEX), (Format.GEMINI, GEMINI)]
)
def test_a_recording_is_read_whatever_a_value_in_it_is(form: Format, document: Document, tmp_path: Path) -> None:
    for changed in odd_ones(document):
        TRANSCRIPTS[form](write(tmp_path / "odd.jsonl", changed))


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("field", ["prompt", "input", "response", "said", "cwd"])
def test_an_odd_value_costs_its_event_at_most(command: Command, tmp_path: Path, field: str, value: Any) -> None:
    document = copy.deepcopy(CLAUDE_CODE)
    prompt, use, answer, *_, last = document
    match field:
        case "prompt":
            prompt["message"]["content"] = value
        case "input":
            use["message"]["content"][0]["input"] = value
        case "response":
            answer["toolUseResult"] = value
        case "said":
            last["message"]["content"] = value
        case "cwd":
            prompt["cwd"] = value
    told = command(tmp_path / "other", "import", write(tmp_path / "odd.jsonl", document), "--json")
    assert told.code == 0
    counts = told.json["records"]["event"]
    assert counts["new"] + counts["skipped"] + counts["unusable"] >= 3
    assert counts["unusable"] == len(told.json["unusable"]) <= 1


def test_what_can_be_read_of_a_cut_archive_comes_in_and_the_cut_is_named(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    whole = write(tmp_path / "whole.jsonl", CLAUDE_CODE * 50).read_bytes()
    for name, packed in (("cut.jsonl.xz", lzma.compress(whole)), ("cut.jsonl.gz", gzip.compress(whole))):
        (folder / name).write_bytes(packed[: len(packed) - 12])
    write(folder / "sound.jsonl", [record | {"sessionId": "sound"} for record in CLAUDE_CODE])
    told = command(tmp_path / "other", "import", folder, "--json")
    assert told.json["records"]["event"]["new"] > 0
    assert all(any(name in said for said in told.json["unusable"]) for name in ("cut.jsonl.xz", "cut.jsonl.gz"))


@pytest.mark.parametrize("ending", [".xz", ".gz"])
def test_a_file_that_is_no_archive_is_refused_in_words_and_in_a_folder_passed_over(
    command: Command, tmp_path: Path, ending: str
) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / f"a.jsonl{ending}").write_bytes(b"nothing of the kind")
    write(folder / "b.jsonl", CLAUDE_CODE)
    told = command(tmp_path / "other", "import", folder, "--json")
    assert (told.code, told.json["files"]) == (1, 1)
    assert told.json["records"]["event"]["new"] > 0
    assert f"a.jsonl{ending}" in told.stderr
    alone = command(tmp_path / "other", "import", folder / f"a.jsonl{ending}")
    assert alone.code == 2
    assert "archive is damaged" in alone.stderr
    assert "bug" not in alone.stderr
