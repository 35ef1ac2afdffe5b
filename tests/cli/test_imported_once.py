"""What an import takes in is there once, in its own project, and only as far as it may be told."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Command

AT = 1_700_000_000_000


def observation(title: str, **more: Any) -> str:
    return json.dumps({"kind": "observation", "project": "p", "title": title, "created_at_epoch": AT, **more})


def exported(command: Command, home: Path) -> list[dict[str, Any]]:
    told = command(home, "export")
    assert told.code == 0
    return [json.loads(line) for line in told.stdout.splitlines()]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


def written(path: Path, *texts: str) -> Path:
    path.write_text("\n".join(texts))
    return path


def test_a_title_that_is_private_is_made_of_what_may_be_told(command: Command, there: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", observation("<private>secret plan</private>", narrative="The boat is blue."))
    command(there, "import", file)
    assert [line["title"] for line in exported(command, there)] == ["The boat is blue."]


@pytest.mark.parametrize("said", ["<private>all of it</private>", "\0", " "])
def test_a_record_that_may_tell_nothing_leaves_nothing(
    command: Command, there: Path, tmp_path: Path, said: str
) -> None:
    prompt = {"kind": "prompt", "session_id": "s", "project": "p", "event_key": "k", "prompt_number": 1, "text": said}
    file = written(tmp_path / "a.jsonl", observation(said), json.dumps({**prompt, "created_at_epoch": AT}))
    told = command(there, "import", file, "--json").json["records"]
    assert {kind: counts["skipped"] for kind, counts in told.items()} == {"observation": 1, "prompt": 1}
    assert exported(command, there) == []


def test_two_files_of_one_import_that_tell_the_same_are_one(command: Command, there: Path, tmp_path: Path) -> None:
    files = [written(tmp_path / f"{name}.jsonl", observation("One"), observation("Two")) for name in "ab"]
    command(there, "import", *files)
    assert [line["title"] for line in exported(command, there)] == ["One", "Two"]


def test_what_was_forgotten_or_corrected_does_not_come_back(command: Command, there: Path, tmp_path: Path) -> None:
    summary = {"kind": "summary", "session_id": "s", "project": "p", "completed": "Done.", "created_at_epoch": AT}
    file = written(tmp_path / "a.jsonl", observation("One"), observation("Two"), json.dumps(summary))
    command(there, "import", file)
    command(there, "forget", "1", "S1", "--yes")
    command(there, "edit", "2", "--title", "Two and a half")
    command(there, "import", file)
    assert [line["title"] for line in exported(command, there) if line["kind"] == "observation"] == ["Two and a half"]
    assert not [line for line in exported(command, there) if line["kind"] == "summary"]


def test_projects_of_the_same_name_stay_apart_when_they_move(
    command: Command, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "xy":
        folder = tmp_path / name / "app"
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", folder], check=True)
        monkeypatch.chdir(folder)
        command(tmp_path / "here", "remember", f"The one in {name}.")
    moved = tmp_path / "moved.jsonl"
    command(tmp_path / "here", "export", "-o", moved)
    command(there, "import", moved)
    for name in "yx":
        monkeypatch.chdir(tmp_path / name / "app")
        command(there, "remember", f"More of {name}.")
    projects: dict[str, str] = {}
    for line in exported(command, there):
        name = line["narrative"].rstrip(".")[-1]
        assert projects.setdefault(name, line["project"]) == line["project"]
    assert len(set(projects.values())) == 2
