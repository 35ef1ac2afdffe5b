"""A service of the benchmark's own on a data folder: asked over HTTP, measured from outside."""

import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parent.parent
READY_WITHIN_S = 120.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SLOWEST_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Wall times at the client, and the CPU time of the service with its vector process, all ms."""

    p50: float
    p95: float
    cpu: float


@dataclass(slots=True, kw_only=True)
class Running:
    """`start_s`: from the start of the process to the first 200 of /readyz."""

    home: Path
    process: subprocess.Popen[bytes]
    start_s: float
    connection: HTTPConnection
    token: str

    def get(self, path: str, **params: object) -> Any:
        """JSON, or text where it is none. Raises AssertionError for anything but a 200."""
        address = f"{path}?{urllib.parse.urlencode(params)}" if params else path
        self.connection.request("GET", address, headers={"Authorization": f"Bearer {self.token}"})
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (address, answer.status, body[:200])
        return orjson.loads(body) if body[:1] in (b"{", b"[") else body.decode()

    def took(self, asks: Sequence[Callable[[], object]]) -> Took:
        before, times = self.cpu_s(), list[float]()
        for ask in asks:
            began = time.perf_counter()
            ask()
            times.append((time.perf_counter() - began) * 1e3)
        times.sort()
        return Took(
            p50=statistics.median(times),
            p95=times[min(len(times) - 1, int(len(times) * SLOWEST_SHARE))],
            cpu=(self.cpu_s() - before) * 1e3 / len(asks),
        )

    def cpu_s(self) -> float:
        return sum(_ticks(pid) for pid in self._family()) / TICKS_PER_S

    def memory_mb(self) -> tuple[float, float]:
        """Of the service, and of its vector process (0: none)."""
        own, *others = (_resident_mb(pid) for pid in self._family())
        return own, sum(others)

    def command_s(self, *arguments: str) -> float:
        """How long `gapless …` takes from start to end."""
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-I", "-m", "service.cli", *arguments],
            env=_environment(self.home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return time.perf_counter() - began

    def _family(self) -> Iterator[int]:
        yield self.process.pid
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with suppress(OSError):
                yield from map(int, children.read_text(encoding="ascii").split())


@contextmanager
def running(home: Path, **settings: str) -> Iterator[Running]:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "service.cli", "serve"],
        env=_environment(home, **settings),
        stdout=subprocess.DEVNULL,
    )
    try:
        connection = _ready(home, process)
        start_s = time.perf_counter() - began
        token = (home / "token").read_text(encoding="ascii").strip()
        yield Running(home=home, process=process, start_s=start_s, connection=connection, token=token)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=35)


def _ready(home: Path, process: subprocess.Popen[bytes]) -> HTTPConnection:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, ValueError):
            connection = HTTPConnection("127.0.0.1", int((home / "run/port").read_text(encoding="ascii")))
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return connection
        time.sleep(0.01)
    raise TimeoutError("the service did not become ready")


def _environment(home: Path, **settings: str) -> dict[str, str]:
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("GAPLESS_")}
    ours = {f"GAPLESS_{name.upper()}": value for name, value in settings.items()}
    return {**theirs, "GAPLESS_HOME": str(home), "GAPLESS_PORT": "0", **ours}


def _ticks(pid: int) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def _resident_mb(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0
