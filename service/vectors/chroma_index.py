"""Chroma, embedded in the data folder or on a server: opened, probed, dropped when it is damaged, and made anew.

Everything blocks; only the vector process calls it. Any failure closes the index, and the next call opens and probes it
again: that tells a hiccup from damage.
"""

import contextlib
import errno
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from urllib.request import urlopen

from service import private_files
from service.vectors.embedder import DIMENSION, MODEL
from service.vectors.exact import StoredVectors
from service.vectors.protocol import Document, IndexState, VectorsUnavailable

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings
    from numpy.typing import NDArray

COLLECTION = "gapless"
CONFIGURATION = {"hnsw": {"space": "cosine", "max_neighbors": 32}}
"""With Chroma's default of 16 neighbours some documents end up with no way to them: 7 to 12 of 23,000 in four indexes
were not found by their own vectors, and none with 32, for a tenth more time to build."""
SPACE_BYTES = 32 * 1024 * 1024
"""With less free space on the disk nothing is tried: Chroma rewrites its files and breaks when one stays short."""
ENVIRONMENT = (
    "readonly",
    "read-only",
    "disk is full",
    "no space",
    "permission denied",
    "unable to open",
    "too many open",
)
"""Words of errors that a new index would meet as well."""
FAILURES_MAX = 3
"""After so many in a row, though each time the index opened well, it is damaged where the probe can't see."""
OPENINGS_MAX = 2
"""When the process died so often while opening the index, the index is dropped."""
LOST_SHARE_MAX = 0.05
"""More is damage; less may be texts that changed since, which are about to be indexed."""
SAME = 1e-3
"""Cosine distance of a vector from itself, with room for rounding."""
CONNECT_S = 5.0
REQUEST_S = 20.0
UPSERT = 1000
"""Documents of one call; Chroma refuses more than 5,461 and takes about a second for these."""


class Damaged(Exception):
    """What is there is no index of ours, or a broken one."""


class ChromaIndex:
    """`chroma` is the setting: embedded, or a server's URL. Methods raise `VectorsUnavailable`."""

    def __init__(self, home: Path, chroma: str, stored: StoredVectors, *, anew: bool = False) -> None:
        self._home = home
        self._folder = home / "chroma"
        self._stored = stored
        self._url = None if chroma == "embedded" else chroma
        self._lock = threading.RLock()
        self._client: ClientAPI | None = None
        self._collection: Collection | None = None
        torn = self._url is None and _is_torn(self._folder)
        self._failures = FAILURES_MAX if anew or torn else 0
        self._opening = home / "run" / "vectors.opening"
        self.documents = 0

    def leave(self) -> None:
        """An orderly end, also in the middle of opening, says nothing against the index."""
        self._opening.unlink(missing_ok=True)

    def state(self) -> IndexState:
        collection = self._opened()
        with self._guarded():
            self.documents = collection.count()
        return IndexState(index_id=_index_id(collection), model=MODEL, documents=self.documents)

    def upsert(self, documents: Sequence[Document]) -> dict[str, str]:
        """Put in what can be put in; the others by id, with the reason."""
        import numpy as np

        by_id = {document.doc_id: document for document in documents}
        matrix = {doc_id: np.frombuffer(document.vector, "<f4") for doc_id, document in by_id.items()}
        refused = {doc_id: reason for doc_id, vector in matrix.items() if (reason := _unusable(vector))}
        good = [document for doc_id, document in by_id.items() if doc_id not in refused]
        for start in range(0, len(good), UPSERT):
            refused |= self._put(good[start : start + UPSERT], matrix)
        return refused

    def delete(self, doc_ids: Sequence[str]) -> None:
        collection = self._opened()
        with self._guarded(writes=True):
            for start in range(0, len(doc_ids), UPSERT):
                collection.delete(ids=list(doc_ids[start : start + UPSERT]))

    def drop(self) -> None:
        with self._lock, self._guarded():
            self._anew()

    def query(self, vector: "NDArray[np.float32]", count: int) -> list[tuple[str, float]]:
        """Document ids and cosines of the nearest, best first."""
        collection = self._opened()
        with self._guarded():
            found = collection.query(query_embeddings=vector.reshape(1, -1), n_results=count, include=["distances"])
        assert found["distances"] is not None  # asked for
        return [(doc_id, 1 - distance) for doc_id, distance in zip(found["ids"][0], found["distances"][0], strict=True)]

    def _put(self, documents: list[Document], matrix: "dict[str, NDArray[np.float32]]") -> dict[str, str]:
        import numpy as np
        from chromadb.errors import InvalidArgumentError

        collection = self._opened()
        with self._guarded(writes=True):
            try:
                collection.upsert(
                    ids=[document.doc_id for document in documents],
                    embeddings=np.stack([matrix[document.doc_id] for document in documents]),
                    metadatas=[_metadata(document) for document in documents],
                )
            except (InvalidArgumentError, ValueError) as error:
                if len(documents) == 1:
                    return {documents[0].doc_id: str(error)}
                half = len(documents) // 2
                return self._put(documents[:half], matrix) | self._put(documents[half:], matrix)
        return {}

    def _opened(self) -> "Collection":
        with self._lock:
            if self._collection is None:
                self._sweep()
                with self._survived() as openings:
                    if self._failures >= FAILURES_MAX or openings >= OPENINGS_MAX:
                        self._anew()
                    else:
                        try:
                            self._collection = self._open()
                        except Damaged:
                            self._anew()
            assert self._collection is not None
            return self._collection

    @contextlib.contextmanager
    def _survived(self) -> Iterator[int]:
        """How often the process died while it opened this index: Chroma's loader can take it down."""
        openings = len(self._opening.read_bytes()) if self._opening.exists() else 0
        try:
            private_files.write(self._opening, "x" * (openings + 1))
            yield openings
        except OSError as error:
            raise self._outside(error) or VectorsUnavailable(str(error)) from error
        finally:
            self.leave()

    def _open(self) -> "Collection":
        """Raises `Damaged`, or `VectorsUnavailable` when the trouble lies outside the index."""
        import numpy as np

        with self._examined():
            collection = self._connected().get_or_create_collection(
                self._name(),
                embedding_function=None,
                configuration=cast("Any", CONFIGURATION),
                metadata={"index_id": uuid.uuid4().hex, "model": MODEL},
            )
            if not _index_id(collection) or collection.metadata.get("model") != MODEL:
                raise Damaged("not an index of ours, or of another model")
            any_vector = np.eye(1, DIMENSION, dtype=np.float32)
            collection.query(query_embeddings=any_vector, n_results=1, include=["distances"])
            if collection.count():
                self._compare(collection)
            return collection

    def _compare(self, collection: "Collection") -> None:
        """With what SQLite holds: Chroma opens a cut or emptied file without a word and finds a part of what it counts.
        Raises `Damaged`."""
        if self._stored.expected_index() not in (None, _index_id(collection)):
            raise Damaged("the index of another installation")
        sample = self._stored.sample()
        held = collection.get(ids=list(sample), include=[])["ids"] if sample else []
        lost = [doc_id for doc_id in held if not _finds(collection, sample[doc_id])]
        if len(lost) > len(held) * LOST_SHARE_MAX:
            raise Damaged(f"{len(lost)} of {len(held)} documents are not found by their own vectors")

    def _anew(self) -> "Collection":
        """Drop what is there and open an empty one."""
        try:
            if self._url:
                with self._examined():
                    self._delete_collection()
            else:
                self._close()
                _set_aside(self._folder)
                self._sweep()
            self._collection = self._open()
        except Damaged as error:
            self._close()
            raise VectorsUnavailable(f"a new vector index could not be made ({error}); it is tried again") from error
        self._failures = 0
        return self._collection

    def _delete_collection(self) -> None:
        from chromadb.errors import NotFoundError

        with contextlib.suppress(NotFoundError):
            self._connected().delete_collection(self._name())

    def _connected(self) -> "ClientAPI":
        if self._client is None:
            import chromadb
            from chromadb.config import Settings

            settings = Settings(anonymized_telemetry=False)
            private_files.make_folder(self._folder)
            if self._url:
                self._client = _server_client(self._url, settings)
            else:
                _require_space(self._folder)
                self._client = chromadb.PersistentClient(str(self._folder), settings)
        return self._client

    def _name(self) -> str:
        """On a server several data folders may keep their indexes: each has a name of its own, once and for all."""
        if not self._url:
            return COLLECTION
        path = self._folder / "collection"
        if not path.exists():
            private_files.write(path, f"{COLLECTION}-{uuid.uuid4().hex[:12]}")
        return path.read_text(encoding="utf-8").strip()

    @contextlib.contextmanager
    def _examined(self) -> Iterator[None]:
        """What fails here is damage, unless a new index would fail in the same way."""
        try:
            yield
        except (Damaged, VectorsUnavailable):
            self._close()
            raise
        except BaseException as error:  # Chroma's Rust part panics with one that is no Exception
            self._close()
            if (outside := self._outside(error)) is not None:
                self._failures += 1
                raise outside from error
            raise Damaged(str(error)) from error

    @contextlib.contextmanager
    def _guarded(self, *, writes: bool = False) -> Iterator[None]:
        try:
            yield
        except VectorsUnavailable:
            raise
        except BaseException as error:  # as above
            self._close()
            self._failures += writes
            raise self._outside(error) or VectorsUnavailable(
                f"the vector index failed ({error}); it is opened and examined again"
            ) from error
        else:
            if writes:
                self._failures = 0

    def _outside(self, error: BaseException) -> VectorsUnavailable | None:
        """The error in words when its cause lies outside the index: a new one would meet it as well."""
        if self._url and self._failures < FAILURES_MAX and not _is_refusal(error):
            return VectorsUnavailable(
                f"the Chroma server at {self._url} does not answer as it should ({error}); start or correct it, "
                "the index goes on by itself"
            )
        if isinstance(error, OSError) or any(word in str(error).lower() for word in ENVIRONMENT):
            return VectorsUnavailable(
                f"the vector index in {self._folder} cannot be used ({error}); correct that, it goes on by itself"
            )
        return None

    def _close(self) -> None:
        with self._lock:
            client, self._client, self._collection = self._client, None, None
            if client is not None:
                with contextlib.suppress(Exception):  # half-open after a failure
                    client.close()  # type: ignore[attr-defined]

    def _sweep(self) -> None:
        for old in self._home.glob("chroma.dropped-*"):
            shutil.rmtree(old, ignore_errors=True)


def _finds(collection: "Collection", vector: "NDArray[np.float32]") -> bool:
    """Whether the vector is there. The search is approximate: it looks harder before it says no."""
    for count in (1, 100):
        found = collection.query(query_embeddings=vector.reshape(1, -1), n_results=count, include=["distances"])
        assert found["distances"] is not None  # asked for
        if any(distance < SAME for distance in found["distances"][0]):
            return True
    return False


def _is_torn(folder: Path) -> bool:
    """Chroma writes header.bin first and index_metadata.pickle last. Whatever ended the process in between, the index
    may open and not find some of what it holds: a few of many are too few for the comparison with SQLite."""
    pairs = ((header, header.with_name("index_metadata.pickle")) for header in folder.glob("*/header.bin"))
    return any(last.exists() and last.stat().st_mtime_ns < first.stat().st_mtime_ns for first, last in pairs)


def _index_id(collection: "Collection") -> str:
    return str((collection.metadata or {}).get("index_id", ""))


def _metadata(document: Document) -> dict[str, Any]:
    return {
        "sqlite_id": document.record_id,
        "doc_type": document.doc_type,
        "project": document.project,
        "created_at_epoch": document.created_at_epoch,
        "type": document.type,
    }


def _unusable(vector: "NDArray[np.float32]") -> str:
    """Why Chroma would refuse the vector and everything that travels with it; '' for a good one."""
    import numpy as np

    if vector.shape != (DIMENSION,):
        return f"the vector has {vector.size} numbers, not {DIMENSION}"
    return "" if np.isfinite(vector).all() else "the vector holds NaN or infinity"


def _is_refusal(error: BaseException) -> bool:
    """Whether a server answered, and said what is wrong with the collection."""
    from chromadb.errors import ChromaError, InternalError

    return isinstance(error, Damaged | ChromaError) and not isinstance(error, InternalError)


def _server_client(url: str, settings: "Settings") -> "ClientAPI":
    """Chroma's client has no time limits of its own: the server is asked first, and requests get one."""
    import chromadb

    address = urlsplit(url)
    with urlopen(f"{url.rstrip('/')}/api/v2/heartbeat", timeout=CONNECT_S) as answer:  # noqa: S310 - http, by settings
        answer.read()
    is_secure = address.scheme == "https"
    port = address.port or (443 if is_secure else 80)
    client = chromadb.HttpClient(host=address.hostname or "", port=port, ssl=is_secure, settings=settings)
    client._server._session.timeout = REQUEST_S  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
    return client


def _require_space(folder: Path) -> None:
    """Raises OSError when the folder can't be written, or hardly."""
    free = shutil.disk_usage(folder).free
    if free < SPACE_BYTES:
        raise OSError(errno.ENOSPC, f"only {free // 2**20} MB of disk are free")
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"\0")


def _set_aside(folder: Path) -> None:
    """Take a folder out of the way in one step."""
    with contextlib.suppress(FileNotFoundError):
        folder.rename(folder.with_name(f"{folder.name}.dropped-{uuid.uuid4().hex[:8]}"))
