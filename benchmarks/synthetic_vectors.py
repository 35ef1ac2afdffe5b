"""Vectors for every document of a generated store without embedding each: noise around texts that were embedded.

Centers are made by the real model from texts of the store, so that the vector of a real question is as near to them as
to real documents; a session's documents lie around one center.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service import documents, fulltext, watermarks
from service.database import Database, open_writable
from service.embeddings import STORE
from service.vectors.embedder import DIMENSION, MODEL, Embedder

CENTERS = 400
NOISE = 0.8
"""Its length; the center's is 1. Two documents of a session have a cosine of about 0.6."""
AT_ONCE = 1_000
TEXTS = "SELECT title || ' ' || substr(narrative, 1, 200) FROM observations ORDER BY id * 2654435761 % 1000003 LIMIT ?"


def store(path: Path, *, seed: int = 1) -> int:
    """Store a vector for every document of the database at `path`; how many there are."""
    return asyncio.run(_store(path, seed=seed))


async def _store(path: Path, *, seed: int) -> int:
    numbers = np.random.default_rng(seed)
    count = 0
    connection = open_writable(path)
    connection.execute("PRAGMA synchronous = OFF")
    centers = _centers(connection)
    connection.execute("BEGIN")
    async for passages in _passages(path):
        near = centers[[passage.change.record_id // 25 % CENTERS for passage in passages]]
        vectors = near + numbers.standard_normal((len(passages), DIMENSION)) * (NOISE / DIMENSION**0.5)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        connection.executemany(STORE, map(_row, passages, vectors.astype("<f4")))
        count += len(passages)
    connection.execute("COMMIT")
    connection.close()
    return count


def _centers(connection: sqlite3.Connection) -> NDArray[np.float64]:
    texts = [text for (text,) in connection.execute(TEXTS, (CENTERS,))]
    return np.frombuffer(b"".join(Embedder().embed(texts)), "<f4").reshape(-1, DIMENSION).astype(np.float64)


async def _passages(path: Path) -> AsyncIterator[Sequence[documents.Passage]]:
    database = Database.open(path, repair_index=fulltext.repair)
    mark = 0
    while changes := await database.read(partial(watermarks.above, seq=mark, limit=AT_ONCE)):
        mark = changes[-1].seq
        found = await database.read(partial(documents.passages, changes=changes))
        yield [passage for passages in found.values() for passage in passages]
    await database.close()


def _row(passage: documents.Passage, vector: NDArray[np.float32]) -> dict[str, object]:
    return {
        "doc_type": passage.change.doc_type,
        "record_id": passage.change.record_id,
        "part": passage.part,
        "project": passage.project,
        "model": MODEL,
        "text_hash": passage.text_hash,
        "vector": vector.tobytes(),
    }
