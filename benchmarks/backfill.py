"""Kill what indexes with SIGKILL, again and again, half of the times while Chroma writes its files; then count.

    python -m benchmarks.backfill [--observations 10000] [--kills 50] [--seed 1] [--database FILE] [--stored]

`gapless work` runs on a store of synthetic observations (or a copy of FILE), on the real Chroma and the real embedder.
Each time the workers, the vector process, or both die, and are started again. In the end every live document must be
found by its own vector and nothing else be there; embedded twice may be a batch a death. With --kills 0 it measures how
fast an undisturbed index is filled, and filled again from the stored vectors. --stored makes all vectors beforehand,
any ones: then nothing is embedded, and every death meets Chroma at work.
"""

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks import synthetic_store
from service import documents
from service.clock import now_ms
from workers.backfill import SOUND_TEXT, TEXTS_PER_CALL

ROOT = Path(__file__).resolve().parents[1]
FLUSH_WAIT_S = 10.0
"""Chroma writes its files every 1,000 changes; a strike that sees no such moment in time comes at any."""
CAUGHT_UP_S = 3_600.0
LIFE_S = 2.0
STRIKE_S = 0.1
RECORDS_PER_TOPIC = 25  # of vectors made beforehand
VICTIMS = ("both", "vector process", "workers")
NEIGHBOURS = 20
"""Documents with the same text have the same vector."""
UNFOUND_SHARE = 0.0005
"""Chroma's search is approximate: an index of 23,000 documents that nobody disturbed did not find one of them."""

COUNTED = """
import sys
from benchmarks import backfill
backfill.count_embeddings(sys.argv[1])
from service.cli.serving import work
work()
"""
"""The command `gapless work`, with a line written for each text that is given to the embedder."""

PROGRESS = """
SELECT (SELECT count(*) FROM changes WHERE seq > coalesce((SELECT max(seq) FROM watermarks), 0)) AS lag,
    (SELECT count(*) FROM embeddings) AS vectors, (SELECT coalesce(max(seen_at_epoch), 0) FROM watermarks) AS seen
"""


def count_embeddings(path: str) -> None:
    """Write the hash of each text to a file before it is embedded, in this process."""
    from service.vectors.client import ChildVectors

    embed = ChildVectors.embed
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def counted(self: ChildVectors, texts: list[str]) -> list[bytes | str]:
        lines = [f"{documents.text_hash(text)}\n" for text in texts if text != SOUND_TEXT]
        os.write(log, "".join(lines).encode())
        return await embed(self, texts)

    ChildVectors.embed = counted  # type: ignore[method-assign,assignment]


class Progress(NamedTuple):
    """Records that wait, vectors that are stored, and when the index was last found whole (ms)."""

    lag: int
    vectors: int
    seen_at_epoch: int


@dataclass(slots=True)
class Workers:
    """The process that works on a data folder, and the vector process that it starts."""

    home: Path
    process: subprocess.Popen[bytes] | None = None
    deaths: Counter[str] = field(default_factory=Counter)

    def start(self) -> None:
        environment = {"PATH": os.defpath, "HOME": str(self.home.parent), "GAPLESS_HOME": str(self.home)}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COUNTED, str(self.embedded)], env=environment, stdout=log, stderr=log, cwd=ROOT
            )

    def kill(self, victim: str) -> None:
        """`victim` is one of VICTIMS; the workers live on when only the vector process dies."""
        assert self.process is not None
        assert self.process.poll() is None, f"the workers ended by themselves: see {self._log}"
        index = self._vector_process()
        if victim != "workers" and index is not None:
            with suppress(ProcessLookupError):
                os.kill(index, signal.SIGKILL)
            self.deaths["vector process killed"] += 1
        if victim != "vector process":
            self.process.kill()
            self.process.wait()
            self.deaths["workers killed"] += 1
            self.start()

    def end(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=35) == 0, f"an orderly stop failed: see {self._log}"

    def progress(self) -> Progress:
        assert self.process is None or self.process.poll() is None, f"the workers ended by themselves: see {self._log}"
        with closing(sqlite3.connect(f"{(self.home / 'gapless.db').as_uri()}?mode=ro", uri=True, timeout=30)) as reader:
            return Progress(*reader.execute(PROGRESS).fetchone())

    def wait_until_caught_up(self) -> float:
        """And has been found whole since now; the seconds that took."""
        began, now = time.monotonic(), now_ms()
        while (progress := self.progress()).lag or progress.seen_at_epoch < now:
            assert time.monotonic() < began + CAUGHT_UP_S, f"{progress.lag} records still wait"
            time.sleep(0.1)
        return time.monotonic() - began

    @property
    def embedded(self) -> Path:
        return self.home.parent / "embedded.log"

    @property
    def _log(self) -> Path:
        return self.home.parent / "workers.log"

    def _vector_process(self) -> int | None:
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = entry.read_bytes().split(b"\0")
                if b"service.vectors.process" in words and os.fsencode(self.home) in words:
                    return int(entry.parent.name)
        return None


def storm(home: Path, *, kills: int, seed: int) -> tuple[list[str], dict[str, object]]:
    """(what is wrong, figures) after so many deaths on the way to a full index."""
    chance = random.Random(seed)
    workers = Workers(home)
    total = sum(1 for _ in expected(home))
    to_embed = total - workers.progress().vectors
    workers.start()
    began = time.monotonic()
    flushes = 0
    try:
        for kill in range(kills):
            flushes += _await_a_moment(workers, chance, kill, share=total * (kill + 1) // (kills + 1))
            workers.kill(VICTIMS[kill // 2 % len(VICTIMS)])
        workers.wait_until_caught_up()
        took_s = time.monotonic() - began
        workers.end()
    finally:
        assert workers.process is not None
        workers.process.kill()
    again = len(workers.embedded.read_text(encoding="ascii").split()) - to_embed
    figures: dict[str, object] = {
        "documents": total,
        "kills": kills,
        "… while Chroma wrote its files": flushes,
        **workers.deaths,
        "indexes made anew": (home / "logs" / "gapless.log").read_text(encoding="utf-8").count("index.begun") - 1,
        "embedded twice": again,
        "… allowed": TEXTS_PER_CALL * workers.deaths.total(),
        "took (s)": round(took_s, 1),
    }
    found = list(differences(home))
    if again > TEXTS_PER_CALL * workers.deaths.total():
        found.append(f"{again} texts were embedded twice")
    return found, figures


def _await_a_moment(workers: Workers, chance: random.Random, kill: int, *, share: int) -> bool:
    """Wait for a share of the vectors and for the mark to move; then every other death comes while Chroma writes its
    files. Whether it does."""
    deadline = time.monotonic() + CAUGHT_UP_S
    lag = workers.progress().lag
    while time.monotonic() < deadline:
        progress = workers.progress()
        if progress.vectors >= share and (progress.lag != lag or not lag):
            break
        time.sleep(0.05)
    if kill % 2 == 0:
        time.sleep(chance.uniform(0, LIFE_S))
        return False
    files = _times(workers.home)
    deadline = time.monotonic() + FLUSH_WAIT_S
    while time.monotonic() < deadline:
        now = _times(workers.home)
        if any(path in files and files[path] != changed for path, changed in now.items()):
            time.sleep(chance.uniform(0, STRIKE_S))
            return True
        files = now
        time.sleep(0.002)
    return False


def _times(home: Path) -> dict[Path, int]:
    """When the files of the vectors themselves were written; Chroma's database file is sound at any time."""
    times = {}
    for path in (home / "chroma").glob("*/*"):
        with suppress(OSError):
            times[path] = path.stat().st_mtime_ns
    return times


def expected(home: Path) -> Iterator[documents.Passage]:
    """What should be in the index of a data folder."""
    import asyncio

    from service import fulltext, watermarks
    from service.database import Database

    async def read() -> list[documents.Passage]:
        database = Database.open(home / "gapless.db", repair_index=fulltext.repair)
        try:
            changes = await database.read(lambda reader: watermarks.above(reader, 0, limit=1_000_000_000))
            found = await database.read(lambda reader: documents.passages(reader, changes))
        finally:
            await database.close()
        return [passage for passages in found.values() for passage in passages]

    yield from asyncio.run(read())


def differences(home: Path) -> Iterator[str]:
    """What is wrong with the index of a data folder that nobody works on, in words; nothing when all is well."""
    import chromadb
    import numpy as np
    from chromadb.config import Settings

    wanted = {passage.doc_id: passage.text_hash for passage in expected(home)}
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        rows = connection.execute("SELECT doc_type, record_id, part, text_hash, vector FROM embeddings").fetchall()
        gaps = connection.execute("SELECT count(*) FROM gaps").fetchone()[0]
    stored = {documents.doc_id(*row[:3]): row[3] for row in rows}
    vectors = {documents.doc_id(*row[:3]): np.frombuffer(row[4], "<f4") for row in rows}
    if gaps:
        yield f"{gaps} records are gaps"
    if stored != wanted:
        yield f"{len(stored.items() ^ wanted.items())} stored vectors are missing, too many, or of other texts"
    client = chromadb.PersistentClient(str(home / "chroma"), Settings(anonymized_telemetry=False))
    collection = client.get_collection("gapless", embedding_function=None)

    def near(vector: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> list[str]:
        return collection.query(query_embeddings=vector.reshape(1, -1), n_results=NEIGHBOURS, include=[])["ids"][0]

    held = set(collection.get(include=[])["ids"])
    if lost := wanted.keys() - held:
        yield f"{len(lost)} documents are missing, such as {min(lost)}"
    if orphans := held - wanted.keys():
        yield f"{len(orphans)} documents are orphans, such as {min(orphans)}"
    if collection.count() != len(wanted):
        yield f"Chroma counts {collection.count()} documents instead of {len(wanted)}"
    unfound = [doc_id for doc_id, vector in vectors.items() if doc_id not in near(vector)]
    if len(unfound) > UNFOUND_SHARE * len(vectors):
        yield f"{len(unfound)} documents are not found by their own vectors, such as {min(unfound)}"


def build(home: Path, count: int, *, seed: int) -> None:
    """A store of synthetic observations: two documents each, of a sentence, so that deaths and not texts take the
    time."""
    synthetic_store.build(home / "gapless.db", count, seed=seed)
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        connection.execute(
            "UPDATE observations SET narrative = substr(narrative, 1, 60), "
            "facts = json_array(coalesce(json_extract(facts, '$[0]'), subtitle))"
        )
        connection.commit()


def store_vectors(home: Path) -> None:
    """A vector for every document, as if it had been embedded: all lean to one side, those of a topic more so. Of
    vectors that have nothing in common Chroma does not find each by itself."""
    import numpy as np

    from service import embeddings
    from service.database import Tx, open_writable
    from service.vectors.embedder import DIMENSION, MODEL

    chance = np.random.default_rng(1)
    common = chance.standard_normal(DIMENSION)
    topics = chance.standard_normal((1_000, DIMENSION))
    with closing(open_writable(home / "gapless.db")) as connection:
        connection.execute("BEGIN")
        for passage in expected(home):
            topic = topics[passage.change.record_id // RECORDS_PER_TOPIC % len(topics)]
            vector = common + topic + chance.standard_normal(DIMENSION)
            unit = (vector / np.linalg.norm(vector)).astype("<f4").tobytes()
            embeddings.store(Tx(connection), passage, unit, model=MODEL)
        connection.execute("COMMIT")


def rate(home: Path) -> dict[str, object]:
    """How long it takes to fill an index, and to fill it again when the folder is lost."""
    workers = Workers(home)
    workers.start()
    try:
        first_s = workers.wait_until_caught_up()
        workers.end()
        shutil.rmtree(home / "chroma")
        workers.start()
        again_s = workers.wait_until_caught_up()
        workers.end()
    finally:
        assert workers.process is not None
        workers.process.kill()
    total = sum(1 for _ in expected(home))
    return {
        "documents": total,
        "filled (s)": round(first_s, 1),
        "… documents/s": round(total / first_s, 1),
        "filled again from stored vectors (s)": round(again_s, 1),
        "… documents/s from stored vectors": round(total / again_s, 1),
        "index (MB)": round(sum(f.stat().st_size for f in (home / "chroma").rglob("*") if f.is_file()) / 1e6, 1),
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--observations", type=int, default=10_000)
    arguments.add_argument("--kills", type=int, default=50)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--database", type=Path, help="a database to copy instead of making one")
    arguments.add_argument("--stored", action="store_true", help="nothing is left to embed")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        if given.database:
            shutil.copy(given.database, home / "gapless.db")
        else:
            build(home, given.observations, seed=given.seed)
        if given.stored:
            store_vectors(home)
        found, figures = storm(home, kills=given.kills, seed=given.seed) if given.kills else ([], rate(home))
    for name, value in figures.items():
        print(f"| {name} | {value} |")
    for difference in found:
        print(f"WRONG: {difference}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
