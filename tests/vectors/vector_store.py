"""Rows of the table `embeddings`, the documents an index holds of them, and the process that keeps it."""

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from service.documents import doc_id
from service.vectors.client import ChildVectors
from service.vectors.embedder import DIMENSION, MODEL
from service.vectors.protocol import Document, IndexState, VectorsUnavailable
from tests.conftest import until

STORE = """
INSERT OR REPLACE INTO embeddings (doc_type, record_id, part, project, model, text_hash, vector)
VALUES (?, ?, ?, ?, ?, '', ?)
"""


def random_vector(name: str) -> bytes:
    """Of length 1, the same for the same name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    vector = np.random.default_rng(seed).normal(size=DIMENSION)
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()


def document(
    record_id: int,
    part: str = "narrative",
    *,
    project: str = "shop",
    doc_type: str = "observation",
    vector: bytes | None = None,
) -> Document:
    name = doc_id(doc_type, record_id, part)
    return Document(
        doc_id=name,
        doc_type=doc_type,
        record_id=record_id,
        project=project,
        type="change",
        created_at_epoch=1_700_000_000_000 + record_id,
        vector=random_vector(name) if vector is None else vector,
    )


def store(home: Path, documents: Iterable[Document], *, model: str = MODEL) -> None:
    rows = [(d.doc_type, d.record_id, _part(d.doc_id), d.project, model, d.vector) for d in documents]
    with closing(sqlite3.connect(home / "gapless.db")) as connection, connection:
        connection.executemany(STORE, rows)


def _part(name: str) -> str:
    return name.split("_", 2)[2] if name.count("_") > 1 else "text"


def change(home: Path, sql: str, values: Sequence[object] = ()) -> None:
    with closing(sqlite3.connect(home / "gapless.db")) as connection, connection:
        connection.execute(sql, values)


async def in_the_end(vectors: ChildVectors, *, documents: int | None = None) -> IndexState:
    """The state once it can be told."""
    told: list[IndexState] = []

    async def is_told() -> bool:
        with contextlib.suppress(VectorsUnavailable):
            told.append(await vectors.state())
        return bool(told) and documents in (None, told[-1].documents)

    await until(is_told, within_s=60)
    return told[-1]


def process_of(home: Path) -> int | None:
    """The pid of the vector process of a data folder, if one runs."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"service.vectors.process" in words and os.fsencode(home) in words:
                return int(folder.name)
    return None
