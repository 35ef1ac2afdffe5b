"""A service in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio
from service.edge.server import run_service
from service.logs import logging_to
from service.settings import load

async def main():
    configuration = load()
    with logging_to(configuration.home):
        await run_service(configuration, make_workers=None)

asyncio.run(main())
"""
DEADLINE_S = 30.0


@contextmanager
def service_process(home: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "GAPLESS_HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment |= {f"GAPLESS_{name}": value for name, value in settings.items()}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until_ready(home: Path, process: subprocess.Popen[bytes]) -> int:
    """The port it listens on."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            port = int((home / "run" / "port").read_text())
            connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
            connection.request("GET", "/readyz")
            status = connection.getresponse().status
            connection.close()
        except (OSError, ValueError):
            time.sleep(0.01)
            continue
        if status == 200:
            return port
    raise AssertionError("the service did not become ready")
