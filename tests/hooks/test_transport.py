"""What goes over the wire, to whom, and what becomes of the answer."""

import json
import os
import socket
import time
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from hooks import spool
from tests.hooks.hook_process import (
    TOKEN,
    Request,
    accept,
    event,
    http,
    judge,
    prove,
    run_hook,
    tcp_service,
    unix_service,
)


def test_the_payload_travels_byte_for_byte_with_its_stamps(home: Path) -> None:
    payload = b'  {"session_id": "s",\t"cwd":"/nowhere", "odd" : "\\ud83d \xc3\xa9 \\u0000"}\n'
    before_ms = time.time_ns() // 1_000_000
    with unix_service(home, accept) as service:
        run_hook(home, payload)
    [request] = service.requests
    assert request.body == payload
    assert before_ms <= int(request.headers["x-gapless-captured-at"]) <= time.time_ns() // 1_000_000
    assert len(bytes.fromhex(request.headers["x-gapless-delivery"])) == 16
    assert urlsplit(request.target).path == "/api/events"
    assert parse_qs(urlsplit(request.target).query) == {"client": ["claude-code"]}
    assert "authorization" not in request.headers
    assert "x-gapless-private" not in request.headers


@pytest.mark.parametrize("args", [("--client", "a & b"), ("--client=a & b",), ("-v", "--client", "a & b")])
def test_the_client_is_named(home: Path, args: tuple[str, ...]) -> None:
    with unix_service(home, accept) as service:
        run_hook(home, event(), args=args)
    [request] = service.requests
    assert parse_qs(urlsplit(request.target).query) == {"client": ["a & b"]}
    assert unquote(request.headers["x-gapless-client"]) == "a & b"


def test_any_project_name_is_a_legal_header(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "naïve: 50 % \n日本"
    folder.mkdir()
    with unix_service(home, accept) as service:
        run_hook(home, event(cwd=str(folder)), env={"GAPLESS_PROJECT": "ünï\r\nX-Evil: 1"})
    [request] = service.requests
    assert unquote(request.headers["x-gapless-project"]) == folder.name
    assert unquote(request.headers["x-gapless-project-key"]) == str(folder)
    assert unquote(request.headers["x-gapless-project-override"]) == "ünï\r\nX-Evil: 1"
    assert "x-evil" not in request.headers


def test_a_folder_that_is_gone_sends_no_project(home: Path) -> None:
    with unix_service(home, accept) as service:
        for cwd in ("/nowhere/at/all", "C:\\Users\\dev\\project", "/tmp/\x00", "/tmp/\ud83d"):
            assert run_hook(home, event(cwd=cwd)).stderr == ""
    assert len(service.requests) == 4
    assert not any("x-gapless-project" in request.headers for request in service.requests)


def test_without_a_folder_in_the_payload_the_processs_own_counts(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    with unix_service(home, accept) as service:
        run_hook(home, b'{"session_id":"s"}', cwd=folder)
    assert service.requests[0].headers["x-gapless-project"] == "here"


@pytest.mark.parametrize("by", ["marker above", "glob", "glob of what is below"])
def test_nothing_leaves_an_excluded_folder(home: Path, tmp_path: Path, by: str) -> None:
    folder = tmp_path / "secret" / "deep"
    folder.mkdir(parents=True)
    patterns = {"glob": f"/other, {tmp_path}/sec*", "glob of what is below": f"{tmp_path}/secret/**"}
    if by == "marker above":
        (tmp_path / "secret" / ".gapless-off").touch()
    with unix_service(home, accept) as service:
        run = run_hook(home, event(cwd=str(folder)), env={"GAPLESS_EXCLUDE": patterns.get(by, "")})
        cut = run_hook(home, event(cwd=str(folder))[:-9], env={"GAPLESS_EXCLUDE": patterns.get(by, "")})
    assert (run.code, run.stdout, run.stderr) == (cut.code, cut.stdout, cut.stderr) == (0, b"", "")
    assert service.requests == []
    assert not (home / "spool").exists()


def test_on_tcp_the_service_proves_itself_before_it_sees_token_and_event(home: Path) -> None:
    with tcp_service(home, judge) as service:
        run_hook(home, event())
    hello, posted = service.requests
    assert hello.target.startswith("/api/hello?nonce=")
    assert "authorization" not in hello.headers
    assert posted.body == event()
    assert posted.headers["authorization"] == f"Bearer {TOKEN}"
    assert spool.pending(str(home)) == []


def test_a_stranger_on_the_port_sees_neither_token_nor_event(home: Path) -> None:
    first = {"proof": ""}

    def replay(request: Request) -> bytes:
        """Answers 200 to everything, with a proof recorded from an earlier exchange."""
        first["proof"] = first["proof"] or json.loads(prove(request).partition(b"\r\n\r\n")[2])["proof"][::-1]
        return http(200, first)

    with tcp_service(home, replay) as service:
        run = run_hook(home, event())
    assert (run.code, run.stderr) == (0, "")
    assert service.events == []
    assert not any("authorization" in request.headers for request in service.requests)
    assert len(spool.pending(str(home))) == 1


@pytest.mark.parametrize("port", ["", "no number", "0", "70000", "-1", "²"])
def test_a_damaged_port_file_is_a_service_that_is_away(home: Path, port: str) -> None:
    (home / "run").mkdir(parents=True)
    (home / "run" / "port").write_text(port)
    (home / "token").write_text("tökén")
    run = run_hook(home, event())
    assert (run.code, run.stderr) == (0, "")
    assert len(spool.pending(str(home))) == 1


def test_a_socket_path_that_is_too_long_means_the_port(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30) / "data"
    with tcp_service(home, judge) as service:
        (home / "run" / "gapless.sock").touch()
        run_hook(home, event())
    assert len(service.events) == 1


def test_a_folder_name_with_spaces_and_accents_is_fine(tmp_path: Path) -> None:
    home = tmp_path / "Jane Doe" / "héé"
    with unix_service(home, accept) as service:
        run_hook(home, event())
    run_hook(home, event())
    assert len(service.requests) == 1
    assert len(spool.pending(str(home))) == 1


def test_context_is_passed_on_and_decisions_are_not(home: Path) -> None:
    output = {"hookEventName": "SessionStart", "additionalContext": "what was — 日本", "permissionDecision": "deny"}
    answer = http(202, {"decision": "block", "continue": False, "hookSpecificOutput": output})
    with unix_service(home, lambda _: answer):
        run = run_hook(home, event(hook_event_name="SessionStart"))
    del output["permissionDecision"]
    assert json.loads(run.stdout) == {"hookSpecificOutput": output}


@pytest.mark.parametrize("body", ['{"hookSpecificOutput":', '{"hookSpecificOutput":null}', '{"hookSpecificOutput":[]}'])
def test_an_answer_without_usable_context_prints_nothing(home: Path, body: str) -> None:
    answer = b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body.encode())
    with unix_service(home, lambda _: answer):
        run = run_hook(home, event())
    assert (run.code, run.stdout, run.stderr) == (0, b"", "")
    assert spool.pending(str(home)) == []


def test_an_answer_of_unknown_length_ends_with_the_connection(home: Path) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "then"}}
    with unix_service(home, lambda _: b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps(output).encode()):
        run = run_hook(home, event(hook_event_name="SessionStart"))
    assert json.loads(run.stdout) == output


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_what_the_service_refuses_is_set_aside_and_never_sent_again(home: Path, status: int) -> None:
    with unix_service(home, lambda _: http(status)):
        run = run_hook(home, event())
    assert (run.code, run.stderr) == (0, "")
    assert spool.pending(str(home)) == []
    [path] = spool.rejected(str(home))
    assert spool.read(path).headers["X-Gapless-Rejected"] == str(status)
    assert spool.read(path).body == event()


def test_a_refusal_before_the_end_of_the_request_is_heard(home: Path) -> None:
    """The service may answer from the headers alone and hang up while the body is still being sent."""
    (home / "run").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "run" / "gapless.sock"))
        listener.listen()
        listener.settimeout(10)
        payload = event(tool_response={"stdout": "x" * 8_000_000})

        def answer_early() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(http(413))
                connection.shutdown(socket.SHUT_WR)

        thread = Thread(target=answer_early)
        thread.start()
        run_hook(home, payload)
        thread.join()
    assert len(spool.rejected(str(home))) == 1


@pytest.mark.parametrize("status", [301, 401, 403, 404, 409, 429, 500, 503])
def test_any_other_status_is_a_service_that_is_away(home: Path, status: int) -> None:
    with unix_service(home, lambda _: http(status)):
        run_hook(home, event())
    assert len(spool.pending(str(home))) == 1
    assert (home / "run" / "avoid").exists() == (status >= 500)


def test_after_a_hung_service_the_next_hooks_do_not_wait(home: Path) -> None:
    with unix_service(home, lambda _: None) as service:
        run_hook(home, event())
        assert (home / "run" / "avoid").exists()
        run_hook(home, event())
        assert len(service.requests) == 1
    assert len(spool.pending(str(home))) == 2


@pytest.mark.parametrize("age_s", [31, -3600])
def test_an_old_marker_or_one_from_the_future_is_not_obeyed(home: Path, age_s: int) -> None:
    with unix_service(home, accept) as service:
        (home / "run" / "avoid").touch()
        os.utime(home / "run" / "avoid", (time.time() - age_s,) * 2)
        run_hook(home, event())
    assert len(service.requests) == 1


def test_a_service_that_is_down_leaves_no_marker(home: Path) -> None:
    run_hook(home, event())
    assert not (home / "run" / "avoid").exists()
    assert len(spool.pending(str(home))) == 1
