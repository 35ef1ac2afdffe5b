"""How everything grows with the store: 10,000, 100,000 and 1,000,000 observations, and 300,000 vectors.

    .venv/bin/python -m benchmarks.growth --rows 10000 100000 1000000 --folder /tmp/growth
    .venv/bin/python -m benchmarks.growth --rows 10000 107000 --vectors --folder /tmp/growth

A store is made where there is none (a million takes about seven minutes and 2 GB; 107,000 observations have 301,081
documents, and filling Chroma with them takes about ten minutes) and served by a process of its own, which is asked over
HTTP. The figures are kept in the folder, one file a store; every run writes growth.md and growth.svg from all of them.
"""

import argparse
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from benchmarks import growth_page, synthetic_store, synthetic_vectors
from benchmarks.growth_service import Running, Took, running
from benchmarks.search_latency import queries
from benchmarks.synthetic_text import Needle

PAGE = Path(__file__).with_name("growth.md")
WORDS = range(1, 6)
PROJECTS = {"all": None, "22 %": "p0", "1 %": "p1"}
"""By their share of the rows."""
TOP = 10
FILLED_WITHIN_S = 3_600.0
ROUTES: dict[str, dict[str, Any]] = {
    "/api/stats": {},
    "/api/stats, project": {"project": "p0"},
    "/api/projects": {},
    "/api/observations": {},
    "/api/observations, offset 5000": {"offset": 5_000},
    "/api/sessions": {},
    "/api/queue": {},
    "/metrics": {},
    "/readyz": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--vectors", action="store_true", help="with a vector for each document, and hybrid search")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/growth"))
    parser.add_argument("--count", type=int, default=40, help="queries of each length")
    options = parser.parse_args()
    for rows in options.rows:
        home = options.folder / (f"vectors-{rows}" if options.vectors else str(rows))
        _prepare(home, rows, vectors=options.vectors)
        figures = {"rows": rows, "vectors": options.vectors, **_filled(home, vectors=options.vectors)}
        figures |= measured(home, rows, options.count, vectors=options.vectors)
        (options.folder / f"{home.name}.json").write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
        sys.stdout.write(f"{home.name}: {figures}\n")
    found = [orjson.loads(path.read_bytes()) for path in options.folder.glob("*.json")]
    growth_page.write(PAGE, sorted(found, key=lambda figures: (figures["vectors"], figures["rows"])))


def measured(home: Path, rows: int, count: int, *, vectors: bool) -> dict[str, Any]:
    with running(home, chroma="embedded" if vectors else "off") as service:
        figures: dict[str, Any] = {"start_s": service.start_s, "memory_at_start_mb": service.memory_mb()[0]}
        figures["mode"] = _warm(service, vectors=vectors)
        for name, project in PROJECTS.items():
            asked = [text for words in WORDS for _, text in queries(home / "gapless.db", words, count, project, seed=1)]
            figures[f"search, {name}"] = asdict(
                service.took([partial(_search, service, text, project) for text in asked])
            )
        figures |= _needles(service, synthetic_store.planted(rows))
        figures |= _rest(service, rows, count)
        for route, params in ROUTES.items():
            ask = partial(service.get, route.partition(",")[0], **params)
            figures[route] = asdict(service.took([ask] * 5))
        figures["status_s"], figures["doctor_s"] = service.command_s("status"), service.command_s("doctor")
        figures["memory_mb"], figures["vector_process_mb"] = service.memory_mb()
    return figures | _sizes(home)


def _search(service: Running, text: str, project: str | None, **params: object) -> Any:
    where = {"project": project} if project else {"all_projects": "true"}
    return service.get("/api/search", query=text, **where, **params)


def _warm(service: Running, *, vectors: bool) -> str:
    """What ran, once it is what should run."""
    deadline = time.monotonic() + 60
    while True:
        mode: str = _search(service, "retry timeout", None)["mode"]
        if not vectors or mode == "hybrid" or time.monotonic() > deadline:
            return mode
        time.sleep(0.5)


def _needles(service: Running, planted: dict[int, Needle]) -> dict[str, Any]:
    found = {"needles": 0, "needles, one word wrong": 0}

    def ask(name: str, row_id: int, text: str) -> None:
        hits = _search(service, text, None, limit=TOP)["results"]
        found[name] += row_id in [hit["id"] for hit in hits]

    def asks(name: str, said: Callable[[Needle], str]) -> Took:
        return service.took([partial(ask, name, row_id, said(needle)) for row_id, needle in planted.items()])

    took = asks("needles", lambda needle: needle.asked)
    asks("needles, one word wrong", lambda needle: needle.blurred)
    return {"search, needles": asdict(took), **{name: count / len(planted) for name, count in found.items()}}


def _rest(service: Running, rows: int, count: int) -> dict[str, Any]:
    """Timeline around records of any age, and what sessions and prompts are told."""
    chance = random.Random(1)
    anchors = [chance.randrange(1, rows + 1) for _ in range(count)]
    timelines = [partial(service.get, "/api/timeline", anchor=str(anchor)) for anchor in anchors]
    contexts = [partial(service.get, "/api/context/inject", project=project) for project in ("p0", "p1", "p5")]
    return {
        "timeline": asdict(service.took(timelines)),
        "context": asdict(service.took(contexts * (count // len(contexts)))),
    }


def _prepare(home: Path, rows: int, *, vectors: bool) -> None:
    database = home / "gapless.db"
    if database.exists():
        return
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = home / "new.db"
    synthetic_store.build(new, rows)
    if vectors:
        synthetic_vectors.store(new)
    new.rename(database)


def _filled(home: Path, *, vectors: bool) -> dict[str, Any]:
    """How long Chroma takes to be filled from the stored vectors; nothing when it is."""
    if not vectors:
        return {}
    with running(home) as service:
        began, lag = time.monotonic(), service.get("/api/queue")["index"]["lag"]
        while service.get("/api/queue")["index"]["lag"]:
            assert time.monotonic() < began + FILLED_WITHIN_S, "Chroma is not filled; see `gapless status`"
            time.sleep(1)
        took_s = time.monotonic() - began
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        (documents,) = connection.execute("SELECT count(*) FROM embeddings").fetchone()
    return {"documents": documents} | ({"filled, records/s": lag / took_s} if lag > documents // 10 else {})


def _sizes(home: Path) -> dict[str, float]:
    """In MB: the whole file, the text index in it, the vectors in it, and Chroma's folder."""
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        sql = "SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name GLOB ?"
        text, vectors = (connection.execute(sql, (name,)).fetchone()[0] or 0 for name in ("*_fts_*", "embeddings*"))
    files = [file.stat().st_size for file in (home / "chroma").rglob("*") if file.is_file()]
    return {
        "database_mb": (home / "gapless.db").stat().st_size / 1e6,
        "text_index_mb": text / 1e6,
        "vectors_mb": vectors / 1e6,
        "chroma_mb": sum(files) / 1e6,
    }


if __name__ == "__main__":
    main()
