"""The vectors themselves: the table `embeddings`, of which the vector index is a copy that can be made anew."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from service.database import Reader, Tx
from service.documents import Passage, doc_id
from service.watermarks import Change

OF_RECORDS = """
SELECT record_id, part, text_hash, vector FROM embeddings
WHERE doc_type = :doc_type AND record_id IN (SELECT value FROM json_each(:ids)) AND model = :model
"""
STORE = """
INSERT OR REPLACE INTO embeddings (doc_type, record_id, part, project, model, text_hash, vector)
VALUES (:doc_type, :record_id, :part, :project, :model, :text_hash, :vector)
"""
"""Never in place: who keeps vectors in memory sees by the ids which are new."""
KEEP = """
DELETE FROM embeddings WHERE doc_type = :doc_type AND record_id = :record_id
    AND part NOT IN (SELECT value FROM json_each(:parts))
"""
MOVE = """
UPDATE embeddings SET project = :project
WHERE doc_type = :doc_type AND record_id = :record_id AND project <> :project
"""
COUNT = """
SELECT (SELECT count(*) FROM embeddings) AS held,
    (SELECT count(*) FROM gaps JOIN embeddings USING (doc_type, record_id)) AS doubtful
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A stored vector and the text it was made from."""

    text_hash: str
    vector: bytes


def held(reader: Reader, changes: Iterable[Change], *, model: str) -> dict[str, Held]:
    """What this model made of the records, by document id."""
    ids: dict[str, list[int]] = defaultdict(list)
    for change in changes:
        ids[change.doc_type].append(change.record_id)
    return {
        doc_id(doc_type, row["record_id"], row["part"]): Held(text_hash=row["text_hash"], vector=row["vector"])
        for doc_type, record_ids in ids.items()
        for row in reader.all(OF_RECORDS, {"doc_type": doc_type, "ids": json.dumps(record_ids), "model": model})
    }


def count(reader: Reader) -> tuple[int, int]:
    """The least and the most documents that an index at rest holds: of a record with a gap it may hold some."""
    row = reader.one(COUNT)
    assert row is not None  # it counts
    return row["held"] - row["doubtful"], row["held"]


def store(tx: Tx, passage: Passage, vector: bytes, *, model: str) -> None:
    tx.run(
        STORE,
        {
            "doc_type": passage.change.doc_type,
            "record_id": passage.change.record_id,
            "part": passage.part,
            "project": passage.project,
            "model": model,
            "text_hash": passage.text_hash,
            "vector": vector,
        },
    )


def keep(tx: Tx, change: Change, passages: Iterable[Passage]) -> None:
    """Of a record's vectors only those of these passages, in the project they are in now."""
    record = {"doc_type": change.doc_type, "record_id": change.record_id}
    projects = {passage.part: passage.project for passage in passages}
    tx.run(KEEP, {**record, "parts": json.dumps(list(projects))})
    for project in set(projects.values()):
        tx.run(MOVE, {**record, "project": project})
