"""The real Claude Code client, as a person installed it, with a home folder of its own and a scripted model."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.client.scripted_model import ScriptedModel

VARIABLE = "CLAUDE_BIN"
"""Names the client's program; several, for several versions, are separated as in PATH."""
NEW_NETWORK = 0x4000_0000
"""CLONE_NEWNET."""
LIMIT_S = 120


def binaries() -> list[str]:
    return [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]


@contextmanager
def loopback_only() -> Iterator[bool]:
    """A network namespace that has loopback and nothing else, for this thread and what it starts; needs root."""
    libc = ctypes.CDLL(None, use_errno=True)
    outer = os.open("/proc/self/ns/net", os.O_RDONLY) if sys.platform == "linux" else -1
    if outer < 0 or libc.unshare(NEW_NETWORK):
        yield False
        return
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield True
    finally:
        libc.setns(outer, 0)
        os.close(outer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a run left: the lines of its output, and the requests that its model got."""

    code: int
    took_s: float
    lines: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    stderr: str

    @property
    def session_id(self) -> str:
        return str(self._line("init")["session_id"])

    @property
    def result(self) -> str:
        return next((str(line.get("result")) for line in reversed(self.lines) if line.get("type") == "result"), "")

    @property
    def own_s(self) -> float:
        """What it took by the client's own account, which begins with the prompt."""
        return next(float(line["duration_ms"]) for line in self.lines if line.get("type") == "result") / 1000

    @property
    def servers(self) -> list[dict[str, Any]]:
        return list(self._line("init")["mcp_servers"])

    def hook_outputs(self, event: str) -> list[str]:
        return [
            line["stdout"]
            for line in self.lines
            if line.get("subtype") == "hook_response" and line["hook_event"] == event
        ]

    def texts(self, number: int = 0) -> list[str]:
        """What the model was told in its request of this number: texts of messages and results of tools."""
        found = []
        for message in self.requests[number]["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            found += [block.get("text") or json.dumps(block, ensure_ascii=False) for block in blocks]
        return found

    def _line(self, subtype: str) -> dict[str, Any]:
        return next(line for line in self.lines if line.get("subtype") == subtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealClient:
    binary: str
    work: Path
    model: ScriptedModel

    @property
    def home(self) -> Path:
        return self.work / "home"

    @property
    def project(self) -> Path:
        return self.work / 'pro "j" ëct'

    @property
    def data(self) -> Path:
        return self.work / "data"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.work / "tmp"),
            "CLAUDE_CODE_TMPDIR": str(self.work / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "IS_SANDBOX": "1",
            "GAPLESS_HOME": str(self.data),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.model.port}",
            "ANTHROPIC_API_KEY": "sk-ant-scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
        }

    def prepare(self) -> None:
        """Its folders, and a repository to work in."""
        for folder in (self.home, self.project, self.work / "tmp"):
            folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)

    def command(self, *arguments: str) -> None:
        """A command that needs no model, as `plugin install`."""
        subprocess.run(
            [self.binary, *arguments],
            env=self.environment,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=LIMIT_S,
        )

    def run(self, prompt: str, *arguments: str) -> Session:
        """One `claude -p`, with every tool allowed."""
        command = [self.binary, "-p", prompt, "--output-format", "stream-json", "--verbose", "--include-hook-events"]
        before = len(self.model.requests)
        started = time.monotonic()
        with subprocess.Popen(
            [*command, "--permission-mode", "bypassPermissions", *arguments],
            env=self.environment,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # it outlives its parent
                raise
        return Session(
            code=process.returncode,
            took_s=time.monotonic() - started,
            lines=[json.loads(line) for line in stdout.splitlines() if line.startswith("{")],
            requests=[request for request in self.model.requests[before:] if request.get("tools")],
            stderr=stderr,
        )
