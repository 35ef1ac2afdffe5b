"""What every test here has: a folder to work in that is a project of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.edge.conftest import working as working  # noqa: PLC0414 - the fixture, over this folder's service
from tests.edge.edge_service import Service, running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "boathouse"
    project.mkdir()
    return project


@pytest.fixture
async def service(home: Path) -> AsyncIterator[Service]:
    async with running(home, chroma="off") as service:
        yield service
