from collections.abc import Callable

import pytest

from service.core import Core
from tests.store.desk import Desk
from tests.workers.backfill_bench import Bench
from tests.workers.memory_index import MemoryVectors


@pytest.fixture
def desk(core: Core, hooks_payload: Callable[..., dict[str, object]]) -> Desk:
    return Desk(core, hooks_payload)


@pytest.fixture
def bench(core: Core) -> Bench:
    return Bench(core, MemoryVectors())
