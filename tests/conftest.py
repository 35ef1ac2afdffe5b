"""What every test shares: a data folder that is ready, and waiting on conditions instead of sleeping."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from service.core import Core, prepare_database
from service.settings import Configuration, load

DEADLINE_S = 20.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: if they came last, one of the two processes would wait for the other."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="module")
def unmeasured() -> Iterator[None]:
    """Processes without coverage: what is killed leaves none, and measuring it takes half as long again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty database; copies of it are cheaper than migrating."""
    folder = tmp_path_factory.mktemp("template")
    settings = load(home=folder, environment={}).settings
    prepare_database(folder / "gapless.db", settings=settings, backups=folder / "backups")
    return folder / "gapless.db"


@pytest.fixture
def home(tmp_path: Path, template: Path) -> Path:
    """A data folder with an empty database."""
    folder = tmp_path / "home"
    (folder / "run").mkdir(parents=True, mode=0o700)
    shutil.copy(template, folder / "gapless.db")
    return folder


@pytest.fixture
def configuration(home: Path) -> Configuration:
    return load(home=home, environment={}, flags={"chroma": "off"})


@pytest.fixture
async def core(configuration: Configuration) -> AsyncIterator[Core]:
    opened = Core.open(configuration)
    yield opened
    await opened.close()


async def until(condition: Callable[[], Awaitable[bool]], *, within_s: float = DEADLINE_S) -> None:
    """Wait for a condition to become true; fails when it does not in time."""
    deadline = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < deadline, f"not so within {within_s} s"
        await asyncio.sleep(0.01)


@pytest.fixture
def hooks_payload() -> Callable[..., dict[str, object]]:
    """Makes a PostToolUse payload; keyword arguments override its fields."""
    count = 0

    def make(**fields: object) -> dict[str, object]:
        nonlocal count
        count += 1
        return {
            "hook_event_name": "PostToolUse",
            "session_id": "s1",
            "cwd": "/nowhere/shop",
            "tool_name": "Bash",
            "tool_use_id": f"toolu_{count}",
            "tool_input": {"command": "make build"},
            "tool_response": {"stdout": f"built {count}", "stderr": ""},
            **fields,
        }

    return make
