from collections.abc import Callable

import pytest

from service.core import Core
from tests.memories.stated import Stated
from tests.store.desk import Desk


@pytest.fixture
def desk(core: Core, hooks_payload: Callable[..., dict[str, object]]) -> Desk:
    return Desk(core, hooks_payload)


@pytest.fixture
def stated(core: Core) -> Stated:
    return Stated(core)
