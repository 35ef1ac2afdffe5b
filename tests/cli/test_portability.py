"""Export and import: the same bytes come out of the folder that they went into, and nothing goes in twice."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Command

SHARED = Path(__file__).parents[3] / "shared"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def exported(command: Command, memory: Path, tmp_path: Path) -> Path:
    command(memory, "remember", "Deploy on Tuesdays.\nNever before ten.", "--project", "boathouse", "--tags", "ops")
    command(memory, "remember", "ユーザーは静かな画面を好む 🙂", "--project", "global")
    old = {
        "kind": "observation",
        "project": "boathouse",
        "title": "Of another year",
        "created_at_epoch": 1_600_000_000_000,
    }
    (tmp_path / "old.jsonl").write_text(json.dumps(old))
    command(memory, "import", tmp_path / "old.jsonl")
    file = tmp_path / "memory.jsonl"
    assert command(memory, "export", "-o", file).code == 0
    return file


def test_an_export_that_is_taken_in_elsewhere_comes_out_byte_for_byte(
    command: Command, exported: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.jsonl"
    assert command(tmp_path / "other", "import", exported).code == 0
    assert command(tmp_path / "other", "export", "-o", again).code == 0
    assert again.read_bytes() == exported.read_bytes()
    assert {line["kind"] for line in lines(exported.read_text())} == {"session", "prompt", "observation", "summary"}


def test_importing_twice_adds_nothing(command: Command, exported: Path, tmp_path: Path) -> None:
    first = command(tmp_path / "other", "import", exported, "--json").json["records"]
    second = command(tmp_path / "other", "import", exported, "--json").json["records"]
    assert {kind: count["known"] for kind, count in second.items()} == {k: c["new"] for k, c in first.items()}
    assert all(count["new"] == 0 for count in second.values())


def test_importing_into_the_folder_it_came_from_adds_nothing(command: Command, memory: Path, exported: Path) -> None:
    told = command(memory, "import", exported, "--json").json["records"]
    assert sum(count["new"] for count in told.values()) == 0


def test_a_memory_said_twice_at_one_moment_stays_twice(command: Command, tmp_path: Path) -> None:
    line = json.dumps({"kind": "observation", "project": "p", "title": "Twice", "created_at_epoch": 1_700_000_000_000})
    (tmp_path / "twice.jsonl").write_text(f"{line}\n{line}\n")
    for _ in range(2):
        assert command(tmp_path / "other", "import", tmp_path / "twice.jsonl").code == 0
    assert len(lines(command(tmp_path / "other", "export").stdout)) == 2


def test_a_dry_run_says_what_is_new_and_changes_nothing(command: Command, exported: Path, tmp_path: Path) -> None:
    told = command(tmp_path / "other", "import", exported, "--dry-run", "--json").json
    assert told["dry_run"] is True
    assert told["records"]["observation"]["new"] > 0
    assert command(tmp_path / "other", "export").stdout == ""


def test_the_copy_of_a_dry_run_that_was_killed_goes_with_the_next(
    command: Command, exported: Path, tmp_path: Path
) -> None:
    left = tmp_path / "other" / "dry-run-x1y2"
    left.mkdir(parents=True, mode=0o700)
    (left / "gapless.db").write_text("a memory")
    command(tmp_path / "other", "import", exported, "--dry-run")
    assert not list((tmp_path / "other").glob("dry-run-*"))


def test_an_imported_memory_is_found_by_search(command: Command, exported: Path, tmp_path: Path) -> None:
    command(tmp_path / "other", "import", exported)
    found = command(tmp_path / "other", "search", "when is it safe to deploy", "--all-projects", "--json").json
    assert found["results"][0]["title"] == "Deploy on Tuesdays."


def test_a_project_given_at_import_holds_all_of_it(command: Command, exported: Path, tmp_path: Path) -> None:
    command(tmp_path / "other", "import", exported, "--project", "elsewhere")
    assert {line["project"] for line in lines(command(tmp_path / "other", "export").stdout)} == {"elsewhere"}


def test_an_export_of_one_project_holds_nothing_of_another(command: Command, memory: Path, exported: Path) -> None:
    told = lines(command(memory, "export", "--project", "global").stdout)
    assert {line["project"] for line in told} == {"global"}


def test_a_file_a_month_holds_the_same_lines_in_the_same_order(
    command: Command, exported: Path, tmp_path: Path
) -> None:
    command(tmp_path / "other", "import", exported)
    command(tmp_path / "other", "export", "-o", f"{tmp_path / 'months'}/")
    months = sorted((tmp_path / "months").iterdir())
    assert len(months) > 1
    assert b"".join(month.read_bytes() for month in months) == exported.read_bytes()


def test_what_was_forgotten_is_in_no_export_and_its_prompt_does_not_come_back(
    command: Command, memory: Path, exported: Path
) -> None:
    command(memory, "forget", "--project", "boathouse", "--yes")
    assert "boathouse" not in command(memory, "export").stdout
    told = command(memory, "import", exported, "--json").json["records"]
    assert told["prompt"]["new"] == 0


def test_lines_that_say_nothing_are_named_and_cost_the_others_nothing(command: Command, tmp_path: Path) -> None:
    good = {"kind": "observation", "project": "p", "title": "Good", "created_at_epoch": 1_700_000_000_000}
    bad = [
        "not json",
        json.dumps([1]),
        json.dumps({**good, "created_at_epoch": "soon"}),
        json.dumps({**good, "type": "song"}),
        json.dumps({"kind": "poem"}),
    ]
    file = tmp_path / "mixed.jsonl"
    file.write_text("\n".join([json.dumps(good), *bad, json.dumps({**good, "title": "Better"})]))
    told = command(tmp_path / "other", "import", file)
    assert told.code == 0
    assert "5 lines" in told.stderr
    assert f"{file}:2" in told.stderr
    assert [line["title"] for line in lines(command(tmp_path / "other", "export").stdout)] == ["Good", "Better"]


def test_private_parts_and_secrets_do_not_come_in(command: Command, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Zq4vT9" * 15
    line = {"kind": "observation", "title": "Note", "narrative": f"a <private>whisper</private> {key}"}
    (tmp_path / "a.jsonl").write_text(json.dumps({**line, "created_at_epoch": 1_700_000_000_000}))
    command(tmp_path / "other", "import", tmp_path / "a.jsonl")
    told = command(tmp_path / "other", "export").stdout
    assert "whisper" not in told
    assert key not in told


def test_a_file_of_another_kind_is_refused_in_words(command: Command, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir,\n")
    told = command(tmp_path / "other", "import", tmp_path / "letter.txt")
    assert told.code == 2
    assert "--from" in told.stderr


def test_whatever_was_taken_in_comes_out_and_in_again(command: Command, tmp_path: Path) -> None:
    """Long keys and names, and the same words twice within a second."""
    prompt = {"kind": "prompt", "session_id": "s" * 500, "project": "p" * 3_000, "text": "yes", "prompt_number": 1}
    at = 1_700_000_000_000
    said = [
        {**prompt, "event_key": f"{'k' * 2_000}{n}", "created_at_epoch": at + n, "prompt_number": n} for n in (1, 2)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, said)))
    command(tmp_path / "one", "import", tmp_path / "a.jsonl")
    first = command(tmp_path / "one", "export").stdout
    assert [line["kind"] for line in lines(first)] == ["session", "prompt", "prompt"]
    (tmp_path / "b.jsonl").write_text(first)
    command(tmp_path / "two", "import", tmp_path / "b.jsonl")
    assert command(tmp_path / "two", "export").stdout == first


def test_a_database_of_gapless_is_no_database_of_claude_mem(command: Command, memory: Path, tmp_path: Path) -> None:
    for given in ((), ("--from", "claude-mem")):
        told = command(tmp_path / "other", "import", memory / "gapless.db", *given)
        assert told.code == 2
        assert "claude-mem" in told.stderr
    assert command(tmp_path / "other", "export").stdout == ""


def test_of_a_folder_databases_of_others_are_passed_over(command: Command, exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    exported.rename(folder / "memory.jsonl")
    with closing(sqlite3.connect(folder / "browser.db")) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    told = command(tmp_path / "other", "import", folder, "--json")
    assert (told.code, told.json["files"]) == (0, 1)


def test_a_byte_order_mark_costs_no_line(command: Command, exported: Path, tmp_path: Path) -> None:
    exported.write_bytes(b"\xef\xbb\xbf" + exported.read_bytes())
    assert command(tmp_path / "other", "import", exported, "--json").json["unusable"] == []


PEER_SCHEMA = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, {client} TEXT, {memory} TEXT, project TEXT, started_at TEXT,
    started_at_epoch INTEGER, completed_at_epoch INTEGER, status TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY, {memory} TEXT, project TEXT, text TEXT, type TEXT,
    created_at TEXT, created_at_epoch INTEGER{more});
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, {client} TEXT, prompt_number INTEGER, prompt_text TEXT,
    created_at TEXT, created_at_epoch INTEGER);
INSERT INTO sdk_sessions VALUES (1, 'client-1', 'memory-1', 'shop', '2026-10-01T08:00:00Z', 1790841600000, NULL, 'x');
INSERT INTO user_prompts VALUES (1, 'client-1', 1, 'Mend the till', '2026-10-01T08:00:01Z', 1790841601000);
"""


@pytest.fixture
def peer(tmp_path: Path) -> Callable[..., Path]:
    def make(row: str, *, client: str, memory: str, more: str = "") -> Path:
        path = tmp_path / "peer.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.executescript(PEER_SCHEMA.format(client=client, memory=memory, more=more))
            connection.execute(f"INSERT INTO observations VALUES ({row})")
        return path

    return make


def test_a_claude_mem_database_comes_in_with_its_sessions_prompts_and_times(
    command: Command, peer: Callable[..., Path], tmp_path: Path
) -> None:
    row = "1, 'memory-1', 'shop', NULL, 'bugfix', 'x', 1790841605000, 'The till opens', '[\"Fact one\"]'"
    path = peer(row, client="content_session_id", memory="memory_session_id", more=", title TEXT, facts TEXT")
    for _ in range(2):
        assert command(tmp_path / "other", "import", path).code == 0
    session, prompt, observation = lines(command(tmp_path / "other", "export").stdout)
    assert (session["session_id"], session["started_at_epoch"]) == ("client-1", 1790841600000)
    assert (prompt["text"], prompt["session_id"]) == ("Mend the till", "client-1")
    assert (observation["session_id"], observation["title"]) == ("client-1", "The till opens")
    assert (observation["facts"], observation["created_at_epoch"]) == (["Fact one"], 1790841605000)


def test_of_an_older_schema_what_is_there_comes_in(command: Command, peer: Callable[..., Path], tmp_path: Path) -> None:
    row = (
        "1, 'memory-1', 'shop', 'The till opens now.\nIt was the spring.', 'how-it-works', '2026-10-01T08:00:05Z', NULL"
    )
    path = peer(row, client="claude_session_id", memory="sdk_session_id")
    assert command(tmp_path / "other", "import", path).code == 0
    observation = lines(command(tmp_path / "other", "export").stdout)[-1]
    assert (observation["title"], observation["type"]) == ("The till opens now.", "discovery")
    assert (observation["session_id"], observation["created_at_epoch"]) == ("client-1", 1790841605000)


def test_prompts_of_claude_mem_sessions_without_a_memory_id_keep_their_projects(
    command: Command, peer: Callable[..., Path], tmp_path: Path
) -> None:
    path = peer("1, 'x', 'shop', 'T', 'bugfix', 'x', 1790841605000", client="content_session_id", memory="memory_id")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE sdk_sessions RENAME COLUMN memory_id TO memory_session_id")
        connection.execute("UPDATE sdk_sessions SET memory_session_id = NULL")
        connection.execute(
            "INSERT INTO sdk_sessions VALUES (2, 'client-2', NULL, 'mill', 'x', 1790841600000, NULL, 'x')"
        )
        connection.execute("INSERT INTO user_prompts VALUES (2, 'client-2', 1, 'Mend the wheel', 'x', 1790841602000)")
    command(tmp_path / "other", "import", path)
    prompts = [line for line in lines(command(tmp_path / "other", "export").stdout) if line["kind"] == "prompt"]
    assert [prompt["project"] for prompt in prompts] == ["shop", "mill"]


def test_a_claude_mem_text_that_is_not_utf_8_costs_only_its_letters(
    command: Command, peer: Callable[..., Path], tmp_path: Path
) -> None:
    row = "1, 'memory-1', 'shop', CAST(x'5468652074ff6c' AS TEXT), 'bugfix', 'x', 1790841605000"
    path = peer(row, client="content_session_id", memory="memory_session_id")
    assert command(tmp_path / "other", "import", path).code == 0
    assert lines(command(tmp_path / "other", "export").stdout)[-1]["narrative"] == "The t\N{REPLACEMENT CHARACTER}l"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the folder ../shared beside the checkout")
def test_the_databases_that_claude_mem_made_come_in_whole(command: Command, tmp_path: Path) -> None:
    told = command(tmp_path / "other", "import", SHARED / "claude-mem", "--json")
    assert told.code == 0
    assert told.json["records"]["observation"]["new"] == 1_067
    assert told.json["records"]["prompt"]["new"] == 101
