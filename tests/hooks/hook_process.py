"""Runs the hook as a client does, and stands in for the service with real sockets."""

import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOOK = ROOT / "hooks" / "gapless_hook.py"
PYTHON = os.path.realpath(sys.executable)
TOKEN = "token-of-the-tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    code: int
    stdout: bytes
    stderr: str
    took_s: float


def run_hook(
    home: Path,
    payload: bytes,
    *,
    args: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    hold_open: bool = False,
    full_disk: bool = False,
    python: str = PYTHON,
    script: Path = HOOK,
) -> Run:
    command = [python, "-I", "-S", str(script), *args]
    if full_disk:
        command = ["/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command]
    environment = {"PATH": os.defpath, "HOME": str(home.parent), "GAPLESS_HOME": str(home), **(env or {})}
    started = time.monotonic()
    with subprocess.Popen(
        command, env=environment, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        if hold_open:
            process.stdin.write(payload)
            process.stdin.flush()
            code = process.wait(timeout=20)
            stdout, stderr = process.stdout.read(), process.stderr.read()
        else:
            stdout, stderr = process.communicate(payload, timeout=20)
            code = process.returncode
        took_s = time.monotonic() - started
    return Run(code=code, stdout=stdout, stderr=stderr.decode(), took_s=took_s)


@dataclass(slots=True, kw_only=True)
class Request:
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Request], bytes | None]


@dataclass(slots=True, kw_only=True)
class StandIn:
    """`answer` gives the raw bytes for a request; None keeps the connection open and says nothing."""

    answer: Answer
    requests: list[Request] = field(default_factory=list)
    address: str | tuple[str, int] = ""

    @property
    def events(self) -> list[Request]:
        return [request for request in self.requests if request.target.startswith("/api/events")]

    @contextmanager
    def listening(self, listener: socket.socket) -> Iterator["StandIn"]:
        stopping = threading.Event()
        thread = threading.Thread(target=self._serve, args=(listener, stopping))
        with listener:
            listener.listen()
            listener.settimeout(0.05)
            thread.start()
            try:
                yield self
            finally:
                stopping.set()
                thread.join()

    def _serve(self, listener: socket.socket, stopping: threading.Event) -> None:
        kept_open: list[socket.socket] = []
        while not stopping.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(5)
            request = _read_request(connection)
            answer = None
            if request:
                self.requests.append(request)
                answer = self.answer(request)
            if answer is None:
                kept_open.append(connection)
                continue
            with connection, suppress(OSError):
                connection.sendall(answer)
        for connection in kept_open:
            connection.close()


def _read_request(connection: socket.socket) -> Request | None:
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            chunk = connection.recv(65_536)
            if not chunk:
                return None
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        headers = dict(line.lower().split(": ", 1)[:1] + line.split(": ", 1)[1:] for line in lines)
        parts = [body]
        missing = int(headers.get("content-length", "0")) - len(body)
        while missing > 0 and (chunk := connection.recv(1 << 20)):
            parts.append(chunk)
            missing -= len(chunk)
    except OSError:
        return None
    return Request(target=first.split(" ")[1], headers=headers, body=b"".join(parts))


@contextmanager
def unix_service(home: Path, answer: Answer) -> Iterator[StandIn]:
    (home / "run").mkdir(parents=True, exist_ok=True)
    path = home / "run" / "gapless.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        with StandIn(answer=answer).listening(listener) as service:
            yield service
    path.unlink(missing_ok=True)


@contextmanager
def tcp_service(home: Path, answer: Answer) -> Iterator[StandIn]:
    listener = socket.socket(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    (home / "run").mkdir(parents=True, exist_ok=True)
    (home / "run" / "port").write_text(f"{listener.getsockname()[1]}\n")
    (home / "token").write_text(TOKEN + "\n")
    with StandIn(answer=answer).listening(listener) as service:
        yield service


def http(status: int, body: object = None) -> bytes:
    content = json.dumps(body if body is not None else {}).encode()
    return b"HTTP/1.1 %d Whatever\r\nContent-Length: %d\r\n\r\n%b" % (status, len(content), content)


def accept(request: Request) -> bytes:
    return http(202, {"status": "queued", "message_id": 7, "event_key": "k"})


def judge(request: Request) -> bytes:
    """Answers as the service does: unreadable 400, too large 413, no session 422, else 202; and proves what it is."""
    if request.target.startswith("/api/hello"):
        return prove(request)
    if len(request.body) > 16 * 1024 * 1024:
        return http(413)
    try:
        payload = json.loads(request.body)
        assert isinstance(payload, dict)
    except (ValueError, AssertionError):
        return http(400)
    return accept(request) if "session_id" in payload else http(422)


def prove(request: Request) -> bytes:
    nonce = request.target.partition("nonce=")[2]
    proof = hmac.new(TOKEN.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    return http(200, {"proof": proof})


def event(**fields: object) -> bytes:
    payload = {
        "session_id": "11111111-2222-4333-8444-555555555555",
        "transcript_path": "/nowhere/transcript.jsonl",
        "cwd": "/nowhere/at/all",
        "permission_mode": "default",
        "effort": {"level": "medium"},
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "3 passed", "stderr": ""},
        "tool_use_id": "toolu_1",
    }
    return json.dumps({**payload, **fields}).encode()
