"""The command line as its users meet it: in this process for what reads, as processes for what starts and ends."""

import asyncio
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from service import demo
from service.cli import main
from service.cli.queue import until_drained
from service.core import Core, Incoming
from service.envelopes import from_headers
from service.jsonin import parse
from service.settings import load
from tests.cli.command_line import REPOSITORY, Command, Outcome, run_process
from workers.supervisor import Workers


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's repository and, in `home`, what is remembered of its session."""
    place = tmp_path_factory.mktemp("played")
    demo.make_repository(place / REPOSITORY)

    async def play() -> None:
        core = Core.open(load(home=place / "home", environment={}))
        payloads = list(demo.payloads(place / REPOSITORY))
        envelope = from_headers({})
        await core.ingest_many([Incoming(payload=parse(raw), size=len(raw), envelope=envelope) for raw in payloads])
        workers = Workers(core)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(workers.run())
            assert await until_drained(core, timeout_s=30) is None
            workers.stop.set()
        await core.close()

    asyncio.run(play())
    return place


@pytest.fixture
def memory(played: Path, tmp_path: Path) -> Path:
    """A data folder of this test's own that remembers the demo's session."""
    home = tmp_path / "memory"
    (home / "run").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    for file in (played / "home").glob("gapless.db*"):
        shutil.copy(file, home)
    return home


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `gapless` on a data folder within this process."""
    for name in [name for name in os.environ if name.startswith("GAPLESS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def run(home: Path, *arguments: object) -> Outcome:
        monkeypatch.setenv("GAPLESS_HOME", str(home))
        monkeypatch.setattr(sys, "argv", ["gapless", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return Outcome(code=int(end.value.code or 0), stdout=told.out, stderr=told.err)

    return run


@pytest.fixture
def own_port(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose service takes any free port and has no vectors; ended with the test."""
    home = tmp_path / "service"
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text('PORT = 0\nCHROMA = "off"\n')
    yield home
    run_process(home, "down")
