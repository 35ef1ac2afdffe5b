"""A vector index in memory that can fail in every way the protocol knows, and then be killed on top of it."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from service.vectors.protocol import Document, IndexState, Neighbour, VectorsUnavailable

T = TypeVar("T")


class Killed(Exception):
    """The process ended here."""


def vector_of(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model} {text}".encode()).digest()


@dataclass(slots=True)
class MemoryVectors:
    """`poison` fails a text that holds it, `lethal` stops the embedder at it; `refused` are document ids; `away` and
    `embeds_nothing` are troubles of the whole. `before_call` runs before each call and may change records or raise
    `Killed`; `killed_after` names a call that kills when it has had its effect."""

    index_id: str = "index-1"
    model: str = "model-1"
    documents: dict[str, Document] = field(default_factory=dict)
    miscounts: int = 0
    embedded: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: list[str] = field(default_factory=list)
    texts_per_call: list[int] = field(default_factory=list)
    poison: str = "poison"
    lethal: str = "lethal"
    refused: set[str] = field(default_factory=set)
    away: str = ""
    embeds_nothing: bool = False
    before_call: Callable[[str], Awaitable[None]] | None = None
    killed_after: str = ""
    gate: asyncio.Event | None = None

    async def nearest(self, text: str, *, doc_types: Sequence[str], project: str | None, limit: int) -> list[Neighbour]:
        raise VectorsUnavailable("this index is for writing only")

    async def state(self) -> IndexState:
        await self._begin("state")
        return self._end(
            "state",
            IndexState(index_id=self.index_id, model=self.model, documents=len(self.documents) + self.miscounts),
        )

    async def embed(self, texts: Sequence[str]) -> list[bytes | str]:
        await self._begin("embed")
        self.texts_per_call.append(len(texts))
        if self.gate is not None:
            await self.gate.wait()
        if any(self.lethal in text for text in texts):
            raise VectorsUnavailable("the process of the index has died")
        answers = [self._embedded(text) for text in texts]
        self.embedded.update(
            (self.model, text) for text, answer in zip(texts, answers, strict=True) if isinstance(answer, bytes)
        )
        return self._end("embed", answers)

    def _embedded(self, text: str) -> bytes | str:
        if self.embeds_nothing:
            return "no memory"
        return "this text is poisoned" if self.poison in text else vector_of(self.model, text)

    async def upsert(self, documents: Sequence[Document]) -> dict[str, str]:
        await self._begin("upsert")
        self.documents |= {document.doc_id: document for document in documents if document.doc_id not in self.refused}
        refused = {d.doc_id: "this document is refused" for d in documents if d.doc_id in self.refused}
        return self._end("upsert", refused)

    async def delete(self, doc_ids: Sequence[str]) -> None:
        await self._begin("delete")
        for doc_id in doc_ids:
            self.documents.pop(doc_id, None)
        self._end("delete", None)

    async def drop(self) -> None:
        await self._begin("drop")
        self.lose()
        self._end("drop", None)

    async def close(self) -> None:
        """Nothing is held."""

    def lose(self) -> None:
        """As when the folder was removed, or damaged and made anew."""
        self.documents = {}
        self.index_id = f"index-{int(self.index_id.removeprefix('index-')) + 1}"

    async def _begin(self, call: str) -> None:
        self.calls.append(call)
        if self.before_call is not None:
            await self.before_call(call)
        if self.away:
            raise VectorsUnavailable(self.away)

    def _end(self, call: str, answer: T) -> T:
        if call == self.killed_after:
            self.killed_after = ""
            raise Killed
        return answer
