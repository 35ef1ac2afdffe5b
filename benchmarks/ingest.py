"""Load on POST /api/events: `python benchmarks/ingest.py EVENTS.jsonl [--events N]`, lines `{"payload": {…}}`.

A service of its own in a throw-away data folder; the load comes from this process over kept-alive connections, so both
share the machine. Every answer is awaited: it leaves after the commit. Each phase sends the same events under new
session ids.
"""

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY_WITHIN_S = 30.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Phase:
    """Latencies in ms, one an answer."""

    latencies_ms: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    took_s: float = 0.0
    server_cpu_s: float = 0.0

    def row(self, name: str) -> str:
        quantiles = statistics.quantiles(self.latencies_ms, n=100)
        number = len(self.latencies_ms)
        return (
            f"| {name} | {number} | {number / self.took_s:,.0f} | {statistics.median(self.latencies_ms):.2f} "
            f"| {quantiles[94]:.1f} | {quantiles[98]:.1f} | {max(self.latencies_ms):.0f} "
            f"| {self.server_cpu_s / number * 1000:.3f} | {dict(self.statuses)} |"
        )


class Client(asyncio.Protocol):
    """One connection that sends the next request when the answer to the last is whole."""

    def __init__(self, requests: Iterator[bytes], phase: Phase, done: asyncio.Future[None]) -> None:
        self.requests, self.phase, self.done = requests, phase, done
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.transport.close()
            self.done.set_result(None)
            return
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, blank, body = self.buffer.partition(b"\r\n\r\n")
        if not blank or len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0]):
            return
        self.phase.latencies_ms.append((time.perf_counter() - self.sent) * 1000)
        self.phase.statuses[int(head[9:12])] += 1
        self.buffer = b""
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the service closed a connection"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--events", type=int, default=10_000)
    options = parser.parse_args()
    payloads = list(read(options.file, options.events))
    print(f"{len(payloads)} payloads, {sum(map(len, payloads)) / len(payloads):,.0f} bytes on average\n")
    print("| | events | events/s | p50 ms | p95 ms | p99 ms | max ms | server CPU ms an event | answers |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), payloads)


def measure(home: Path, payloads: list[bytes]) -> None:
    service = start(home)
    try:
        wait_until_ready(home)
        post(home, "/api/queue/pause")
        few = payloads[: len(payloads) // 4]
        print(run(home, service.pid, payloads, clients=32, name="warm-up").row("32 clients, warm-up"))
        print(run(home, service.pid, few, clients=1, name="one").row("1 client"))
        print(run(home, service.pid, payloads, clients=32, name="many").row("32 clients"))
        before = completed(home)
        post(home, "/api/queue/flush")
        post(home, "/api/queue/resume")
        beside = run(home, service.pid, payloads, clients=32, name="beside")
        print(beside.row("32 clients, consumers storing"))
        print(f"\nconsumers completed {(completed(home) - before) / beside.took_s:,.0f} messages/s meanwhile")
    finally:
        service.send_signal(signal.SIGTERM)
        print(f"exit code {service.wait(timeout=35)}")


def read(path: Path, number: int) -> Iterator[bytes]:
    with path.open(encoding="utf-8") as file:
        for _, line in zip(range(number), file, strict=False):
            yield json.dumps(json.loads(line)["payload"], ensure_ascii=False).encode("utf-8", "replace")


def start(home: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "GAPLESS_HOME": str(home), "GAPLESS_PORT": "0", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", "service.cli", "serve"], env=environment, stdout=subprocess.DEVNULL)


def wait_until_ready(home: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        try:
            if request(home, "GET", "/readyz") == 200:
                return
        except (OSError, ValueError):
            time.sleep(0.02)
    raise TimeoutError("the service did not become ready")


def run(home: Path, pid: int, payloads: list[bytes], *, clients: int, name: str) -> Phase:
    phase = Phase()
    before = cpu_s(pid)
    asyncio.run(load(home, requests(home, payloads, name), phase, clients))
    phase.server_cpu_s = cpu_s(pid) - before
    return phase


def requests(home: Path, payloads: list[bytes], name: str) -> list[bytes]:
    """Ready to send; the session ids get a prefix, so that nothing is a duplicate of another phase."""
    head = (
        f"POST /api/events?client=claude-code&project=load HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token(home)}\r\nContent-Type: application/json\r\nContent-Length: "
    ).encode()
    made = []
    for payload in payloads:
        body = payload.replace(b'"session_id": "', b'"session_id": "' + name.encode() + b"-", 1)
        made.append(head + str(len(body)).encode() + b"\r\n\r\n" + body)
    return made


async def load(home: Path, made: list[bytes], phase: Phase, clients: int) -> None:
    loop = asyncio.get_running_loop()
    queue = iter(made)
    finished = [loop.create_future() for _ in range(clients)]
    began = time.perf_counter()
    for done in finished:
        await loop.create_connection(partial(Client, queue, phase, done), "127.0.0.1", port(home))
    await asyncio.gather(*finished)
    phase.took_s = time.perf_counter() - began


def request(home: Path, method: str, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port(home), timeout=10)
    connection.request(method, path, headers={"Authorization": f"Bearer {token(home)}"})
    status = connection.getresponse().status
    connection.close()
    return status


def post(home: Path, path: str) -> None:
    assert request(home, "POST", path) == 200


def port(home: Path) -> int:
    return int((home / "run" / "port").read_text())


def token(home: Path) -> str:
    return (home / "token").read_text().strip()


def completed(home: Path) -> int:
    with sqlite3.connect(home / "gapless.db") as database:
        sql = "SELECT count(*) FROM pending_messages WHERE state <> 'pending' AND ifnull(reason, '') <> 'noise'"
        return int(database.execute(sql).fetchone()[0])


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


if __name__ == "__main__":
    main()
