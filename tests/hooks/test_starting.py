"""The first hook of a session starts the service and does not wait for it; without one it says how to get it."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hooks import spool
from service.cli import live
from service.settings import load
from tests.cli.command_line import run_process
from tests.hooks.hook_process import HOOK, event, http, run_hook, unix_service

START = ("--start-service",)
SESSION_START = event(hook_event_name="SessionStart", source="startup")
DEADLINE_S = 20.0


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def program(home: Path) -> Path:
    """Stands where the interpreter is recorded, and writes down how it was started; a line a start."""
    (home / "run").mkdir(parents=True)
    script = home.parent / "program with spaces"
    script.write_text(f'#!/bin/sh\necho "$GAPLESS_HOME|$PWD|$*" >> "{home}/starts"\n')
    script.chmod(0o755)
    (home / "run" / "python").write_text(str(script))
    return home / "starts"


def starts(program: Path, count: int = 1) -> list[str]:
    """What it wrote down, once it has written so much."""
    wait_for(lambda: program.exists() and program.read_text().count("\n") >= count)
    return program.read_text().splitlines()


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """The hook of a plugin that is all there is: no environment beside it."""
    shutil.copytree(HOOK.parent, tmp_path / "plug in" / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "plug in" / "hooks" / HOOK.name


def test_a_session_starts_the_service_in_its_own_folder(home: Path, program: Path) -> None:
    run = run_hook(home, SESSION_START, args=START)
    assert (run.code, run.stdout, run.stderr) == (0, b"", "")
    assert starts(program) == [f"{home}|{home}|-I -m service.cli serve"]
    assert len(spool.pending(str(home))) == 1


def test_sessions_that_begin_together_start_one_service(home: Path, program: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: run_hook(home, SESSION_START, args=START), range(16)))
    assert {(run.code, run.stdout, run.stderr) for run in runs} == {(0, b"", "")}
    assert len(starts(program)) == 1
    assert len(spool.pending(str(home))) == 16


def test_a_start_that_came_to_nothing_is_tried_again_later(home: Path, program: Path) -> None:
    run_hook(home, SESSION_START, args=START)
    starts(program)
    long_ago = time.time() - 60
    os.utime(home / "run" / "starting", (long_ago, long_ago))
    run_hook(home, SESSION_START, args=START)
    assert len(starts(program, 2)) == 2


def test_nothing_is_started_by_other_events_unasked_or_beside_a_service_that_hangs(home: Path, program: Path) -> None:
    run_hook(home, SESSION_START)
    run_hook(home, event(), args=START)
    with unix_service(home, lambda _: http(500)):
        run_hook(home, SESSION_START, args=START)
    run_hook(home, SESSION_START, args=START)
    assert not (home / "run" / "starting").exists()
    assert len(spool.pending(str(home))) == 4


@pytest.mark.slow
def test_the_started_service_takes_in_what_waited_and_holds_nothing_of_the_hook(home: Path) -> None:
    (home / "run").mkdir(parents=True, mode=0o700)
    (home / "run" / "python").write_text(sys.executable)
    (home / "settings.toml").write_text('PORT = 0\nCHROMA = "off"\n')
    configuration = load(home=home, environment={})
    run_hook(home, event())
    try:
        run = run_hook(home, SESSION_START, args=START)
        assert (run.code, run.stdout, run.stderr) == (0, b"", "")
        wait_for(lambda: live.find(configuration) and live.readiness(configuration).ready)
        wait_for(lambda: spool.pending(str(home)) == [])
        found = live.find(configuration)
        assert found is not None
        assert found.pid is not None
        assert os.getsid(found.pid) == found.pid
        run_hook(home, SESSION_START, args=START)
        assert live.find(configuration) == found
    finally:
        run_process(home, "down")


def test_with_the_plugin_alone_a_session_says_in_one_line_how_to_install(home: Path, plugin: Path) -> None:
    run = run_hook(home, SESSION_START, args=START, script=plugin)
    told = json.loads(run.stdout)
    assert run.stdout.count(b"\n") == 0
    assert set(told) == {"systemMessage", "hookSpecificOutput"}
    assert told["hookSpecificOutput"]["additionalContext"] == told["systemMessage"]
    assert str(plugin.parents[1]) in told["systemMessage"]
    assert "\n" not in told["systemMessage"]
    assert len(spool.pending(str(home))) == 1
    assert run_hook(home, event(), args=START, script=plugin).stdout == b""


def test_in_an_excluded_folder_the_plugin_says_nothing(home: Path, plugin: Path, tmp_path: Path) -> None:
    (tmp_path / ".gapless-off").touch()
    payload = event(hook_event_name="SessionStart", cwd=str(tmp_path))
    assert run_hook(home, payload, args=START, script=plugin).stdout == b""
    assert not home.exists()


def test_the_program_on_the_path_will_do(home: Path, plugin: Path, program: Path) -> None:
    (home / "run" / "python").unlink()
    folder = home.parent / "bin"
    folder.mkdir()
    (home.parent / "program with spaces").rename(folder / "gapless")
    run_hook(home, SESSION_START, args=START, script=plugin, env={"PATH": f".:{folder}:{os.defpath}"})
    assert starts(program)[0].endswith("|serve")


def test_the_launcher_becomes_gapless_or_says_how_to_install_it(home: Path, plugin: Path, program: Path) -> None:
    run_hook(home, b"", args=("mcp", "x y"), script=plugin.with_name("launcher.py"))
    assert starts(program)[0].endswith("|-I -m service.cli mcp x y")
    (home / "run" / "python").unlink()
    run = run_hook(home, b"", args=("mcp",), script=plugin.with_name("launcher.py"))
    assert run.code == 1
    assert run.stderr.startswith("gapless: Gapless is not installed yet")


def test_a_data_folder_that_cannot_be_written_costs_one_line(home: Path) -> None:
    home.mkdir()
    (home / "run").write_text("a file where the folder should be")
    run = run_hook(home, SESSION_START, args=START)
    assert (run.code, run.stdout) == (0, b"")
    assert run.stderr.startswith("gapless: the service could not be started")
    assert len(spool.pending(str(home))) == 1


def test_the_data_folder_can_be_named_on_the_command_line(home: Path, tmp_path: Path) -> None:
    run_hook(home, event(), args=("--home", str(tmp_path / "named é")))
    assert len(spool.pending(str(tmp_path / "named é"))) == 1
    assert not home.exists()
