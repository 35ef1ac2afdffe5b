"""What the vector process does when it is asked: embed, search, and keep the index. Everything here blocks."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

from service.vectors.embedder import VECTOR_BYTES, Embedder
from service.vectors.exact import Record, StoredVectors, as_neighbour, best_of
from service.vectors.frames import Frame
from service.vectors.protocol import Document, Neighbour, VectorsUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from service.vectors.chroma_index import ChromaIndex

FETCH = 300
"""Documents asked of Chroma at first: 4 ms against 2 for the best 20, and most filters are satisfied."""
FETCH_MORE = 2000
ENOUGH = 50
"""Records of a large store, however many were asked for. What Chroma finds of a project is the project's nearest, only
cut short, and what would come after so many says little; looking for it takes up to half a second in a project of
66,000 documents."""
KINDS = {"obs": "observation", "summary": "session_summary", "prompt": "user_prompt"}


class Desk:
    def __init__(self, index: "ChromaIndex", stored: StoredVectors, *, loading: Executor, embedding: Executor) -> None:
        self._index = index
        self._stored = stored
        self._embedding = embedding
        self._embedder: Future[Embedder] = loading.submit(Embedder)

    def answer(self, header: dict[str, Any], blob: bytes) -> Frame:
        """Raises `VectorsUnavailable`.

        Everything waits for the embedder: libraries that several threads import at once meet each other half-made.
        """
        self._loaded()
        operations: dict[str, Callable[[dict[str, Any], bytes], Frame]] = {
            "nearest": self._nearest,
            "embed": self._embed,
            "state": self._state,
            "upsert": self._upsert,
            "delete": self._delete,
            "drop": self._drop,
        }
        return operations[header["do"]](header, blob)

    def _state(self, _: dict[str, Any], __: bytes) -> Frame:
        state = self._index.state()
        return {"index_id": state.index_id, "model": state.model, "documents": state.documents}, b""

    def _embed(self, header: dict[str, Any], _: bytes) -> Frame:
        made = self._vectors(header["texts"])
        failed = {str(i): vector for i, vector in enumerate(made) if isinstance(vector, str)}
        return {"failed": failed}, b"".join(vector for vector in made if isinstance(vector, bytes))

    def _vectors(self, texts: Sequence[str]) -> list[bytes | str]:
        """One text that can't be embedded costs the others nothing."""
        embedder = self._loaded()
        try:
            return list(embedder.embed(texts, self._embedding))
        except Exception as error:  # noqa: BLE001 - whatever the libraries raise over a text
            if len(texts) == 1:
                return [f"it can't be embedded: {error}"]
            return [vector for text in texts for vector in self._vectors([text])]

    def _loaded(self) -> Embedder:
        try:
            return self._embedder.result()
        except Exception as error:
            raise VectorsUnavailable(f"the embedding model can't be loaded ({error}); install Gapless again") from error

    def _upsert(self, header: dict[str, Any], blob: bytes) -> Frame:
        documents = [
            Document(**fields, vector=blob[i * VECTOR_BYTES : (i + 1) * VECTOR_BYTES])
            for i, fields in enumerate(header["documents"])
        ]
        return {"refused": self._index.upsert(documents)}, b""

    def _delete(self, header: dict[str, Any], _: bytes) -> Frame:
        self._index.delete(header["doc_ids"])
        return {}, b""

    def _drop(self, _: dict[str, Any], __: bytes) -> Frame:
        self._index.drop()
        return {}, b""

    def _nearest(self, header: dict[str, Any], _: bytes) -> Frame:
        import numpy as np

        vector = np.frombuffer(self._loaded().embed([header["text"]])[0], "<f4")
        found = self._near(vector, header["doc_types"], header["project"], header["limit"])
        return {"found": [[hit.doc_type, hit.record_id, hit.similarity] for hit in found]}, b""

    def _near(
        self, vector: "NDArray[np.float32]", doc_types: Collection[str], project: str | None, limit: int
    ) -> list[Neighbour]:
        """Every vector of few documents, exactly; of many, what Chroma finds among all, and what a filter leaves too
        little of, exactly again. Chroma's own filter costs 25 to 50 times an unfiltered query."""
        stamp = self._stored.stamp(project)
        if not stamp.is_small:
            for count in (FETCH, FETCH_MORE):
                found = self._fetched(vector, count, doc_types, project)
                if len(found) >= min(limit, ENOUGH):
                    return found[:limit]
            if project is None:
                return found
        return self._stored.nearest(vector, doc_types=doc_types, project=project, limit=limit, stamp=stamp)

    def _fetched(
        self, vector: "NDArray[np.float32]", count: int, doc_types: Collection[str], project: str | None
    ) -> list[Neighbour]:
        """Those of Chroma's `count` nearest that SQLite still has, of these types and in the project."""
        hits = [(score, record) for doc_id, score in self._index.query(vector, count) if (record := record_of(doc_id))]
        near: list[tuple[float, Record]] = best_of((hit for hit in hits if hit[1][0] in doc_types), count)
        there = self._stored.still_there(record for _, record in near)
        return [
            as_neighbour(score, record)
            for score, record in near
            if record in there and project in (None, there[record])
        ]


def record_of(doc_id: str) -> Record | None:
    """Whose document it is (service/documents.py makes the names); None for a name that is none of ours."""
    kind, _, rest = doc_id.partition("_")
    number = rest.partition("_")[0]
    return (KINDS[kind], int(number)) if kind in KINDS and number.isascii() and number.isdecimal() else None
