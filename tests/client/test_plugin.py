"""The repository is a marketplace with one plugin, whose hooks work wherever the client puts it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hooks import spool
from service.installing.claude_code import TIMEOUTS_S
from service.version import VERSION
from tests.hooks.hook_process import ROOT, event

PARTS = (".claude-plugin", ".mcp.json", "hooks", "skills", "commands")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A copy of the plugin where no path is an easy one."""
    folder = tmp_path / 'plug "in" $é'
    folder.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    return folder


def document(*parts: str) -> Any:
    return json.loads(ROOT.joinpath(*parts).read_text(encoding="utf-8"))


def run(entry: dict[str, Any], plugin: Path, home: Path, payload: bytes = b"", path: str = os.defpath) -> Any:
    """In exec form, without a shell, as the client does it."""
    arguments = [argument.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) for argument in entry["args"]]
    environment = {"HOME": str(home), "PATH": path}
    program = shutil.which(entry["command"]) or entry["command"]
    return subprocess.run([program, *arguments], input=payload, env=environment, capture_output=True, check=False)


def test_the_marketplace_offers_this_version_of_the_plugin() -> None:
    [offered] = document(".claude-plugin", "marketplace.json")["plugins"]
    plugin = document(".claude-plugin", "plugin.json")
    assert (offered["name"], offered["source"]) == (plugin["name"], "./")
    assert plugin["version"] == VERSION


def test_its_hooks_have_the_events_and_limits_of_the_installer() -> None:
    hooks = document("hooks", "hooks.json")["hooks"]
    assert {name: group["hooks"][0]["timeout"] for name, [group] in hooks.items()} == TIMEOUTS_S


@pytest.mark.parametrize("name", TIMEOUTS_S)
def test_every_hook_keeps_its_event(name: str, plugin: Path, tmp_path: Path) -> None:
    [group] = document("hooks", "hooks.json")["hooks"][name]
    ran = run(group["hooks"][0], plugin, tmp_path, event(hook_event_name=name))
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert bool(ran.stdout) == (name == "SessionStart")  # how to install the service
    assert len(spool.pending(str(tmp_path / ".gapless"))) == 1


def test_hooks_run_on_the_interpreter_that_serves_before_any_on_the_path(plugin: Path, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "python3"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\ntouch "{tmp_path}/shim"\n')
    shim.chmod(0o755)
    (tmp_path / ".gapless" / "run").mkdir(parents=True)
    (tmp_path / ".gapless" / "run" / "python").write_text(sys.executable)
    [group] = document("hooks", "hooks.json")["hooks"]["Stop"]
    run(group["hooks"][0], plugin, tmp_path, event(), path=f"{shim.parent}:{os.defpath}")
    assert not (tmp_path / "shim").exists()
    assert len(spool.pending(str(tmp_path / ".gapless"))) == 1
    (tmp_path / ".gapless" / "run" / "python").write_text("/nowhere/python")
    run(group["hooks"][0], plugin, tmp_path, event(), path=f"{shim.parent}:{os.defpath}")
    assert (tmp_path / "shim").exists()


NOT_WAITED_FOR = ("PostToolUse", "PostToolUseFailure", "SubagentStop")


def test_the_client_waits_only_for_hooks_that_tell_it_something_or_end_a_turn() -> None:
    hooks = document("hooks", "hooks.json")["hooks"]
    assert {name for name, [group] in hooks.items() if group["hooks"][0].get("async")} == set(NOT_WAITED_FOR)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the ignored signals of a process from /proc")
def test_a_hook_that_is_told_to_end_hands_its_event_over_first(plugin: Path, tmp_path: Path) -> None:
    [group] = document("hooks", "hooks.json")["hooks"]["PostToolUse"]
    arguments = [argument.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) for argument in group["hooks"][0]["args"]]
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    with subprocess.Popen(["/bin/sh", *arguments], env=environment, stdin=subprocess.PIPE) as hook:
        while not _ignores(hook.pid, signal.SIGTERM):
            os.sched_yield()
        hook.terminate()
        hook.communicate(event(hook_event_name="PostToolUse"))
    assert hook.returncode == 0
    assert len(spool.pending(str(tmp_path / ".gapless"))) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads the ignored signals of a process from /proc")
def test_its_server_ends_when_it_is_told_to(plugin: Path, tmp_path: Path) -> None:
    entry = document(".mcp.json")["mcpServers"]["gapless"]
    (tmp_path / ".gapless" / "run").mkdir(parents=True)
    (tmp_path / ".gapless" / "run" / "python").write_text(sys.executable)
    arguments = [argument.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) for argument in entry["args"]]
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    with subprocess.Popen(
        ["/bin/sh", *arguments], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        server.stdin.flush()
        assert b'"result"' in server.stdout.readline()
        assert not _ignores(server.pid, signal.SIGTERM)
        server.terminate()
        assert server.wait(10) == -signal.SIGTERM


def _ignores(pid: int, number: int) -> bool:
    fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(fields["SigIgn"], 16) >> (number - 1) & 1)


def test_without_any_python_a_hook_says_so_and_exits_0(plugin: Path, tmp_path: Path) -> None:
    [group] = document("hooks", "hooks.json")["hooks"]["Stop"]
    ran = run(group["hooks"][0], plugin, tmp_path, event(), path=str(tmp_path / "empty"))
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert ran.stderr.startswith(b"gapless: nothing is remembered")


def test_its_server_answers_as_soon_as_the_service_is_installed(plugin: Path, tmp_path: Path) -> None:
    entry = document(".mcp.json")["mcpServers"]["gapless"]
    alone = run(entry, plugin, tmp_path)
    assert alone.returncode == 1
    assert b"To install it" in alone.stderr
    (tmp_path / ".gapless" / "run").mkdir(parents=True)
    (tmp_path / ".gapless" / "run" / "python").write_text(sys.executable)
    parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}
    answered = run(entry, plugin, tmp_path, json.dumps(request).encode() + b"\n")
    assert json.loads(answered.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "gapless"


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob("commands/*.md")), *sorted(ROOT.glob("skills/*/SKILL.md"))], ids=str
)
def test_every_text_for_the_agent_says_what_it_is_for(path: Path) -> None:
    head = path.read_text(encoding="utf-8").split("---\n")[1]
    assert "description: " in head
    assert path.name != "SKILL.md" or f"name: {path.parent.name}\n" in head
