"""search and get: the folder's own project unless told otherwise, JSON for programs, nothing that drives a terminal."""

import sqlite3
from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, Command

QUESTION = "why could a slot be booked twice"


def test_search_is_about_the_project_of_the_current_folder(
    command: Command, memory: Path, played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(played / REPOSITORY)
    assert command(memory, "search", QUESTION, "--json").json["total"] > 0
    monkeypatch.chdir(tmp_path)
    elsewhere = command(memory, "search", QUESTION)
    assert "--all-projects" in elsewhere.stderr
    assert command(memory, "search", QUESTION, "--all-projects", "--json").json["total"] > 0
    assert command(memory, "search", QUESTION, "--project", REPOSITORY, "--json").json["total"] > 0


def test_search_has_the_filters_of_the_route(command: Command, memory: Path) -> None:
    def found(*filters: str) -> list[dict[str, object]]:
        return list(command(memory, "search", "", "--all-projects", "--json", *filters).json["results"])

    assert {row["type"] for row in found("--obs-type", "bugfix")} == {"bugfix"}
    assert found("--files", "boathouse/slots.py")
    assert not found("--files", "no/such/file.py")
    assert {row["kind"] for row in found("--type", "prompts")} == {"prompt"}
    assert not found("--until", "2001-01-01")
    assert not found("--date-end", "2001-01-01")
    assert found("--date-start", "2001-01-01") == found("--since", "2001-01-01") == found()
    assert len(found("--limit", "1")) == 1
    assert not found("--platform", "cursor")


@pytest.mark.parametrize(
    "wrong", [("--limit", "0"), ("--type", "nonsense"), ("--since", "yesterday-ish"), ("--order-by", "x")]
)
def test_a_filter_that_makes_no_sense_is_wrong_usage(command: Command, memory: Path, wrong: tuple[str, str]) -> None:
    outcome = command(memory, "search", "boat", *wrong)
    assert outcome.code == 2
    assert outcome.stderr.startswith("gapless: ")


def test_get_shows_records_of_every_kind_in_the_order_asked(command: Command, memory: Path) -> None:
    outcome = command(memory, "get", "P2", "1", "S1", "--json")
    assert outcome.code == 0
    assert [(row["kind"], row["id"]) for row in outcome.json["results"]] == [
        ("prompt", 2),
        ("observation", 1),
        ("summary", 1),
    ]
    assert outcome.json["results"][1]["facts"] is not None


def test_get_names_what_is_missing_and_still_shows_the_rest(command: Command, memory: Path) -> None:
    outcome = command(memory, "get", "1", "S999", "--json")
    assert outcome.code == 1
    assert outcome.json["missing"] == ["S999"]
    assert len(outcome.json["results"]) == 1
    assert "S999" in outcome.stderr


def test_get_refuses_what_is_no_id(command: Command, memory: Path) -> None:
    assert command(memory, "get", "X1").code == 2


def test_escape_codes_in_stored_text_do_not_reach_the_terminal(command: Command, memory: Path) -> None:
    with sqlite3.connect(memory / "gapless.db") as connection:
        connection.execute(
            "UPDATE observations SET narrative = char(27) || '[31mred', subtitle = '[bold]' WHERE id = 1"
        )
    connection.close()
    outcome = command(memory, "get", "1")
    assert "\x1b" not in outcome.stdout
    assert "[bold]" in outcome.stdout
