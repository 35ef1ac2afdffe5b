"""What a session is told at its start and with a prompt: how long it takes, and whether it is what was needed.

    .venv/bin/python -m benchmarks.context --db /tmp/search100k.db --project p0
    .venv/bin/python -m benchmarks.context --db ~/.gapless/gapless.db --needed

The first measures wall and process CPU time in this process; prompts are words as they stand side by side in stored
records. The second needs the questions of ../shared beside the checkout and a store into which their sessions were
replayed: for each session of the two prompt kinds, the share of the sessions it went on with that are named by the 40
rows chosen before it began, against the 40 newest.
"""

import argparse
import asyncio
import sqlite3
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import orjson

from benchmarks.search_latency import percentile, queries
from service import fulltext
from service.clock import epoch_ms, now_ms
from service.context.asking import Asked, at_prompt, at_start
from service.context.choosing import Chosen, grouped, ranked
from service.context.notes import LOOKED_AT, Candidate
from service.context.start import Context
from service.database import Database
from service.projects import ProjectRef
from service.settings import load

BENCHMARK = Path(__file__).resolve().parents[2] / "shared/benchmarks/entire-cli"
ROWS = 40
PROMPT_WORDS = (5, 10, 20, 40)
BEFORE = """
SELECT id, session_id, type, title, files_modified, created_at_epoch FROM observations
WHERE created_at_epoch < ? AND session_id IS NOT ? ORDER BY created_at_epoch DESC, id DESC LIMIT ?
"""


async def measure(name: str, asks: Sequence[Callable[[], Awaitable[Context]]]) -> None:
    wall, cpu, told = [], [], 0
    for ask in asks:
        began, began_cpu = time.perf_counter(), time.process_time()
        context = await ask()
        wall.append((time.perf_counter() - began) * 1e3)
        cpu.append((time.process_time() - began_cpu) * 1e3)
        told += bool(context.text)
    print(
        f"{name:18}{statistics.median(wall):>9.1f}{percentile(wall, 0.95):>9.1f}"
        f"{statistics.median(cpu):>9.1f}{percentile(cpu, 0.95):>9.1f}{told / len(asks):>8.0%}"
    )


async def latency(path: Path, project: str, count: int) -> None:
    database = Database.open(path, repair_index=fulltext.repair)
    configuration = load(home=path.parent, environment={})
    who = Asked(ref=ProjectRef(override=project))

    async def start() -> Context:
        return await database.read(lambda reader: at_start(reader, who, configuration, source="startup", now=now_ms()))

    def prompted(text: str) -> Callable[[], Awaitable[Context]]:
        return lambda: at_prompt(database, who, configuration, text, vectors=None, now=now_ms())

    print(f"{project:18}{'p50 ms':>9}{'p95 ms':>9}{'cpu p50':>9}{'cpu p95':>9}{'told':>8}")
    await measure("session start", [start] * count)
    for words in PROMPT_WORDS:
        texts = [text for _, text in queries(path, words, count, project, seed=words)]
        await measure(f"prompt of {words}", [prompted(text) for text in texts])
    await database.close()


def needed(path: Path) -> None:
    connection = sqlite3.connect(path)
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in (BENCHMARK / "queries.dev.jsonl").read_bytes().splitlines():
        question = orjson.loads(line)
        if not question["kind"].startswith("prompt-"):
            continue
        rows = connection.execute(BEFORE, (epoch_ms(question["before"]), question["asking"], LOOKED_AT))
        newest = grouped(_candidate(*row) for row in rows)
        relevant = {item["session"] for item in question["relevant"]}
        for name, order in (("newest", newest), ("chosen", ranked(newest))):
            shares[question["kind"], name].append(len(relevant & _sessions(order)) / len(relevant))
    for (kind, name), values in sorted(shares.items()):
        print(f"{kind:14}{name:8}{len(values):>5}{statistics.mean(values):>8.3f}")


def _sessions(order: Sequence[Chosen]) -> set[str | None]:
    return {chosen.candidate.session_id for chosen in order[:ROWS]}


def _candidate(row_id: int, session_id: str, kind: str, title: str, files: str, at: int) -> Candidate:
    return Candidate(
        id=row_id,
        session_id=session_id,
        type=kind,
        title=title,
        files=tuple(orjson.loads(files)),
        created_at_epoch=at,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--project", default="p0")
    parser.add_argument("--count", type=int, default=100, help="measurements of each kind")
    parser.add_argument("--needed", action="store_true", help="whether the choice is what was needed")
    options = parser.parse_args()
    if not options.needed:
        asyncio.run(latency(options.db, options.project, options.count))
    elif BENCHMARK.exists():
        needed(options.db)
    else:
        sys.exit(f"needs the benchmark folder {BENCHMARK}")


if __name__ == "__main__":
    main()
