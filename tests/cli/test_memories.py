"""remember, edit, forget, timeline: straight on the database, about the current folder's project."""

import json
from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, Command

TEXT = "The boats are painted in March"


def test_a_text_is_remembered_in_the_project_of_the_current_folder(
    command: Command, memory: Path, played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(played / REPOSITORY)
    told = command(memory, "remember", TEXT, "--tags", "Season:Spring,boats", "--json").json
    assert not told["duplicate"]
    assert command(memory, "remember", TEXT, "--json").json == {"id": told["id"], "duplicate": True}
    assert command(memory, "search", "painted march", "--json").json["results"][0]["id"] == told["id"]
    (record,) = command(memory, "get", told["id"], "--json").json["results"]
    assert (record["project"], record["narrative"], record["tags"]) == (REPOSITORY, TEXT, ["season:spring", "boats"])


def test_a_text_is_remembered_in_a_folder_that_is_new(
    command: Command, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new one"
    folder.mkdir()
    monkeypatch.chdir(folder)
    number = command(memory, "remember", TEXT, "--json").json["id"]
    assert command(memory, "get", number, "--json").json["results"][0]["project"] == "new one"
    assert command(memory, "search", "painted", "--json").json["total"] == 1


def test_an_edit_changes_what_it_names(command: Command, memory: Path) -> None:
    outcome = command(memory, "edit", 1, "--title", "Renamed", "--type", "decision", "--confidence", "0.5", "--json")
    assert outcome.code == 0
    assert (outcome.json["title"], outcome.json["type"], outcome.json["confidence"]) == ("Renamed", "decision", 0.5)
    assert "Renamed" in command(memory, "get", 1).stdout


def test_forgetting_says_what_it_did(command: Command, memory: Path) -> None:
    planned = command(memory, "forget", "--project", REPOSITORY, "--dry-run", "--json").json
    assert planned["dry_run"]
    assert min(planned["observations"], planned["summaries"], planned["prompts"], planned["messages"]) > 0
    outcome = command(memory, "forget", "--project", REPOSITORY, "--vacuum", "--json")
    assert outcome.json == planned | {"dry_run": False}
    assert "backups" in outcome.stderr
    assert command(memory, "search", "", "--all-projects", "--type", "all", "--json").json["total"] == 0
    assert command(memory, "queue", "replay", "--state", "done", "--json").json["messages"] == 0


def test_ids_of_every_kind_are_forgotten(command: Command, memory: Path) -> None:
    outcome = command(memory, "forget", "1", "S1", "P1", "--yes")
    assert "1 observations, 1 summaries, 1 prompts" in outcome.stdout
    assert command(memory, "get", "1", "S1", "P1", "--json").json["missing"] == ["1", "S1", "P1"]


def test_a_timeline_marks_its_anchor(command: Command, memory: Path) -> None:
    found = command(memory, "timeline", "1", "--before", "2", "--after", "2", "--json").json
    assert found == command(memory, "timeline", "1", "--depth-before", "2", "--depth-after", "2", "--json").json
    assert found["anchor"]["id"] == 1
    assert [row["id"] for row in found["results"] if row["is_anchor"]] == [1]
    assert ">" in command(memory, "timeline", "1").stdout
    by_query = command(memory, "timeline", "--query", "booked twice", "--all-projects", "--json").json
    assert sum(row["is_anchor"] for row in by_query["results"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("remember", " "), 2),
        (("remember", TEXT, "--type", "joke"), 2),
        (("remember", TEXT, "--layer", "L9"), 2),
        (("remember", TEXT, "--confidence", "7"), 2),
        (("remember", TEXT, "--expires-at", "soon"), 2),
        (("edit", "1"), 2),
        (("edit", "999", "--title", "x"), 1),
        (("forget",), 2),
        (("forget", "X1"), 2),
        (("forget", "--before", "soon"), 2),
        (("timeline",), 2),
        (("timeline", "999"), 1),
    ],
)
def test_what_makes_no_sense_is_told_and_changes_nothing(
    command: Command, memory: Path, arguments: tuple[str, ...], code: int
) -> None:
    before = command(memory, "search", "", "--all-projects", "--type", "all", "--json").json["total"]
    outcome = command(memory, *arguments)
    assert outcome.code == code
    assert outcome.stderr
    assert command(memory, "search", "", "--all-projects", "--type", "all", "--json").json["total"] == before
    assert json.dumps(outcome.stdout).strip('"') == ""
