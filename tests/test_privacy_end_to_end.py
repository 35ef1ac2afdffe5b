"""What was private or secret is nowhere: not in a file of the data folder, not in a request to the model."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.messages_api import MessagesApi
from tests.hooks.hook_process import run_hook

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unmeasured")]

PRIVATE = "plum-4712"
TURN = "pear-9931"
"""Said by a tool in a turn that is private; only the service can know, so it may wait in the spool."""
SECRETS = (
    "Zx9!fake-pgpass",
    "AKIAIOSFODNN7EXAMPLQ",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "MIIEowIBAAKCAQEAplum",
)
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAplum\n-----END RSA PRIVATE KEY-----"


def session() -> Iterator[dict[str, object]]:
    """A session that says its private parts and secrets in every field there is."""
    common: dict[str, object] = {"session_id": "s1", "cwd": "/nowhere/shop"}
    hidden = f"<private>{PRIVATE}</private>"
    nested = f'<PRIVATE reason="x">a <private>b</private> {PRIVATE}</PRIVATE>'
    yield common | {"hook_event_name": "UserPromptSubmit", "prompt_id": "p1", "prompt": f"build the shop {hidden} now"}
    yield common | {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "t1",
        "prompt_id": "p1",
        "tool_input": {"command": f"export PGPASSWORD={SECRETS[0]}; psql # {nested}"},
        "tool_response": {
            "stdout": f"{SECRETS[1]}\n{SECRETS[2]}\n{PEM}\n<private>{PRIVATE} to the end",
            "stderr": hidden,
        },
    }
    yield common | {
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_use_id": "t2",
        "prompt_id": "p1",
        "tool_input": {"command": "make", "deep": [{"er": [nested]}]},
        "error": f"Exit code 1\nlogin with {SECRETS[2]} failed {hidden}",
    }
    yield common | {"hook_event_name": "UserPromptSubmit", "prompt_id": "p2", "prompt": hidden}
    yield common | {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "t3",
        "prompt_id": "p2",
        "tool_input": {"command": f"echo {TURN}"},
        "tool_response": {"stdout": TURN},
    }
    yield common | {
        "hook_event_name": "Stop",
        "prompt_id": "p1",
        "last_assistant_message": f"The shop is built. {hidden} The key {SECRETS[1]} works.",
    }


def gapless(home: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "GAPLESS_HOME": str(home), "GAPLESS_PORT": "0", **settings}
    program = [sys.executable, "-I", "-m", "service.cli"]
    return subprocess.run([*program, *command], env=environment, capture_output=True, check=False)


async def up(home: Path, settings: dict[str, str]) -> int:
    return (await asyncio.to_thread(gapless, home, "up", **settings)).returncode


def leaks(data: bytes, *words: str) -> list[str]:
    return [word for word in (PRIVATE, *SECRETS, *words) if word.encode() in data]


@pytest.mark.parametrize("service_is_away_first", [False, True])
async def test_private_parts_and_secrets_leave_no_trace(tmp_path: Path, *, service_is_away_first: bool) -> None:
    home = tmp_path / "home"
    async with MessagesApi() as model:
        settings = {
            "GAPLESS_PROVIDER": "anthropic",
            "GAPLESS_ANTHROPIC_API_KEY": "test",
            "GAPLESS_ANTHROPIC_BASE_URL": model.url,
        }
        if not service_is_away_first:
            assert await up(home, settings) == 0
        for payload in session():
            assert run_hook(home, json.dumps(payload).encode()).code == 0
        assert [leaks(path.read_bytes()) for path in home.rglob("*.event") if leaks(path.read_bytes())] == []
        assert await up(home, settings) == 0
        try:
            waited = await asyncio.to_thread(gapless, home, "queue", "wait", "--timeout", "60", **settings)
            assert waited.returncode == 0, waited.stderr
            found = {path.name: leaks(path.read_bytes(), TURN) for path in home.rglob("*") if path.is_file()}
        finally:
            gapless(home, "down", **settings)
    assert {name: secrets for name, secrets in found.items() if secrets} == {}
    assert model.requests, "the model was asked"
    assert [leaks(request.raw, TURN) for request in model.requests if leaks(request.raw, TURN)] == []
    assert b"build the shop" in b"".join(request.raw for request in model.requests)
