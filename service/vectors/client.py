"""Asks the vector process of a data folder, and starts it when nobody else has."""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, cast

from service.settings import Configuration
from service.vectors import frames
from service.vectors.address import reachable
from service.vectors.child import Child, ChildStatus
from service.vectors.embedder import CHARACTERS_MAX, VECTOR_BYTES
from service.vectors.protocol import Document, IndexState, Neighbour, VectorsUnavailable

NEAREST_S = 1.0
"""A search has keywords as well and does not wait longer."""
WORK_S = 120.0
"""Opening 300,000 vectors takes 4 s, a batch of embeddings or documents 1 to 10 s, all of it more on a busy machine."""
LATE_ANSWERS_MAX = 10
"""After so many searches in a row without an answer the process hangs, however busy it may be."""
LOOK_AGAIN_S = 0.02


class ChildVectors:
    """Implements `Vectors`. Not for CHROMA=off. Close it: the process it started ends with it. `starts`: whether it may
    start one, which is too slow for a command that asks once."""

    def __init__(self, configuration: Configuration, *, starts: bool = True) -> None:
        self._starts = starts
        self._home = configuration.home
        self._socket = configuration.run / "vectors.sock"
        self._child = Child(configuration.home, configuration.settings.chroma)
        self._link: Link | None = None
        self._linking = asyncio.Lock()
        self._late_answers = 0

    async def nearest(self, text: str, *, doc_types: Sequence[str], project: str | None, limit: int) -> list[Neighbour]:
        if self._link is None and not (self._home / "chroma").exists():
            raise VectorsUnavailable("nothing is indexed by meaning yet")
        request = {"text": _readable(text), "doc_types": list(doc_types), "project": project, "limit": limit}
        answer, _ = await self._ask("nearest", request, within_s=NEAREST_S)
        return [
            Neighbour(doc_type=doc_type, record_id=record_id, similarity=similarity)
            for doc_type, record_id, similarity in answer["found"]
        ]

    async def state(self) -> IndexState:
        answer, _ = await self._ask("state", {})
        return IndexState(index_id=answer["index_id"], model=answer["model"], documents=answer["documents"])

    async def embed(self, texts: Sequence[str]) -> list[bytes | str]:
        answer, blob = await self._ask("embed", {"texts": [_readable(text) for text in texts]})
        vectors = _cut(blob)
        return [answer["failed"].get(str(i)) or next(vectors) for i in range(len(texts))]

    async def upsert(self, documents: Sequence[Document]) -> dict[str, str]:
        refused = {d.doc_id: "the vector has a wrong length" for d in documents if len(d.vector) != VECTOR_BYTES}
        good = [document for document in documents if document.doc_id not in refused]
        header = {"documents": [_fields(document) for document in good]}
        answer, _ = await self._ask("upsert", header, b"".join(document.vector for document in good))
        refused.update(answer["refused"])
        return refused

    async def delete(self, doc_ids: Sequence[str]) -> None:
        await self._ask("delete", {"doc_ids": list(doc_ids)})

    async def drop(self) -> None:
        await self._ask("drop", {})

    async def close(self) -> None:
        async with self._linking:
            if self._link is not None:
                self._link.close()
            await asyncio.to_thread(self._child.end)

    def status(self) -> ChildStatus:
        """Of the process, as far as this one started it; what is wrong with the index its answers say."""
        return self._child.status()

    async def _ask(
        self, operation: str, header: dict[str, Any], blob: bytes = b"", *, within_s: float = WORK_S
    ) -> frames.Frame:
        try:
            async with asyncio.timeout(within_s):
                link = await self._linked()
                answer, vectors = await link.ask({"do": operation, **header}, blob)
        except TimeoutError:
            await self._note_late(operation)
            raise VectorsUnavailable(
                f"the vector process did not answer within {within_s:g} s: it is starting, busy or stuck"
            ) from None
        self._late_answers = 0
        if "unavailable" in answer:
            raise VectorsUnavailable(answer["unavailable"])
        return answer, vectors

    async def _note_late(self, operation: str) -> None:
        """A process that hangs is ended; only ours is ours to end."""
        self._late_answers += 1
        if operation != "nearest" or self._late_answers >= LATE_ANSWERS_MAX:
            await asyncio.to_thread(self._child.kill, f"did not answer ({operation}) and was ended")
            self._late_answers = 0

    async def _linked(self) -> "Link":
        async with self._linking:
            while self._link is None or self._link.is_closed:
                self._link = await self._connected()
                if self._link is None:
                    if not self._starts:
                        raise VectorsUnavailable(
                            "no process serves vectors; `gapless up` starts the service, which does"
                        )
                    await asyncio.to_thread(self._child.start)
                    await asyncio.sleep(LOOK_AGAIN_S)
            return self._link

    async def _connected(self) -> "Link | None":
        """A connection to whoever listens, if anybody does."""
        if not hasattr(socket, "AF_UNIX"):
            raise VectorsUnavailable("the vector index needs a system with Unix sockets")
        try:
            with reachable(self._socket) as address:
                _, link = await asyncio.get_running_loop().create_unix_connection(Link, address)
        except (FileNotFoundError, ConnectionError):
            return None
        return link


class Link(asyncio.Protocol):
    """A connection on which many questions wait for their answers."""

    def __init__(self) -> None:
        self.is_closed = False
        self._unpacker = frames.Unpacker()
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[frames.Frame]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its type

    async def ask(self, header: dict[str, Any], blob: bytes) -> frames.Frame:
        number = next(self._numbers)
        answer: asyncio.Future[frames.Frame] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._transport.write(frames.pack({"id": number, **header}, blob))
            return await answer
        finally:
            del self._waiting[number]

    def data_received(self, data: bytes) -> None:
        try:
            for header, blob in self._unpacker.feed(data):
                waiting = self._waiting.get(header["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result((header, blob))
        except ValueError:
            self._transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        self.is_closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(VectorsUnavailable("the vector process ended; it is started again"))

    def close(self) -> None:
        self._transport.close()


def _readable(text: str) -> str:
    """What the embedder can take: no lone surrogates, not more than it reads."""
    return text[:CHARACTERS_MAX].encode("utf-8", "replace").decode()


def _fields(document: Document) -> dict[str, Any]:
    return {
        "doc_id": document.doc_id,
        "doc_type": document.doc_type,
        "record_id": document.record_id,
        "project": document.project,
        "type": document.type,
        "created_at_epoch": document.created_at_epoch,
    }


def _cut(blob: bytes) -> Iterator[bytes]:
    return (blob[start : start + VECTOR_BYTES] for start in range(0, len(blob), VECTOR_BYTES))
