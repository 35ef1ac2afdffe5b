"""Latency of keyword search on a generated database: wall and process CPU time by number of words.

    .venv/bin/python -m benchmarks.search_latency --rows 100000 --db /tmp/search100k.db

Queries are words as they stand side by side in stored records of random age, common ones included. The database is
made when it is not there.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import synthetic_store
from service import fulltext
from service.database import Database
from service.search import search
from service.searching.request import SearchQuery

WORDS = (1, 2, 3, 4, 5, 8, 30)


def queries(path: Path, words: int, count: int, project: str | None, *, seed: int) -> Iterator[tuple[int, str]]:
    """(id of the record they are from, words), the words next to each other in its narrative."""
    rng = random.Random(seed)
    connection = sqlite3.connect(path)
    ids = [
        row[0] for row in connection.execute("SELECT id FROM observations WHERE ? IN (project, '')", (project or "",))
    ]
    for row_id in rng.choices(ids, k=count):
        (text,) = connection.execute("SELECT narrative FROM observations WHERE id = ?", (row_id,)).fetchone()
        said = text.split()
        start = rng.randrange(max(1, len(said) - words))
        yield row_id, " ".join(said[start : start + words])
    connection.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def measure(path: Path, words: int, count: int, project: str | None) -> None:
    database = Database.open(path, repair_index=fulltext.repair)
    wall, cpu, found, needles = [], [], [], 0
    asked = list(queries(path, words, count, project, seed=words))
    for row_id, text in asked:
        began, began_cpu = time.perf_counter(), time.process_time()
        answer = await search(database, SearchQuery(query=text, project=project, limit=20))
        wall.append((time.perf_counter() - began) * 1e3)
        cpu.append((time.process_time() - began_cpu) * 1e3)
        found.append(answer.total)
        needles += row_id in [hit.id for hit in answer.results[:10]]
    await database.close()
    print(
        f"{words:>5} {project or '-':>8} {statistics.median(wall):>9.1f}{percentile(wall, 0.95):>9.1f}"
        f"{statistics.median(cpu):>9.1f}{percentile(cpu, 0.95):>9.1f}{statistics.median(found):>9.0f}"
        f"{needles / count:>9.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--db", type=Path, default=Path("/tmp/gapless-search.db"))
    parser.add_argument("--count", type=int, default=200, help="queries of each length")
    parser.add_argument("--words", type=int, nargs="*", default=WORDS)
    options = parser.parse_args()
    if not options.db.exists():
        synthetic_store.build(options.db, options.rows)
    print(
        f"{'words':>5} {'project':>8} {'p50 ms':>9}{'p95 ms':>9}{'cpu p50':>9}{'cpu p95':>9}{'found':>9}{'top 10':>9}"
    )
    for words in options.words:
        for project in (None, "p0"):
            asyncio.run(measure(options.db, words, options.count, project))


if __name__ == "__main__":
    main()
