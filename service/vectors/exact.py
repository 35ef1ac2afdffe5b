"""Exact nearness: dot products over the vectors in the table `embeddings`, read beside the service, never written."""

import itertools
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from service.vectors.embedder import DIMENSION, MODEL, VECTOR_BYTES
from service.vectors.protocol import Neighbour, VectorsUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT_DOCUMENTS = 20_000
"""Up to so many documents (31 MB of vectors) a search looks at each of them, which takes a few milliseconds."""
CACHE_BYTES = 128 * 1024 * 1024
CHUNK = 4096
"""Rows that a search through a larger project holds at a time."""
DOC_TYPES = ("observation", "session_summary", "user_prompt")
DOCUMENTS_PER_RECORD = 9
"""A title with its narrative, and eight facts (semantics: Vectors)."""
NO_MATCH = -2.0
"""Below every cosine."""
BUSY_TIMEOUT_S = 1.0

STAMP = """
SELECT count(*), coalesce(max(id), 0), coalesce(sum(id), 0)
FROM (SELECT id FROM embeddings INDEXED BY embeddings_project WHERE project = :project LIMIT :limit)
"""
STAMP_OF_ALL = """
SELECT count(*), coalesce(max(id), 0), coalesce(sum(id), 0)
FROM (SELECT id FROM embeddings INDEXED BY embeddings_project LIMIT :limit)
"""
ROWS = "SELECT doc_type, record_id, vector FROM embeddings WHERE project = :project AND model = :model"
ALL_ROWS = "SELECT doc_type, record_id, vector FROM embeddings WHERE model = :model"
STILL_THERE = """
SELECT json_extract(hit.value, '$[0]'), json_extract(hit.value, '$[1]'), embeddings.project
FROM json_each(:hits) hit JOIN embeddings ON embeddings.id = (
    SELECT id FROM embeddings
    WHERE doc_type = json_extract(hit.value, '$[0]') AND record_id = json_extract(hit.value, '$[1]') LIMIT 1
)
"""
EXPECTED_INDEX = "SELECT index_id FROM watermarks WHERE name = 'vectors' AND index_id <> ''"

NEWEST = "SELECT coalesce(max(id), 0) FROM embeddings"
SAMPLE = """
SELECT doc_type, record_id, part, vector FROM embeddings
WHERE id IN (SELECT value FROM json_each(:ids)) AND model = :model
"""
SAMPLE_SPREAD = 50
SAMPLE_NEWEST = 50

Record = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Tells one state of a project's vectors from another; `documents` stops counting above `EXACT_DOCUMENTS`."""

    documents: int
    newest_id: int
    sum_of_ids: int

    @property
    def is_small(self) -> bool:
        return self.documents <= EXACT_DOCUMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Vectors row by row, and whose they are."""

    doc_types: "NDArray[np.int8]"
    record_ids: "NDArray[np.int64]"
    vectors: "NDArray[np.float32]"

    def best(self, vector: "NDArray[np.float32]", doc_types: Collection[str], limit: int) -> list[tuple[float, Record]]:
        """The nearest records of these types, each once."""
        import numpy as np

        scores = self.vectors @ vector
        wanted = [code for code, doc_type in enumerate(DOC_TYPES) if doc_type in doc_types]
        if len(wanted) < len(DOC_TYPES):
            scores[~np.isin(self.doc_types, wanted)] = NO_MATCH
        count = min(len(scores), limit * DOCUMENTS_PER_RECORD)
        rows = np.argpartition(scores, -count)[-count:] if count else np.empty(0, np.int64)
        rows = rows[np.argsort(-scores[rows])]
        return best_of(
            (
                (float(scores[row]), (DOC_TYPES[self.doc_types[row]], int(self.record_ids[row])))
                for row in rows
                if scores[row] > NO_MATCH
            ),
            limit,
        )


class StoredVectors:
    """Reads the database file; may be asked from several threads. Raises `VectorsUnavailable`."""

    def __init__(self, database: Path) -> None:
        self._uri = f"{database.as_uri()}?mode=ro"
        self._local = threading.local()
        self._lock = threading.Lock()
        self._cache: OrderedDict[str | None, tuple[Stamp, Matrix]] = OrderedDict()

    def stamp(self, project: str | None) -> Stamp:
        query = STAMP if project is not None else STAMP_OF_ALL
        ((documents, newest_id, sum_of_ids),) = self._rows(query, project=project, limit=EXACT_DOCUMENTS + 1)
        return Stamp(documents=documents, newest_id=newest_id, sum_of_ids=sum_of_ids)

    def nearest(
        self,
        vector: "NDArray[np.float32]",
        *,
        doc_types: Collection[str],
        project: str | None,
        limit: int,
        stamp: Stamp,
    ) -> list[Neighbour]:
        """Over every vector of the project, or of all; `stamp` is what `stamp()` just said of it."""
        matrices = [self._matrix(project, stamp)] if stamp.is_small else self._chunks(project)
        found: list[tuple[float, Record]] = []
        for matrix in matrices:
            found = best_of(sorted([*found, *matrix.best(vector, doc_types, limit)], reverse=True), limit)
        return [as_neighbour(score, record) for score, record in found]

    def still_there(self, records: Iterable[Record]) -> dict[Record, str]:
        """Those that have vectors, and their projects."""
        hits = orjson.dumps(list(records)).decode()
        return {(doc_type, record_id): project for doc_type, record_id, project in self._rows(STILL_THERE, hits=hits)}

    def sample(self) -> "dict[str, NDArray[np.float32]]":
        """Vectors by document id, from everywhere and of the newest."""
        import numpy as np

        from service.documents import doc_id

        ((newest,),) = self._rows(NEWEST)
        spread = range(1, newest + 1, max(newest // SAMPLE_SPREAD, 1))
        ids = orjson.dumps([*spread, *range(newest - SAMPLE_NEWEST, newest + 1)]).decode()
        rows = self._rows(SAMPLE, ids=ids, model=MODEL)
        return {doc_id(*document): np.frombuffer(vector, "<f4") for *document, vector in rows}

    def expected_index(self) -> str | None:
        """The index that the backfill's mark speaks of; None before there ever was one."""
        for (index_id,) in self._rows(EXPECTED_INDEX):
            return str(index_id)
        return None

    def _matrix(self, project: str | None, stamp: Stamp) -> Matrix:
        with self._lock:
            known = self._cache.get(project)
            if known is not None and known[0] == stamp:
                self._cache.move_to_end(project)
                return known[1]
        matrix = _as_matrix(list(self._vectors(project)))
        with self._lock:
            self._cache[project] = (stamp, matrix)
            self._cache.move_to_end(project)
            while len(self._cache) > 1 and sum(m.vectors.nbytes for _, m in self._cache.values()) > CACHE_BYTES:
                self._cache.popitem(last=False)
        return matrix

    def _chunks(self, project: str | None) -> Iterator[Matrix]:
        rows = self._vectors(project)
        while chunk := list(itertools.islice(rows, CHUNK)):
            yield _as_matrix(chunk)

    def _vectors(self, project: str | None) -> Iterator[tuple[str, int, bytes]]:
        return self._rows(ROWS if project is not None else ALL_ROWS, project=project, model=MODEL)

    def _rows(self, sql: str, **params: object) -> Iterator[Any]:
        try:
            if not hasattr(self._local, "connection"):
                self._local.connection = sqlite3.connect(self._uri, uri=True, timeout=BUSY_TIMEOUT_S)
            yield from self._local.connection.execute(sql, params)
        except sqlite3.Error as error:
            raise VectorsUnavailable(f"the vectors in the database can't be read: {error}") from error


def best_of(scored: Iterable[tuple[float, Record]], limit: int) -> list[tuple[float, Record]]:
    """Each record once, by its best document; best first, as they come."""
    best: dict[Record, float] = {}
    for score, record in scored:
        if len(best) == limit:
            break
        best.setdefault(record, score)
    return [(score, record) for record, score in best.items()]


def as_neighbour(score: float, record: Record) -> Neighbour:
    return Neighbour(doc_type=record[0], record_id=record[1], similarity=min(score, 1.0))


def _as_matrix(rows: list[tuple[str, int, bytes]]) -> Matrix:
    import numpy as np

    rows = [row for row in rows if len(row[2]) == VECTOR_BYTES]
    vectors = np.frombuffer(b"".join(row[2] for row in rows), "<f4")
    return Matrix(
        doc_types=np.array([DOC_TYPES.index(row[0]) for row in rows], np.int8),
        record_ids=np.array([row[1] for row in rows], np.int64),
        vectors=vectors.reshape(-1, DIMENSION),
    )
