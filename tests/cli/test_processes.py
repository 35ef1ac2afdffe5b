"""up, down, serve, work: idempotent, honest about what happened, and two data folders never meet."""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.cli import live
from service.settings import load
from tests.cli.command_line import Command, environment, run_process

pytestmark = pytest.mark.slow


def test_up_five_times_keeps_the_process_and_says_nothing_on_stderr(own_port: Path) -> None:
    outcomes = [run_process(own_port, "up", "--json") for _ in range(5)]
    assert [outcome.code for outcome in outcomes] == [0] * 5
    assert [outcome.stderr for outcome in outcomes] == [""] * 5
    assert len({outcome.json["pid"] for outcome in outcomes}) == 1
    assert [outcome.json["started"] for outcome in outcomes] == [True, False, False, False, False]


def test_two_ups_at_once_start_one_service(own_port: Path) -> None:
    command = [sys.executable, "-I", "-m", "service.cli", "up", "--json"]
    both = [subprocess.Popen(command, env=environment(own_port), stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    pids = {process.communicate()[0].split(b'"pid": ')[1].split(b",")[0] for process in both}
    assert len(pids) == 1
    if sys.platform == "linux":
        assert pids == set(processes_of(own_port))


def processes_of(home: Path) -> Iterator[bytes]:
    """The pids of what runs with this data folder."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"GAPLESS_HOME={home}\0".encode() in (folder / "environ").read_bytes():
                yield folder.name.encode()


def test_down_ends_the_service_and_does_nothing_twice(own_port: Path) -> None:
    pid = run_process(own_port, "up", "--json").json["pid"]
    assert run_process(own_port, "down", "--json").json == {"stopped": True, "pid": pid}
    assert live.find(load(home=own_port, environment={})) is None
    second = run_process(own_port, "down", "--json")
    assert (second.code, second.json) == (0, {"stopped": False, "pid": None})


def test_down_leaves_a_process_alone_whose_pid_a_dead_service_left_behind(own_port: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        (own_port / "run").mkdir(mode=0o700)
        (own_port / "run" / "pid").write_text(str(bystander.pid))
        assert run_process(own_port, "down", "--json").json["stopped"] is False
        assert bystander.poll() is None
        bystander.communicate(b"\n")


def test_two_data_folders_have_two_services_and_ending_one_leaves_the_other(own_port: Path, tmp_path: Path) -> None:
    other = tmp_path / "Jane Doe" / "héé"
    other.mkdir(parents=True)
    (other / "settings.toml").write_text("PORT = 0\n")
    try:
        first, second = (run_process(home, "up", "--json").json for home in (own_port, other))
        assert first["pid"] != second["pid"]
        assert first["address"] != second["address"]
        run_process(own_port, "down")
        assert live.readiness(load(home=other, environment={})).ready
    finally:
        assert run_process(other, "down").code == 0


def test_a_default_port_that_a_stranger_has_is_left_to_it(tmp_path: Path) -> None:
    with socket.socket() as stranger:
        try:
            stranger.bind(("127.0.0.1", 47700))
            stranger.listen()
        except OSError:
            pass  # someone has it already, which serves as well
        try:
            outcome = run_process(tmp_path / "home", "up", "--json")
            assert outcome.code == 0, outcome.stderr
            assert not outcome.json["address"].endswith(":47700")
        finally:
            run_process(tmp_path / "home", "down")


def test_a_chosen_port_that_is_taken_is_an_error_that_names_it(own_port: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        for command in ("up", "serve"):
            outcome = run_process(own_port, command, GAPLESS_PORT=str(port))
            assert outcome.code == 1
            assert str(port) in outcome.stderr
            assert "Traceback" not in outcome.stderr


def test_a_second_serve_is_refused_and_says_what_runs(own_port: Path) -> None:
    run_process(own_port, "up")
    outcome = run_process(own_port, "serve")
    assert outcome.code == 1
    assert "already runs" in outcome.stderr


def test_workers_beside_a_service_without_workers_do_its_work(own_port: Path, memory: Path, command: Command) -> None:
    (memory / "settings.toml").write_text("PORT = 0\n")
    run = [sys.executable, "-I", "-m", "service.cli"]
    service = subprocess.Popen([*run, "serve", "--no-workers"], env=environment(memory), stdout=subprocess.DEVNULL)
    try:
        configuration = load(home=memory, environment={})
        _wait_until_ready(configuration)
        assert command(memory, "queue", "replay", "--state", "done").code == 0
        assert "no worker runs" in command(memory, "queue", "wait", "--timeout", "0.5").stderr
        workers = subprocess.Popen([*run, "work"], env=environment(memory), stdout=subprocess.DEVNULL)
        try:
            assert command(memory, "queue", "wait", "--timeout", "30").code == 0
        finally:
            workers.send_signal(signal.SIGTERM)
            assert workers.wait(30) == 0
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(30) == 0


def _wait_until_ready(configuration: object) -> None:
    deadline = time.monotonic() + 30
    while not live.readiness(configuration).ready:  # type: ignore[arg-type]
        assert time.monotonic() < deadline
        time.sleep(0.02)
