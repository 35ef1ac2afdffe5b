"""The list of tools that the service leaves in the data folder."""

from pathlib import Path

import pytest

from service.edge.tools import TOOLS
from service.mcp import catalogue


def kept(home: Path, text: str) -> Path:
    (home / "run").mkdir()
    (home / "run" / catalogue.NAME).write_text(text)
    return home


def test_the_list_that_was_left_is_the_list_of_the_tools(tmp_path: Path) -> None:
    tools = [tool.listed for tool in TOOLS.values()]
    assert catalogue.read(kept(tmp_path, catalogue.written(tools))) == tools


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"version": "0.0.1", "tools": [{"name": "old"}]}', catalogue.written([])]
)
def test_a_list_that_is_cut_or_of_another_version_is_none(tmp_path: Path, text: str) -> None:
    assert catalogue.read(kept(tmp_path, text)) is None


def test_where_no_service_ever_ran_there_is_none(tmp_path: Path) -> None:
    assert catalogue.read(tmp_path) is None
