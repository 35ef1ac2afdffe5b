"""A vector process of its own for a test, and the ways to look at it from outside."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from service.settings import Configuration, load
from service.vectors import child
from service.vectors.client import ChildVectors
from service.vectors.embedder import Embedder


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that died is started again at once."""
    monkeypatch.setattr(child, "FIRST_WAIT_S", 0.1)


@pytest.fixture
def configuration(home: Path) -> Configuration:
    return load(home=home, environment={})


@pytest.fixture
async def connect(configuration: Configuration) -> AsyncIterator[Callable[..., ChildVectors]]:
    """Makes clients as separate processes of the data folder would; `chroma` is the setting."""
    opened = []

    def make(chroma: str = "embedded", home: Path = configuration.home) -> ChildVectors:
        settings = load(home=home, environment={}, flags={"chroma": chroma})
        opened.append(ChildVectors(settings))
        return opened[-1]

    yield make
    for vectors in opened:
        await vectors.close()


@pytest.fixture
async def vectors(connect: Callable[..., ChildVectors]) -> ChildVectors:
    return connect()


@pytest.fixture
def deep_home(home: Path, tmp_path: Path) -> Path:
    """The data folder under a path that no socket address holds."""
    deep = tmp_path / ("long " * 12) / ("é" * 30) / "home"
    deep.parent.mkdir(parents=True)
    return home.rename(deep)


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return Embedder()
