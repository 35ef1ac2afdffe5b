"""What the rest of Gapless knows of a vector index, whoever owns it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.errors import GaplessError


class VectorsUnavailable(GaplessError):
    """Vectors can't be asked or written now; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A record near a text in meaning. `doc_type` is observation, session_summary or user_prompt; `similarity` is the
    cosine of its nearest document, at most 1."""

    doc_type: str
    record_id: int
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a record as the index holds it. `vector`: float32, little-endian, of length 1."""

    doc_id: str
    doc_type: str
    record_id: int
    project: str
    type: str
    created_at_epoch: int
    vector: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """`index_id` names the very index that is open (a new or foreign folder has another), `documents` it holds."""

    index_id: str
    model: str
    documents: int


class Nearest(Protocol):
    """For search: records near a text."""

    async def nearest(self, text: str, *, doc_types: Sequence[str], project: str | None, limit: int) -> list[Neighbour]:
        """The nearest records, each once, best first. Raises `VectorsUnavailable`, within about a second."""


class Vectors(Nearest, Protocol):
    """For the backfill: everything that makes and keeps the index. All raise `VectorsUnavailable` when it is away."""

    async def state(self) -> IndexState:
        """Opens the index if need be; a damaged one is dropped and made new, empty, under a new `index_id`."""

    async def embed(self, texts: Sequence[str]) -> list[bytes | str]:
        """A vector for each text, or what went wrong with that one, in words."""

    async def upsert(self, documents: Sequence[Document]) -> dict[str, str]:
        """Put documents in; those that were refused by id, with the reason."""

    async def delete(self, doc_ids: Sequence[str]) -> None:
        """Take documents out; an id that is not there is no error."""

    async def drop(self) -> None:
        """Throw the index away and make it new, empty, under a new `index_id`."""

    async def close(self) -> None: ...
