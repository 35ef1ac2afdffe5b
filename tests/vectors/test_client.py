"""The vector process as the service meets it: asked, killed, stuck, shared, left behind."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service.vectors.child import ChildState
from service.vectors.client import ChildVectors
from service.vectors.protocol import VectorsUnavailable
from tests.conftest import until
from tests.vectors.vector_store import document, process_of, store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unmeasured")]

Connect = Callable[..., ChildVectors]
KINDS = ("observation",)
PARENT = """
import asyncio, sys
from pathlib import Path
from service.settings import load
from service.vectors.client import ChildVectors

async def main():
    vectors = ChildVectors(load(home=Path(sys.argv[1]), environment={}))
    await vectors.state()
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def pid_of(home: Path) -> int:
    pid = process_of(home)
    assert pid is not None
    return pid


def files_of_the_index(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if "vectors" in path.name or "chroma" in str(path)]


async def gone(home: Path) -> None:
    async def is_gone() -> bool:
        return process_of(home) is None

    await until(is_gone)


async def test_what_is_put_in_is_found_by_meaning(home: Path, vectors: ChildVectors) -> None:
    made = await vectors.embed(["The parser drops the last token", "We bought apples and pears"])
    documents = [document(i, vector=vector) for i, vector in enumerate(made, 1) if isinstance(vector, bytes)]
    store(home, documents)
    assert await vectors.upsert(documents) == {}
    assert (await vectors.state()).documents == 2
    found = await vectors.nearest("a bug in tokenizing", doc_types=KINDS, project="shop", limit=1)
    assert [neighbour.record_id for neighbour in found] == [1]
    assert await vectors.nearest("a bug in tokenizing", doc_types=KINDS, project="bank", limit=1) == []


async def test_what_was_deleted_and_dropped_is_gone(vectors: ChildVectors) -> None:
    await vectors.upsert([document(1), document(2), document(2)])
    before = await vectors.state()
    await vectors.delete(["obs_1_narrative", "obs_77_narrative"])
    assert (await vectors.state()).documents == 1
    await vectors.drop()
    after = await vectors.state()
    assert (after.documents, before.documents) == (0, 2)
    assert after.index_id != before.index_id


async def test_a_vector_that_cannot_be_kept_costs_its_neighbours_nothing(vectors: ChildVectors) -> None:
    bad = [document(1, vector=b"short"), document(2, vector=b"\xff" * 1536)]
    refused = await vectors.upsert([*bad, document(3)])
    assert refused.keys() == {"obs_1_narrative", "obs_2_narrative"}
    assert all(refused.values())
    assert (await vectors.state()).documents == 1


async def test_any_text_can_be_embedded_and_asked_for(home: Path, vectors: ChildVectors) -> None:
    texts = ["", " ", "\ud800 alone", "x" * 100_000, "\0", "日本語", "a\u202eb"]
    assert all(isinstance(vector, bytes) for vector in await vectors.embed(texts))
    assert await vectors.embed([]) == []
    await vectors.state()
    store(home, [document(1)])
    for text in texts:
        found = await vectors.nearest(text, doc_types=KINDS, project=None, limit=3)
        assert [neighbour.record_id for neighbour in found] == [1]


async def test_nothing_is_started_for_a_search_when_nothing_was_indexed(home: Path, vectors: ChildVectors) -> None:
    with pytest.raises(VectorsUnavailable, match="nothing is indexed"):
        await vectors.nearest("x", doc_types=KINDS, project=None, limit=1)
    assert process_of(home) is None


async def test_a_search_is_answered_while_a_batch_is_embedded(home: Path, vectors: ChildVectors) -> None:
    await vectors.state()
    store(home, [document(1)])
    batch = asyncio.ensure_future(vectors.embed(["many words " * 100] * 40))
    await asyncio.sleep(0)
    found = await vectors.nearest("x", doc_types=KINDS, project=None, limit=1)
    assert [neighbour.record_id for neighbour in found] == [1]
    assert not batch.done()
    assert len(await batch) == 40


async def test_a_killed_process_is_started_again_and_keeps_the_index(home: Path, vectors: ChildVectors) -> None:
    await vectors.upsert([document(1)])
    before = await vectors.state()
    os.kill(pid_of(home), signal.SIGKILL)

    async def answers() -> bool:
        try:
            return await vectors.state() == before
        except VectorsUnavailable:
            return False

    await until(answers)


async def test_a_call_under_way_when_the_process_dies_is_answered_in_words(home: Path, vectors: ChildVectors) -> None:
    await vectors.state()
    call = asyncio.ensure_future(vectors.embed(["many words " * 100] * 100))
    await asyncio.sleep(0.1)
    os.kill(pid_of(home), signal.SIGKILL)
    with pytest.raises(VectorsUnavailable, match="ended; it is started again"):
        await call


async def test_a_process_that_keeps_dying_is_left_alone_for_a_while_and_said_so(
    home: Path, vectors: ChildVectors
) -> None:
    (home / "run" / "vectors.sock").mkdir()  # where it must listen
    (home / "run" / "vectors.sock" / "in the way").touch()

    async def is_waiting() -> bool:
        with pytest.raises(VectorsUnavailable):
            await vectors.state()
        return vectors.status().state is ChildState.BROKEN

    await until(is_waiting)
    message = vectors.status().message or ""
    assert "started again in" in message
    assert "IsADirectoryError" in message
    assert process_of(home) is None


async def test_a_stopped_process_delays_a_search_by_a_second_only(home: Path, vectors: ChildVectors) -> None:
    await vectors.state()
    os.kill(pid_of(home), signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(VectorsUnavailable, match="did not answer"):
        await vectors.nearest("x", doc_types=KINDS, project=None, limit=1)
    assert time.monotonic() - begun < 3
    os.kill(pid_of(home), signal.SIGCONT)


async def test_a_process_that_hangs_for_good_is_replaced(
    home: Path, vectors: ChildVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    await vectors.state()
    hanging = pid_of(home)
    os.kill(hanging, signal.SIGSTOP)
    monkeypatch.setattr("service.vectors.client.NEAREST_S", 0.05)

    async def is_replaced() -> bool:
        with pytest.raises(VectorsUnavailable):
            await vectors.nearest("x", doc_types=KINDS, project=None, limit=1)
        return process_of(home) not in (hanging, None)

    await until(is_replaced)


async def test_two_processes_of_one_data_folder_share_one_index(home: Path, connect: Connect) -> None:
    one, other = connect(), connect()
    first, second = await asyncio.gather(one.state(), other.state())
    assert first == second
    await other.upsert([document(1)])
    assert (await one.state()).documents == 1
    await (one if one.status().state is ChildState.RUNNING else other).close()
    survivor = other if one.status().state is ChildState.IDLE else one

    async def took_over() -> bool:
        try:
            return (await survivor.state()).documents == 1
        except VectorsUnavailable:
            return False

    await until(took_over)


async def test_the_folder_is_opened_by_nobody_else(home: Path, vectors: ChildVectors) -> None:
    await vectors.state()
    command = [sys.executable, "-I", "-m", "service.vectors.process", str(home), "embedded"]
    second = await asyncio.to_thread(subprocess.run, command, input=b"", capture_output=True, check=False)
    assert second.returncode == 75
    assert b"another process" in second.stderr


async def test_it_ends_when_its_parent_is_killed(home: Path) -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, str(home), stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"ready\n"
    assert process_of(home) is not None
    parent.kill()
    await parent.wait()
    await gone(home)


async def test_it_ends_when_it_is_closed_and_leaves_no_socket(home: Path, vectors: ChildVectors) -> None:
    await vectors.state()
    await vectors.close()
    assert process_of(home) is None
    assert not (home / "run" / "vectors.sock").exists()


async def test_its_files_are_private(home: Path, vectors: ChildVectors) -> None:
    await vectors.upsert([document(i) for i in range(5)])
    made = files_of_the_index(home)
    assert {path.name for path in made} >= {"chroma", "chroma.sqlite3", "vectors.log", "vectors.sock", "vectors.lock"}
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((home / "run" / "vectors.sock").stat().st_mode) == 0o600


async def test_a_long_path_to_the_data_folder_is_no_trouble(deep_home: Path, connect: Connect) -> None:
    vectors = connect(home=deep_home)
    assert (await vectors.state()).documents == 0
    assert await vectors.upsert([document(1)]) == {}
    assert process_of(deep_home) is not None


async def test_another_answer_than_ours_on_the_socket_is_not_waited_for(home: Path, vectors: ChildVectors) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_unix_server(babble, home / "run" / "vectors.sock")
    with pytest.raises(VectorsUnavailable):
        await vectors.state()
    server.close()
