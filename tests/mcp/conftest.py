"""What every test here has: a folder to work in that is a project of its own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.edge.edge_service import Service, running
from workers.supervisor import Workers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "boathouse"
    project.mkdir()
    return project


@pytest.fixture
async def service(home: Path) -> AsyncIterator[Service]:
    async with running(home, chroma="off") as service:
        yield service


@pytest.fixture
async def working(service: Service) -> AsyncIterator[Service]:
    """The same with workers: what is posted becomes observations."""
    workers = Workers(service.edge.core, service.edge.traffic.count_completed)
    service.edge.wake = workers.wake.set
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(workers.run())
        try:
            yield service
        finally:
            workers.stop.set()
