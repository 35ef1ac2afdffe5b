"""Retrieval quality on real sessions: R@5 by kind of question, over what the service answers to GET /api/search.

    .venv/bin/python -m benchmarks.retrieval --url http://127.0.0.1:47700 --token "$(cat ~/.gapless/token)"
    .venv/bin/python -m benchmarks.retrieval --db ~/.gapless/gapless.db

Needs the questions of ../shared beside the checkout, and a store into which their sessions were replayed. The sessions
of one question are those of its hits (type=all, limit=100), in the order of their first hit; only sessions that began
before the question's `before` count, and never the one that asks. R@k = found / min(k, relevant).
"""

import argparse
import asyncio
import sys
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from service import fulltext
from service.clock import epoch_ms
from service.database import Database
from service.search import search
from service.searching.request import search_query

BENCHMARK = Path(__file__).resolve().parents[2] / "shared/benchmarks/entire-cli"
DEPTH = 5
TARGETS = {"commit": 0.56, "intent": 0.88, "finding": 0.80, "file": 0.87, "prompt-blame": 0.33, "prompt-files": 0.34}
AIMS = {"commit": 0.64, "intent": 0.92, "finding": 0.86, "file": 0.92, "prompt-blame": 0.46, "prompt-files": 0.42}

Search = Callable[[dict[str, str]], Awaitable[list[str | None]]]
"""The session ids of the hits for parameters of GET /api/search."""


def over_http(url: str, token: str) -> Search:
    def ask(params: dict[str, str]) -> list[str | None]:
        address = f"{url.rstrip('/')}/api/search?{urllib.parse.urlencode(params)}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request) as answer:
            return [hit["session_id"] for hit in orjson.loads(answer.read())["results"]]

    return lambda params: asyncio.to_thread(ask, params)


def in_process(database: Database) -> Search:
    async def ask(params: dict[str, str]) -> list[str | None]:
        answer = await search(database, search_query(params))
        return [hit.session_id for hit in answer.results]

    return ask


async def evaluate(ask: Search, project: str | None) -> tuple[dict[str, list[float]], list[dict[str, Any]]]:
    """R@5 of each question by kind, and the questions that missed something."""
    began = {row["session"]: epoch_ms(row["start"]) or 0 for row in _lines("sessions.jsonl")}
    scores, missed = defaultdict[str, list[float]](list), []
    for question in _lines("queries.dev.jsonl"):
        before = epoch_ms(question["before"])
        params = {"query": question["query"], "type": "all", "limit": "100"}
        params |= {"project": project} if project else {}
        params |= {"dateEnd": str(before - 1)} if before else {}
        hits = dict.fromkeys(session for session in await ask(params) if session != question.get("asking"))
        found = [session for session in hits if not before or began.get(session or "", 0) < before][:DEPTH]
        relevant = {item["session"] for item in question["relevant"]}
        score = len(relevant.intersection(found)) / min(DEPTH, len(relevant))
        scores[question["kind"]].append(score)
        if score < 1:
            missed.append(question | {"found": found})
    return scores, missed


def _lines(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (BENCHMARK / name).read_bytes().splitlines()]


def report(scores: dict[str, list[float]]) -> None:
    print(f"{'kind':14}{'n':>5}{'R@5':>8}{'target':>8}{'aim':>8}")
    for kind, values in sorted(scores.items()):
        target, aim = TARGETS.get(kind, float("nan")), AIMS.get(kind, float("nan"))
        print(f"{kind:14}{len(values):>5}{sum(values) / len(values):>8.3f}{target:>8.2f}{aim:>8.2f}")
    every = [value for values in scores.values() for value in values]
    print(f"{'all':14}{len(every):>5}{sum(every) / len(every):>8.3f}")


async def run(options: argparse.Namespace) -> None:
    if options.url:
        scores, missed = await evaluate(over_http(options.url, options.token), options.project)
    else:
        database = Database.open(options.db, repair_index=fulltext.repair)
        scores, missed = await evaluate(in_process(database), options.project)
        await database.close()
    report(scores)
    if options.missed:
        options.missed.write_bytes(b"\n".join(orjson.dumps(question) for question in missed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--url", help="address of a running service")
    source.add_argument("--db", type=Path, help="a database file, searched in this process")
    parser.add_argument("--token", default="", help="bearer token of the service")
    parser.add_argument("--project", help="search one project only")
    parser.add_argument("--missed", type=Path, help="write the questions that missed something to this file")
    options = parser.parse_args()
    if not BENCHMARK.exists():
        sys.exit(f"needs the benchmark folder {BENCHMARK}")
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
