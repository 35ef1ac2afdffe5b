"""`gapless context` on a real data folder, with the service down."""

from pathlib import Path

from service.core import Core
from tests.cli.command_line import run_process
from tests.context.notebook import Notebook


async def test_the_command_prints_what_a_session_there_would_be_told(core: Core, home: Path, tmp_path: Path) -> None:
    await Notebook(core).note("Use pnpm", "never npm \x1b[31m")
    folder = tmp_path / "shop"
    folder.mkdir()
    here = run_process(home, "context", cwd=folder)
    assert here.code == 0
    assert here.stdout.startswith("<gapless-context>\n")
    assert "Use pnpm: never npm" in here.stdout
    there = run_process(home, "context", "--cwd", str(folder), "--json", cwd=tmp_path)
    assert there.json == {"text": here.stdout.removesuffix("\n"), "tokens": there.json["tokens"], "left_out": 0}
    named = run_process(home, "context", cwd=tmp_path, GAPLESS_PROJECT="shop")
    assert named.stdout == here.stdout


async def test_the_command_says_why_there_is_nothing(core: Core, home: Path, tmp_path: Path) -> None:
    outcome = run_process(home, "context", cwd=tmp_path, GAPLESS_CONTEXT_BUDGET="0")
    assert (outcome.code, outcome.stdout) == (0, "")
    assert "CONTEXT_BUDGET" in outcome.stderr
