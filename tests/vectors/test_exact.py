"""Exact nearness over the stored vectors."""

from pathlib import Path

import numpy as np
import pytest

from service.vectors import exact
from service.vectors.embedder import VECTOR_BYTES
from service.vectors.exact import DOC_TYPES, StoredVectors
from service.vectors.protocol import Neighbour, VectorsUnavailable
from tests.vectors.vector_store import change, document, random_vector, store


def mixed(*names: str) -> bytes:
    """The direction between several named vectors."""
    total = np.sum([np.frombuffer(random_vector(name), "<f4") for name in names], axis=0)
    return bytes((total / np.linalg.norm(total)).astype("<f4").tobytes())


def near(
    stored: StoredVectors,
    name: str,
    *,
    project: str | None = None,
    doc_types: tuple[str, ...] = DOC_TYPES,
    limit: int = 5,
) -> list[Neighbour]:
    vector = np.frombuffer(random_vector(name), "<f4")
    return stored.nearest(vector, doc_types=doc_types, project=project, limit=limit, stamp=stored.stamp(project))


def ids(found: list[Neighbour]) -> list[int]:
    return [neighbour.record_id for neighbour in found]


@pytest.fixture
def stored(home: Path) -> StoredVectors:
    return StoredVectors(home / "gapless.db")


def test_a_record_counts_once_by_its_best_document(home: Path, stored: StoredVectors) -> None:
    store(home, [document(1), document(1, "fact_0", vector=random_vector("q")), document(1, "fact_1"), document(2)])
    first, second = near(stored, "q")
    assert (first.record_id, second.record_id) == (1, 2)
    assert first.similarity == pytest.approx(1, abs=1e-6)


def test_many_facts_of_one_record_do_not_push_others_out(home: Path, stored: StoredVectors) -> None:
    crowd = [document(1, f"fact_{i}", vector=mixed("q", "q", f"x{i}")) for i in range(8)]
    store(home, [*crowd, document(1), document(2, vector=mixed("q", "y", "z"))])
    assert ids(near(stored, "q", limit=2)) == [1, 2]


def test_only_the_project_and_the_kinds_that_are_asked_for(home: Path, stored: StoredVectors) -> None:
    store(home, [document(1), document(2, project="bank"), document(3, doc_type="user_prompt")])
    assert set(ids(near(stored, "q", project="shop"))) == {1, 3}
    assert ids(near(stored, "q", project="shop", doc_types=("observation",))) == [1]
    assert ids(near(stored, "q", project="bank")) == [2]
    assert near(stored, "q", project="nobody") == []
    assert near(stored, "q", doc_types=("session_summary",)) == []


def test_what_changes_in_the_table_changes_the_answer(home: Path, stored: StoredVectors) -> None:
    store(home, [document(1), document(2)])
    near(stored, "q", project="shop")
    store(home, [document(2, vector=random_vector("q"))])
    assert near(stored, "q", project="shop")[0].similarity == pytest.approx(1, abs=1e-6)
    store(home, [document(3, vector=mixed("q", "r"))])
    assert ids(near(stored, "q", project="shop"))[:2] == [2, 3]
    change(home, "DELETE FROM embeddings WHERE record_id = 2")
    assert ids(near(stored, "q", project="shop")) == [3, 1]
    change(home, "UPDATE embeddings SET project = 'bank' WHERE record_id = 3")
    assert ids(near(stored, "q", project="shop")) == [1]


def test_vectors_of_another_model_are_not_compared(home: Path, stored: StoredVectors) -> None:
    store(home, [document(1)], model="older")
    store(home, [document(2)])
    assert ids(near(stored, "q")) == [2]


def test_a_large_project_is_searched_piece_by_piece(
    home: Path, stored: StoredVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, [document(i) for i in range(1, 300)] + [document(300, vector=random_vector("q"))])
    whole = near(stored, "q", project="shop", limit=20)
    monkeypatch.setattr(exact, "EXACT_DOCUMENTS", 100)
    monkeypatch.setattr(exact, "CHUNK", 64)
    assert not stored.stamp("shop").is_small
    in_pieces = near(stored, "q", project="shop", limit=20)
    assert ids(in_pieces) == ids(whole)
    assert in_pieces[0].record_id == 300


def test_memory_for_projects_is_bounded(home: Path, stored: StoredVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "CACHE_BYTES", 20 * VECTOR_BYTES)
    for number in range(10):
        store(home, [document(number * 10 + i, project=f"p{number}") for i in range(8)])
        assert len(near(stored, "q", project=f"p{number}", limit=20)) == 8
    assert sum(matrix.vectors.nbytes for _, matrix in stored._cache.values()) <= exact.CACHE_BYTES


def test_a_database_that_cannot_be_read_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(VectorsUnavailable, match="can't be read"):
        StoredVectors(tmp_path / "none.db").stamp(None)
