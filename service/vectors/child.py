"""The vector process from its parent's side: started, watched, started again, given up for a while."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from service import private_files
from service.vectors.protocol import VectorsUnavailable

LOCKED = 75
"""Exit status: another process has the index."""
TOO_LARGE = 76
"""Exit status: took too much memory, is to be started again."""
CALM_S = 60.0
"""A process that lived so long starts with a clean record when it dies."""
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0
BROKEN_DEATHS = 3
"""After so many deaths in a row it counts as broken, and the index it opens is dropped: it may be what kills it."""
END_S = 15.0
"""A write under way is finished first (process.FINISH_S)."""
ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}
"""glibc gives every thread a heap of its own, and the model's large arrays leave holes in each: 500 MB against 310."""
LOG_BYTES = 1024 * 1024
LAST_WORDS_BYTES = 2000


class ChildState(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStatus:
    """`message`: why it died last, and when it is tried again."""

    state: ChildState
    message: str | None = None


class Child:
    """Blocks for milliseconds, at the end for seconds: call it off the event loop."""

    def __init__(self, home: Path, chroma: str) -> None:
        self._home = home
        self._chroma = chroma
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = 0.0
        self._deaths = 0
        self._not_before_s = 0.0
        self._last_words = ""
        self._killed_because = ""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def status(self) -> ChildStatus:
        self._take_note()
        if self.is_running:
            return ChildStatus(state=ChildState.RUNNING)
        if not self._deaths:
            return ChildStatus(state=ChildState.IDLE)
        state = ChildState.BROKEN if self._deaths >= BROKEN_DEATHS else ChildState.WAITING
        return ChildStatus(state=state, message=self._why_waiting())

    def start(self) -> None:
        """Start it unless it runs. Raises `VectorsUnavailable` while it is not to be tried."""
        self._take_note()
        if self.is_running:
            return
        if time.monotonic() < self._not_before_s:
            raise VectorsUnavailable(self._why_waiting())
        command = [sys.executable, "-I", "-m", "service.vectors.process", os.fspath(self._home), self._chroma]
        if self._deaths and self._deaths % BROKEN_DEATHS == 0:
            command.append("--anew")
        self._killed_because = ""
        self._started_s = time.monotonic()
        try:
            with os.fdopen(self._open_log(), "ab", buffering=0) as log:
                environment = {**os.environ, **ENVIRONMENT}  # noqa: TID251 - handed on as it is
                self._process = subprocess.Popen(
                    command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log
                )
        except OSError as error:
            raise VectorsUnavailable(f"the vector process can't be started: {error}") from error

    def kill(self, because: str) -> None:
        """End it at once; counts as a death."""
        if self._process is not None and self.is_running:
            self._killed_because = because
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """Let it finish what it writes, then end it."""
        if self._process is None:
            return
        assert self._process.stdin is not None  # a pipe
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _take_note(self) -> None:
        """Of how it ended, if it did since the last look."""
        process = self._process
        if process is None or (status := process.poll()) is None:
            return
        assert process.stdin is not None  # a pipe
        process.stdin.close()
        self._process = None
        if status in (0, TOO_LARGE):
            return
        if status == LOCKED:
            self._not_before_s = time.monotonic() + FIRST_WAIT_S
            self._last_words = "found the index in use by another process that does not answer"
            return
        if time.monotonic() - self._started_s > CALM_S:
            self._deaths = 0
        self._deaths += 1
        self._not_before_s = time.monotonic() + min(FIRST_WAIT_S * 2 ** (self._deaths - 1), LONGEST_WAIT_S)
        self._last_words = self._killed_because or _cause(status, self._log)

    def _why_waiting(self) -> str:
        wait_s = max(0.0, self._not_before_s - time.monotonic())
        return f"the vector process {self._last_words}; it is started again in {wait_s:.0f} s ({self._log} says more)"

    @property
    def _log(self) -> Path:
        return self._home / "logs" / "vectors.log"

    def _open_log(self) -> int:
        """Emptied at a start when it has grown."""
        private_files.make_folder(self._log.parent)
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, private_files.PRIVATE_FILE)
        if os.fstat(log).st_size > LOG_BYTES:
            os.truncate(log, 0)
        return log


def _cause(status: int, log: Path) -> str:
    if status < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
    lines = []
    with suppress(OSError):
        lines = log.read_bytes()[-LAST_WORDS_BYTES:].decode(errors="replace").strip().splitlines()
    return f"ended with status {status}" + (f": {lines[-1]}" if lines else "")
