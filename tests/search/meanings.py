"""An index of meanings for tests: the real model, and a dot product with everything that a memory holds."""

from collections.abc import Sequence

import numpy as np

from service.database import Database
from service.vectors.embedder import Embedder
from service.vectors.protocol import Neighbour

RECORDS = {
    "observation": "SELECT id, project, title || char(10) || narrative AS text FROM observations",
    "session_summary": "SELECT id, project, request || char(10) || completed AS text FROM session_summaries",
    "user_prompt": "SELECT id, project, text FROM user_prompts",
}


class Meanings:
    """Implements `Nearest`. `read` first, and again when the memory has changed."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._records: list[tuple[str, int, str]] = []
        self._vectors = np.zeros((0, 0), np.float32)

    async def read(self, database: Database) -> None:
        self._records, texts = [], []
        for doc_type, sql in RECORDS.items():
            for row in await database.read(lambda reader: reader.all(sql)):  # noqa: B023 - awaited here
                self._records.append((doc_type, row["id"], row["project"]))
                texts.append(row["text"])
        self._vectors = np.stack([np.frombuffer(vector, "<f4") for vector in self._embedder.embed(texts)])

    async def nearest(self, text: str, *, doc_types: Sequence[str], project: str | None, limit: int) -> list[Neighbour]:
        (vector,) = self._embedder.embed([text.encode("utf-8", "replace").decode()])
        cosines = self._vectors @ np.frombuffer(vector, "<f4")
        found = [
            Neighbour(doc_type=doc_type, record_id=row_id, similarity=float(cosine))
            for (doc_type, row_id, where), cosine in zip(self._records, cosines, strict=True)
            if doc_type in doc_types and project in (None, where)
        ]
        return sorted(found, key=lambda one: -one.similarity)[:limit]
