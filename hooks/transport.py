"""Just enough HTTP/1.1 to hand one event to the service: over its Unix socket, or else over loopback TCP."""

from __future__ import annotations

import _socket
import os
import time

from hooks import envelope

TAKEN = range(200, 300)
REFUSALS = (400, 413, 415, 422)  # the service has read the bytes and will never take them
BROKEN = range(500, 600)
PORTS = range(1, 65_536)
ANSWER_MAX = 1_000_000  # bytes; context is under 10,000 characters


class Away(Exception):
    """The service did not take the event, or nobody knows whether it did: it has to wait in the spool."""


class Stuck(Away):
    """Something holds the service's place without answering well; asking again soon would only cost time."""


def post(home: str, event: envelope.Envelope, *, within_s: float) -> tuple[int, bytes]:
    """Status and body of the service's answer to `POST /api/events`: 2xx, or a refusal.

    Raises `Away` otherwise, never later than `within_s` seconds.
    """
    until = time.monotonic() + within_s
    try:
        connection, host, token = reach(home, until)
        try:
            status, answer = _exchange(connection, _request(event, host, token), until)
        finally:
            connection.close()
    except _socket.timeout:
        raise Stuck(f"no answer within {within_s:.1f} s") from None
    except OSError as error:
        raise Away(f"not reachable: {error}") from None
    if status in BROKEN:
        raise Stuck(f"the service answered {status}")
    if status not in TAKEN and status not in REFUSALS:
        raise Away(f"something answered {status}")
    return status, answer


def reach(home: str, until: float) -> tuple[_socket.socket, str, str]:
    """A connection, its Host and the token it needs. The socket needs none: its folder lets only its owner in.

    Raises `Away`, OSError.
    """
    run = os.path.join(home, "run")
    path = os.path.join(run, "gapless.sock")
    if hasattr(_socket, "AF_UNIX") and os.path.exists(path):
        try:
            return _connect(_socket.AF_UNIX, path, until), "localhost", ""
        except OSError as error:
            if error.errno is not None:
                raise
            # "AF_UNIX path too long" has no number: the service could not listen there either.
    recorded = _read(os.path.join(run, "port"))
    token = _read(os.path.join(home, "token"))
    port = int(recorded) if recorded.isdigit() else 0
    if not (port in PORTS and token):
        raise Away("no service has run here")
    _require_proof(port, token, until)
    return _connect(_socket.AF_INET, ("127.0.0.1", port), until), f"127.0.0.1:{port}", token


def _require_proof(port: int, token: str, until: float) -> None:
    """Let the program on the port show that it knows the token before it sees token or event: it may be a stranger."""
    import hmac

    nonce = os.urandom(16).hex()
    proof = hmac.new(token.encode(), nonce.encode(), "sha256").hexdigest()
    head = f"GET /api/hello?nonce={nonce} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    connection = _connect(_socket.AF_INET, ("127.0.0.1", port), until)
    try:
        status, answer = _exchange(connection, head.encode("ascii"), until)
    finally:
        connection.close()
    if status not in TAKEN or proof.encode() not in answer:
        raise Away(f"another program has port {port}")


def _connect(family: int, address: str | tuple[str, int], until: float) -> _socket.socket:
    connection = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_left_s(until))
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def _request(event: envelope.Envelope, host: str, token: str) -> bytes:
    lines = [
        f"POST /api/events?client={event.headers[envelope.CLIENT]} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(event.body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in event.headers.items()),
    ]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + event.body


def _exchange(connection: _socket.socket, request: bytes, until: float) -> tuple[int, bytes]:
    try:
        connection.settimeout(_left_s(until))
        connection.sendall(request)
    except (BrokenPipeError, ConnectionResetError):
        pass  # an answer given before the end of the request (413) may still be there to read
    return _parse(_receive(connection, until))


def _receive(connection: _socket.socket, until: float) -> bytes:
    answer = b""
    while len(answer) < ANSWER_MAX and not _is_complete(answer):
        try:
            connection.settimeout(_left_s(until))
            chunk = connection.recv(65_536)
        except _socket.timeout:
            if b"\r\n\r\n" in answer:  # the status is known; the rest can be missed
                break
            raise
        if not chunk:
            break
        answer += chunk
    return answer


def _is_complete(answer: bytes) -> bool:
    head, blank, body = answer.partition(b"\r\n\r\n")
    if not blank:
        return False
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return False


def _parse(answer: bytes) -> tuple[int, bytes]:
    if not answer:
        raise Away("the connection was closed without an answer")
    head, blank, body = answer.partition(b"\r\n\r\n")
    version, _, rest = head.partition(b" ")
    if not (blank and version.startswith(b"HTTP/1.") and rest[:3].isdigit()):
        raise Stuck("the answer is not HTTP")
    return int(rest[:3]), body


def _left_s(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise _socket.timeout("timed out")
    return left_s


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="ignore") as file:
            return file.read(1024).strip()
    except OSError:
        return ""
