from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.core import Core
from tests.context.notebook import Notebook
from tests.edge.edge_service import Service, running


@pytest.fixture
def notebook(core: Core) -> Notebook:
    return Notebook(core)


@pytest.fixture
async def service(home: Path) -> AsyncIterator[Service]:
    async with running(home, chroma="off", semantic_inject="on", file_inject="on") as service:
        yield service
