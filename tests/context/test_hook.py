"""What a client reads on the standard output of its hook: one JSON object with context, or nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.context.notebook import Notebook
from tests.context.test_events import ASKING, begin, read
from tests.edge.edge_service import Service, edit, prompt, stop
from tests.hooks.hook_process import Run, run_hook


async def hooked(service: Service, event: dict[str, Any], folder: Path) -> Run:
    payload = json.dumps(event | {"cwd": str(folder)}).encode()
    return await asyncio.to_thread(run_hook, service.home, payload, cwd=folder)


@pytest.fixture
async def folder(service: Service, tmp_path: Path) -> Path:
    await Notebook(service.edge.core).note(
        "Use pnpm", "pnpm is the package manager 漢字 \x1b[31m", files_read=["a.json"]
    )
    shop = tmp_path / "shop"
    shop.mkdir()
    return shop


@pytest.mark.parametrize("event", [begin(), prompt(ASKING, session="s9"), read("a.json"), read("a.json", tool="Edit")])
async def test_the_hook_prints_the_context_as_one_json_object_and_no_decision(
    service: Service, folder: Path, event: dict[str, Any]
) -> None:
    run = await hooked(service, event, folder)
    assert (run.code, run.stderr) == (0, "")
    output = json.loads(run.stdout)
    assert output.keys() == {"hookSpecificOutput"}
    assert output["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    assert "pnpm is the package manager 漢字" in output["hookSpecificOutput"]["additionalContext"]
    assert b"\x1b" not in run.stdout


@pytest.mark.parametrize("event", [edit("/x/a.py"), stop("done"), prompt("short"), read("unknown.json")])
async def test_the_hook_prints_nothing_where_nothing_is_told(
    service: Service, folder: Path, event: dict[str, Any]
) -> None:
    run = await hooked(service, event, folder)
    assert (run.code, run.stdout, run.stderr) == (0, b"", "")


async def test_nothing_is_printed_while_the_service_is_away(service: Service, folder: Path) -> None:
    (service.home / "run" / "gapless.sock").unlink()
    (service.home / "run" / "port").unlink(missing_ok=True)
    for event in (begin(), prompt(ASKING, session="s9"), read("a.json")):
        run = await hooked(service, event, folder)
        assert (run.code, run.stdout) == (0, b"")
