"""A Chroma server instead of Chroma in the data folder: the real `chroma run`."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from service.vectors.client import ChildVectors
from service.vectors.protocol import VectorsUnavailable
from tests.vectors.vector_store import document, in_the_end, store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unmeasured")]

Connect = Callable[..., ChildVectors]
START_S = 60
REPLACE = """
import sys
import chromadb
from chromadb.config import Settings

port, harm = sys.argv[1:]
client = chromadb.HttpClient("127.0.0.1", int(port), settings=Settings(anonymized_telemetry=False))
(ours,) = client.list_collections()
client.delete_collection(ours.name)
if harm != "gone":
    metadata = dict(ours.metadata) if harm == "dimension" else {"owner": "somebody"}
    other = client.create_collection(ours.name, embedding_function=None, metadata=metadata)
    other.upsert(ids=["a"], embeddings=[[0.5] * (3 if harm == "dimension" else 384)], metadatas=[{"x": 1}])
"""


@dataclass
class Server:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        chroma = str(Path(sys.executable).with_name("chroma"))
        command = [chroma, "run", "--path", str(self.folder), "--host", "127.0.0.1"]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(URLError, OSError), urlopen(f"{self.url}/api/v2/heartbeat", timeout=1):
                return
            time.sleep(0.05)
        pytest.fail("chroma run does not answer")

    def send(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def replace_collection(self, harm: str) -> None:
        """In a process of its own: Chroma's client leaves its connections open."""
        subprocess.run([sys.executable, "-c", REPLACE, str(self.port), harm], check=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = Server(tmp_path / "server", port)
    running.start()
    yield running
    running.stop()


async def test_documents_live_on_the_server(home: Path, server: Server, connect: Connect) -> None:
    vectors = connect(server.url)
    store(home, [document(1)])
    assert await vectors.upsert([document(1), document(2)]) == {}
    await vectors.delete(["obs_2_narrative"])
    state = await vectors.state()
    assert state.documents == 1
    found = await vectors.nearest("x", doc_types=("observation",), project=None, limit=2)
    assert [neighbour.record_id for neighbour in found] == [1]
    await vectors.close()
    assert await connect(server.url).state() == state
    assert not (home / "chroma" / "chroma.sqlite3").exists()


async def test_two_data_folders_on_one_server_do_not_meet(
    home: Path, tmp_path: Path, server: Server, connect: Connect
) -> None:
    other_home = tmp_path / "other"
    (other_home / "run").mkdir(parents=True)
    (other_home / "gapless.db").write_bytes((home / "gapless.db").read_bytes())
    one, other = connect(server.url), connect(server.url, home=other_home)
    await one.upsert([document(1)])
    assert (await other.state()).documents == 0
    await other.drop()
    assert (await one.state()).documents == 1


async def test_a_server_that_is_not_there_is_said_and_taken_up_when_it_comes(
    home: Path, server: Server, connect: Connect
) -> None:
    server.stop()
    vectors = connect(server.url)
    with pytest.raises(VectorsUnavailable, match=rf"Chroma server at {server.url}"):
        await vectors.state()
    store(home, [document(1)])
    found = await vectors.nearest("x", doc_types=("observation",), project=None, limit=2)
    assert [neighbour.record_id for neighbour in found] == [1]
    server.start()
    await in_the_end(vectors, documents=0)


async def test_a_server_that_goes_and_comes_back_keeps_the_index(server: Server, connect: Connect) -> None:
    vectors = connect(server.url)
    await vectors.upsert([document(1)])
    before = await vectors.state()
    server.stop()
    with pytest.raises(VectorsUnavailable, match="Chroma server"):
        await vectors.upsert([document(2)])
    server.start()
    await in_the_end(vectors, documents=1)
    assert await vectors.state() == before


async def test_a_server_that_hangs_is_said_and_searches_go_on(home: Path, server: Server, connect: Connect) -> None:
    vectors = connect(server.url)
    await vectors.upsert([document(1)])
    store(home, [document(1)])
    server.send(signal.SIGSTOP)
    try:
        writing = asyncio.ensure_future(vectors.upsert([document(2)]))
        found = await vectors.nearest("x", doc_types=("observation",), project=None, limit=2)
        assert [neighbour.record_id for neighbour in found] == [1]
        with pytest.raises(VectorsUnavailable, match="Chroma server"):
            await writing
    finally:
        server.send(signal.SIGCONT)
    await in_the_end(vectors)
    assert await vectors.upsert([document(2)]) == {}
    assert (await vectors.state()).documents == 2


@pytest.mark.parametrize("harm", ["dimension", "stranger", "gone"])
async def test_a_collection_of_our_name_that_is_not_ours_is_replaced(
    home: Path, server: Server, connect: Connect, harm: str
) -> None:
    vectors = connect(server.url)
    await vectors.upsert([document(1)])
    before = await vectors.state()
    await asyncio.to_thread(server.replace_collection, harm)
    await in_the_end(vectors, documents=0)
    assert (await vectors.state()).index_id != before.index_id
    assert await vectors.upsert([document(1)]) == {}


async def test_another_server_at_the_address_is_said(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(30)
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        vectors = connect(url)
        with pytest.raises(VectorsUnavailable, match="Chroma server at"):
            await vectors.state()
