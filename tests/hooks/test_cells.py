"""Every condition of the service times every kind of payload: the host never notices, and nothing is lost."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from hooks import spool
from tests.hooks.hook_process import Request, Run, StandIn, event, http, judge, run_hook, tcp_service, unix_service

MEGABYTE = 1_000_000
PAYLOADS: dict[str, bytes] = {
    "valid": event(),
    "session start": event(hook_event_name="SessionStart"),
    "empty": b"",
    "cut": event()[:-40],
    "not UTF-8": b'{"session_id":"s\xff\xfe","hook_event_name":"Stop"}',
    "null": b"null",
    "list": b"[]",
    "number": b"42",
    "no session": b'{"hook_event_name":"Stop"}',
    "half a surrogate": b'{"session_id":"s","cwd":"/tmp/\\ud83d","hook_event_name":"Stop"}',
    "20 MB": event(tool_response={"stdout": "a line of output\n" * (20 * MEGABYTE // 17), "stderr": "end"}),
    "stdin held open": event(),
}
LIMITS_S = {"20 MB": 5.0, "session start": 2.0, "stdin held open": 2.0}  # else 1 s


@contextmanager
def stopped(home: Path) -> Iterator[None]:
    yield None


@contextmanager
def killed(home: Path) -> Iterator[None]:
    (home / "run").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "run" / "gapless.sock"))
    yield None


def unix(answer: Callable[[Request], bytes | None]) -> Callable[[Path], AbstractContextManager[StandIn]]:
    return lambda home: unix_service(home, answer)


def tcp(answer: Callable[[Request], bytes | None]) -> Callable[[Path], AbstractContextManager[StandIn]]:
    return lambda home: tcp_service(home, answer)


@contextmanager
def not_writable(home: Path) -> Iterator[None]:
    home.mkdir()
    (home / "spool").write_text("a file where the folder should be")
    yield None


CONDITIONS: dict[str, Callable[[Path], AbstractContextManager[StandIn | None]]] = {
    "healthy": unix(judge),
    "healthy on TCP": tcp(judge),
    "stopped": stopped,
    "killed": killed,
    "hung": unix(lambda _: None),
    "silent stranger": tcp(lambda _: None),
    "404": unix(lambda _: http(404)),
    "stranger's 404": tcp(lambda _: http(404)),
    "500": unix(lambda _: http(500)),
    "garbage": unix(lambda _: b"SSH-2.0-OpenSSH_9.2\r\n"),
    "hangs up": unix(lambda _: b""),
    "data folder not writable": not_writable,
    "full disk": stopped,
}
UNSPOOLABLE = ("data folder not writable", "full disk")
HEALTHY = ("healthy", "healthy on TCP")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_host_never_notices_and_nothing_is_lost(condition: str, home: Path) -> None:
    with CONDITIONS[condition](home) as service:
        for kind, payload in PAYLOADS.items():
            run = run_hook(home, payload, hold_open=kind == "stdin held open", full_disk=condition == "full disk")
            cell = f"{kind} while {condition}: {run}"
            assert run.code == 0, cell
            assert run.stdout == b"", cell
            assert run.took_s < LIMITS_S.get(kind, 1.0), cell
            if condition in UNSPOOLABLE:
                assert run.stderr.count("\n") == 1, cell
                assert "cannot be written" in run.stderr, cell
            else:
                assert run.stderr == "", cell
                assert kept(home, service if condition in HEALTHY else None, kind) == [expected(kind)], cell


def kept(home: Path, service: StandIn | None, kind: str) -> list[object]:
    """The bodies that somebody is now responsible for; forgets them, and the marker, for the next cell."""
    found = []
    if service is not None:
        found += [request.body for request in service.events if judge(request).startswith(b"HTTP/1.1 202")]
        service.requests.clear()
    for path in spool.pending(home.as_posix()) + spool.rejected(home.as_posix()):
        found.append(spool.read(path).body)
        spool.remove(path)
    (home / "run" / "avoid").unlink(missing_ok=True)
    return [comparable(body, kind) for body in found]


def expected(kind: str) -> object:
    return comparable(PAYLOADS[kind], kind)


def comparable(body: bytes, kind: str) -> object:
    """What the body says, as redaction may spell the same JSON otherwise; of what was cut only the beginning."""
    try:
        payload = json.loads(body)
    except ValueError:
        return body
    if kind == "20 MB":
        payload["tool_response"]["stdout"] = payload["tool_response"]["stdout"][:1000]
    return payload


def test_a_document_that_never_ends_is_set_aside(home: Path) -> None:
    run = run_hook(home, event()[:-40], hold_open=True)
    assert (run.code, run.stdout, run.stderr) == (0, b"", "")
    assert run.took_s < 5
    [path] = spool.rejected(str(home))
    assert spool.read(path).body == event()[:-40]
    assert spool.pending(str(home)) == []


def test_a_sender_that_says_nothing_is_given_up(home: Path) -> None:
    run = run_hook(home, b"", hold_open=True)
    assert run.code == 0
    assert run.took_s < 5
    assert len(spool.rejected(str(home))) == 1


def test_more_than_can_be_read_is_set_aside_in_part(home: Path) -> None:
    run: Run = run_hook(home, b'{"session_id":"' + b"x" * (70 * MEGABYTE))
    assert run.code == 0
    assert run.took_s < 5
    [path] = spool.rejected(str(home))
    assert Path(path).stat().st_size < 20 * MEGABYTE
