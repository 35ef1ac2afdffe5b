from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "data"
