"""The service of a data folder as seen from outside: is it alive, where does it listen, is it ready."""

import json
import os
import socket
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from service import liveness
from service.settings import Configuration

ANSWER_S = 2.0
LOCALHOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What `run/` says about a service whose lock is held; None where it has not written that yet."""

    pid: int | None
    port: int | None
    version: str | None

    @property
    def address(self) -> str | None:
        return None if self.port is None else f"http://{LOCALHOST}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """The answer of `/readyz`: `notes` are deliberate waits, `reasons` say what is wrong."""

    ready: bool
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find(configuration: Configuration) -> Live | None:
    """None when no service runs here; a held lock is the proof, files left behind are not."""
    run = configuration.run
    if not liveness.service_is_alive(run):
        return None
    return Live(pid=_number(run / "pid"), port=_number(run / "port"), version=_text(run / "version"))


def readiness(configuration: Configuration) -> Readiness:
    """Ask the service itself; one that does not answer is not ready."""
    try:
        answer = get(configuration, "/readyz")
    except (OSError, HTTPException, ValueError) as error:
        return Readiness(ready=False, reasons=(f"it does not answer ({error})",))
    return Readiness(
        ready=answer.get("status") == "ready",
        reasons=tuple(answer.get("reasons") or ()),
        notes=tuple(answer.get("notes") or ()),
    )


def has_settled(configuration: Configuration) -> bool:
    """Whether what `run/` says is of the service that holds the lock: one that starts has not written it yet, and
    the pid that is there may be someone else's by now. One that takes a request and hangs has."""
    try:
        get(configuration, "/livez")
    except TimeoutError:
        return True
    except (OSError, HTTPException, ValueError):
        return False
    return True


def get(configuration: Configuration, path: str) -> dict[str, Any]:
    """The JSON object at a path, over the Unix socket, else the recorded port.

    Raises OSError, HTTPException, ValueError.
    """
    connection = _connection(configuration.run)
    try:
        connection.request("GET", path, headers={"Host": "localhost"})
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    if not isinstance(answer, dict):
        raise ValueError("the answer is no JSON object")  # noqa: TRY004 - it came from a stranger, not from a caller
    return answer


class _SocketConnection(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def _connection(run: Path) -> HTTPConnection:
    path = run / "gapless.sock"
    if hasattr(socket, "AF_UNIX") and path.exists():
        return _SocketConnection(path)
    port = _number(run / "port")
    if port is None:
        raise OSError("it has not said where it listens")
    return HTTPConnection(LOCALHOST, port, timeout=ANSWER_S)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.isdecimal() else None
