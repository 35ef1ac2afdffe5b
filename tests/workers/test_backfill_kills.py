"""The real workers on the real Chroma, killed again and again: the index is whole afterwards."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import backfill

DAMAGES = {
    "a vector that is not stored": "DELETE FROM embeddings WHERE id = (SELECT min(id) FROM embeddings)",
    "an orphan": "DELETE FROM observations WHERE id = 1",
    "an edit that was not followed": "UPDATE observations SET title = 'changed' WHERE id = 1",
    "a gap": "INSERT INTO gaps VALUES ('observation', 1, 1, '', NULL, 0)",
}


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unmeasured")]


@pytest.fixture(scope="module")
def weathered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], dict[str, object]]:
    """A data folder after six deaths, what is wrong with it, and figures."""
    home = tmp_path_factory.mktemp("storm") / "home"
    home.mkdir(mode=0o700)
    backfill.build(home, 80, seed=1)
    return home, *backfill.storm(home, kills=6, seed=1)


@pytest.mark.timeout(300)
def test_an_index_whose_makers_are_killed_six_times_is_whole(
    weathered: tuple[Path, list[str], dict[str, object]],
) -> None:
    _, found, figures = weathered
    assert found == [], figures
    assert figures["workers killed"], "no workers died"
    assert figures["vector process killed"], "no vector process died"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_comparison_sees_every_kind_of_damage(
    weathered: tuple[Path, list[str], dict[str, object]], damage: str
) -> None:
    home = weathered[0]
    before = (home / "gapless.db").read_bytes()
    try:
        with closing(sqlite3.connect(home / "gapless.db")) as connection:
            connection.execute(DAMAGES[damage])
            connection.commit()
        assert list(backfill.differences(home))
    finally:
        (home / "gapless.db").write_bytes(before)
