import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from service.edge.server import listening
from service.errors import SettingsError
from service.settings import Configuration, load
from service.version import VERSION
from tests.edge.edge_service import mode_of
from tests.edge.service_process import DEADLINE_S, service_process, wait_until_ready

pytestmark = pytest.mark.slow


@contextmanager
def stranger() -> Iterator[int]:
    """Another program that has a port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_the_service_says_where_it_is_and_forgets_it_at_its_end(tmp_path: Path) -> None:
    with service_process(tmp_path, PORT="0") as process:
        port = wait_until_ready(tmp_path, process)
        run = tmp_path / "run"
        assert (run / "pid").read_text() == str(process.pid)
        assert (run / "port").read_text() == str(port)
        assert (run / "version").read_text() == VERSION
        assert {mode_of(run / name) for name in ("pid", "port", "version", "gapless.sock")} == {0o600}
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        kept = {"python", "tools"}  # by which the next session's first hook starts it again, and a client knows us
        assert {path.name for path in run.iterdir() if path.is_file() and path.suffix != ".lock"} == kept


def test_an_open_stream_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with service_process(tmp_path, PORT="0") as process:
        port = wait_until_ready(tmp_path, process)
        connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        token = (tmp_path / "token").read_text().strip()
        connection.request("GET", "/stream", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        assert answer.readline().startswith(b"event: queue")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        assert time.monotonic() - began < 4
        answer.read()
        connection.close()


def test_a_second_service_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with service_process(tmp_path, PORT="0") as first:
        wait_until_ready(tmp_path, first)
        with service_process(tmp_path, PORT="0") as second:
            _, error = second.communicate(timeout=DEADLINE_S)
            assert b"AlreadyRunning" in error
        wait_until_ready(tmp_path, first)


def test_a_service_takes_over_what_a_killed_one_left(tmp_path: Path) -> None:
    with service_process(tmp_path, PORT="0") as first:
        wait_until_ready(tmp_path, first)
        first.kill()
        first.wait(DEADLINE_S)
        assert (tmp_path / "run" / "gapless.sock").exists()
        (tmp_path / "run" / "avoid").touch()
        with service_process(tmp_path, PORT="0") as second:
            wait_until_ready(tmp_path, second)
            assert (tmp_path / "run" / "pid").read_text() == str(second.pid)
            assert not (tmp_path / "run" / "avoid").exists()


def test_the_log_has_json_lines_for_its_owner_alone(tmp_path: Path) -> None:
    with service_process(tmp_path, PORT="0") as process:
        wait_until_ready(tmp_path, process)
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)
    path = tmp_path / "logs" / "gapless.log"
    events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert events == ["service.started", "service.stopped"]
    assert mode_of(path) == 0o600


def test_a_default_port_that_a_stranger_has_moves(tmp_path: Path) -> None:
    with stranger() as taken, listening(_configured(tmp_path, taken, source="default")) as where:
        assert where.port != taken
        assert where.port > 0


def test_a_port_that_someone_set_never_moves(tmp_path: Path) -> None:
    with (
        stranger() as taken,
        pytest.raises(SettingsError, match=f"port {taken}: .*set PORT"),
        listening(_configured(tmp_path, taken, source="flag")),
    ):
        pass


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_a_host_that_is_not_ours_is_an_error_in_words(tmp_path: Path, host: str) -> None:
    configuration = load(home=tmp_path, flags={"host": host}, environment={})
    configuration.run.mkdir()
    with pytest.raises(SettingsError, match="cannot listen"), listening(configuration):
        pass


def test_a_path_too_long_for_a_socket_leaves_the_port(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    with listening(_configured(home, 0, source="flag")) as where:
        assert where.path is None
        assert where.port


def _configured(home: Path, port: int, *, source: str) -> Configuration:
    configuration = load(home=home, flags={"port": port}, environment={})
    configuration.run.mkdir(parents=True)
    sources = {**configuration.sources, "port": source}
    return Configuration(home=home, settings=configuration.settings, sources=sources)
