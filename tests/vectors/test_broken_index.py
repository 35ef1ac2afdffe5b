"""Chroma broken in every way: said in words, and well again by itself when the cause is gone."""

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.settings import load
from service.vectors.client import ChildVectors
from service.vectors.protocol import IndexState, VectorsUnavailable
from tests.conftest import until
from tests.vectors.vector_store import change, document, in_the_end, process_of, store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unmeasured")]

DOCUMENTS = [document(i) for i in range(1, 1200)]
"""More than Chroma writes to its files at once."""


async def works(vectors: ChildVectors) -> None:
    """Takes documents, counts them and finds them."""
    before = (await vectors.state()).documents
    assert await vectors.upsert([document(9001), document(9002)]) == {}
    assert (await vectors.state()).documents == before + 2
    await vectors.delete(["obs_9001_narrative", "obs_9002_narrative"])


@pytest.fixture(scope="session")
def filled_home(tmp_path_factory: pytest.TempPathFactory, template: Path) -> tuple[Path, IndexState]:
    """A data folder with documents in both places, closed; copies of it are cheaper."""
    home = tmp_path_factory.mktemp("filled")
    (home / "run").mkdir()
    shutil.copy(template, home / "gapless.db")
    store(home, DOCUMENTS)

    async def fill() -> IndexState:
        vectors = ChildVectors(load(home=home, environment={}))
        await vectors.upsert(DOCUMENTS)
        state = await vectors.state()
        await vectors.close()
        return state

    return home, asyncio.run(fill())


@pytest.fixture
def filled(home: Path, filled_home: tuple[Path, IndexState]) -> IndexState:
    """The data folder has an index, of this state."""
    shutil.copytree(filled_home[0] / "chroma", home / "chroma")
    shutil.copy(filled_home[0] / "gapless.db", home / "gapless.db")
    return filled_home[1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounting = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], check=False)
    if mounting.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    for options in (["--bind", str(folder), str(folder)], ["-o", "remount,bind,ro", str(folder)]):
        if subprocess.run(["mount", *options], check=False).returncode:
            pytest.skip("needs the right to mount a folder read-only")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def segment_files(home: Path, name: str) -> list[Path]:
    return list((home / "chroma").glob(f"*/{name}"))


def left_over(home: Path) -> list[Path]:
    return list(home.glob("chroma.dropped-*"))


async def test_a_whole_index_is_opened_as_it_was(filled: IndexState, vectors: ChildVectors) -> None:
    assert filled.documents == len(DOCUMENTS)
    assert await vectors.state() == filled


async def test_an_index_whose_files_are_of_two_writings_is_made_new(
    home: Path, filled: IndexState, vectors: ChildVectors
) -> None:
    (written_first,) = segment_files(home, "header.bin")
    os.utime(written_first)
    found = await in_the_end(vectors)
    assert (found.documents, found.index_id != filled.index_id) == (0, True)


@pytest.mark.parametrize(
    ("kind", "harm"),
    [
        ("data_level0.bin", "cut"),  # opens, and finds half of what it counts
        ("data_level0.bin", "noise"),  # takes the process down
        ("header.bin", "cut"),  # as well
        ("link_lists.bin", "emptied"),  # harmless
        ("index_metadata.pickle", "cut"),  # what a kill leaves behind
        ("index_metadata.pickle", "removed"),  # opens, and finds the newest only
    ],
)
async def test_a_damaged_segment_is_dropped_and_made_new(
    home: Path, filled: IndexState, vectors: ChildVectors, kind: str, harm: str
) -> None:
    (damaged,) = segment_files(home, kind)
    spoil(damaged, harm)
    state = await in_the_end(vectors)
    assert (state == filled) is (kind == "link_lists.bin")
    assert state.documents == (len(DOCUMENTS) if state == filled else 0)
    await works(vectors)


def spoil(path: Path, harm: str) -> None:
    content = path.read_bytes()
    if harm == "removed":
        path.unlink()
    else:
        path.write_bytes({"cut": content[: len(content) // 2], "emptied": b"", "noise": os.urandom(len(content))}[harm])


@pytest.mark.parametrize("harm", ["cut", "noise", "removed", "another database"])
async def test_a_damaged_database_of_chroma_is_dropped_and_made_new(
    home: Path, filled: IndexState, vectors: ChildVectors, harm: str
) -> None:
    path = home / "chroma" / "chroma.sqlite3"
    if harm == "another database":
        path.unlink()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE collections (id)")
    else:
        spoil(path, harm)
    state = await in_the_end(vectors)
    assert state.documents == 0
    assert state.index_id != filled.index_id
    await works(vectors)
    assert not left_over(home)


async def test_a_file_where_the_folder_should_be(home: Path, vectors: ChildVectors) -> None:
    (home / "chroma").write_text("not a folder")
    assert (await in_the_end(vectors)).documents == 0
    await works(vectors)


async def test_a_folder_that_vanishes_while_it_is_in_use(home: Path, vectors: ChildVectors) -> None:
    await vectors.upsert(DOCUMENTS)
    before = await vectors.state()
    shutil.rmtree(home / "chroma")

    async def is_new() -> bool:
        with contextlib.suppress(VectorsUnavailable):
            await vectors.upsert([document(5)])
            return (await vectors.state()).index_id != before.index_id
        return False

    await until(is_new)
    await works(vectors)


@pytest.mark.parametrize("harm", ["dimension", "stranger", "model"])
async def test_a_collection_that_is_not_ours_is_replaced(
    home: Path, filled: IndexState, vectors: ChildVectors, harm: str
) -> None:
    import chromadb
    from chromadb.config import Settings

    client: Any = chromadb.PersistentClient(str(home / "chroma"), Settings(anonymized_telemetry=False))
    client.delete_collection("gapless")
    metadata = {
        "dimension": {"index_id": "mine", "model": filled.model},
        "stranger": {"owner": "somebody"},
        "model": {"index_id": filled.index_id, "model": "another"},
    }[harm]
    other = client.create_collection("gapless", embedding_function=None, metadata=metadata)
    width = 3 if harm == "dimension" else 384
    other.upsert(ids=["a"], embeddings=np.full((1, width), 0.5, np.float32), metadatas=[{"x": 1}])
    client.close()
    state = await in_the_end(vectors)
    assert (state.documents, state.model) == (0, filled.model)
    assert state.index_id not in ("mine", filled.index_id)
    await works(vectors)


async def test_the_folder_of_another_installation_is_dropped(
    home: Path, filled: IndexState, vectors: ChildVectors
) -> None:
    change(home, "INSERT INTO watermarks (name, seq, index_id, model) VALUES ('vectors', 7, 'ours', '')")
    state = await vectors.state()
    assert state.documents == 0
    assert state.index_id != filled.index_id


async def test_what_kills_the_process_at_every_opening_is_dropped(
    home: Path, filled: IndexState, vectors: ChildVectors
) -> None:
    (home / "run" / "vectors.opening").write_text("xx")
    state = await vectors.state()
    assert state.documents == 0
    assert state.index_id != filled.index_id


async def test_a_process_killed_while_opening_once_keeps_the_index(
    home: Path, filled: IndexState, vectors: ChildVectors
) -> None:
    (home / "run" / "vectors.opening").write_text("x")
    assert await vectors.state() == filled
    assert not (home / "run" / "vectors.opening").exists()


async def test_search_of_a_small_store_goes_on_without_chroma(home: Path, vectors: ChildVectors) -> None:
    await vectors.state()
    store(home, [document(1)])
    shutil.rmtree(home / "chroma")
    (home / "chroma").write_text("in the way")
    found = await vectors.nearest("x", doc_types=("observation",), project=None, limit=3)
    assert [neighbour.record_id for neighbour in found] == [1]


async def test_a_disk_that_is_full_is_said_and_the_index_goes_on_when_there_is_room(
    home: Path, small_disk: Path, vectors: ChildVectors
) -> None:
    (home / "chroma").symlink_to(small_disk)
    await vectors.upsert(DOCUMENTS)
    before = await vectors.state()
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(b"x" * 48 * 1024 * 1024)
    with pytest.raises(VectorsUnavailable):
        await vectors.upsert([document(i) for i in range(2000, 5000)])
    with pytest.raises(VectorsUnavailable, match=r"full|No space|free"):
        await vectors.upsert([document(1)])
    ballast.unlink()
    state = await in_the_end(vectors)
    assert state.index_id == before.index_id or state.documents == 0
    await works(vectors)
    await vectors.close()


async def test_a_read_only_folder_is_said_and_the_index_goes_on_when_it_can_be_written(
    home: Path, filled: IndexState, vectors: ChildVectors
) -> None:
    with read_only(home / "chroma"):
        with pytest.raises(VectorsUnavailable, match=r"(?i)read-only"):
            await vectors.upsert([document(1)])
        with pytest.raises(VectorsUnavailable, match=r"(?i)read-only"):
            await vectors.state()
    assert await in_the_end(vectors) == filled
    await works(vectors)


async def test_kills_while_documents_are_written_leave_an_index_that_opens(home: Path, vectors: ChildVectors) -> None:
    for start in range(0, 2400, 600):
        await in_the_end(vectors)
        writing = asyncio.ensure_future(vectors.upsert([document(i) for i in range(start, start + 600)]))
        await asyncio.sleep(0.1)
        pid = process_of(home)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(VectorsUnavailable):
            await writing
    await in_the_end(vectors)
    await works(vectors)
