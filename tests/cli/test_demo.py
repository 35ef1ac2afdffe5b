"""make demo: the real service, the real hooks, and something worth reading at the end."""

from pathlib import Path

import pytest

from service import demo
from tests.cli.command_line import run_process

pytestmark = pytest.mark.slow
PRIVATE = b"oarlock-17"
"""Stands in a private part of the sample session."""


def test_the_demo_plays_the_session_shows_what_is_remembered_and_ends(tmp_path: Path) -> None:
    outcome = run_process(tmp_path / "own", "demo", "--folder", str(tmp_path / "demo"), DEMO_EXIT="1")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert f"Played {sum(1 for _ in demo.payloads(tmp_path))} hook events" in outcome.stdout
    assert "boathouse/slots.py" in outcome.stdout
    assert demo.QUESTION in outcome.stdout
    assert not (tmp_path / "own").exists(), "the user's own data folder is left alone"


def test_no_private_byte_of_the_session_is_left_in_any_file(tmp_path: Path) -> None:
    assert PRIVATE in b"".join(demo.payloads(tmp_path))
    run_process(tmp_path / "own", "demo", "--folder", str(tmp_path / "demo"), DEMO_EXIT="1")
    files = [path for path in (tmp_path / "demo").rglob("*") if path.is_file()]
    assert any(path.name == "gapless.db" for path in files)
    assert not [path for path in files if PRIVATE in path.read_bytes()]


def test_a_temporary_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    outcome = run_process(tmp_path / "own", "demo", "--exit", TMPDIR=str(tmp_path))
    assert outcome.code == 0
    assert list(tmp_path.iterdir()) == []
