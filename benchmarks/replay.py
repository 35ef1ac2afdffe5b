"""Replay recorded sessions through the hooks' own code path into a real service, and say what became of every event.

    python -m benchmarks.replay [--data ../shared] [--home DIR] [--page benchmarks/replay.md]

Needs the folder `shared` beside the checkout (recorded sessions and the tool that turns them into hook payloads).
"""

import argparse
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from hooks import envelope, payload, spool, transport
from hooks.envelope import Envelope

ROOT = Path(__file__).resolve().parents[1]
PROJECT = "entire-cli"
SAMPLES = 12


def recorded(data: Path) -> Iterator[dict[str, Any]]:
    """Hook payloads with their time, in time order."""
    command = [sys.executable, str(data / "tools/to_hooks.py"), str(data / "sessions/entire-cli")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        for line in tool.stdout:
            yield json.loads(line)


def hand_over(home: str, record: dict[str, Any]) -> tuple[str, Any]:
    """What a hook process does, without the process: (status, answer)."""
    raw = json.dumps(record["payload"], ensure_ascii=False).encode("utf-8", "surrogatepass")
    captured_ms = int(datetime.fromisoformat(record["at"]).timestamp() * 1000)
    headers = envelope.stamp(client="claude-code", captured_ms=captured_ms)
    headers[envelope.PROJECT_OVERRIDE] = PROJECT
    body, _ = payload.without_private(raw)
    event = Envelope(headers, payload.fit(body)[0])
    try:
        status, answer = transport.post(home, event, within_s=5)
    except transport.Away:
        spool.write(home, event)
        return "spooled", None
    return str(status), json.loads(answer)


@contextlib.contextmanager
def service(home: Path) -> Iterator[None]:
    environment = {**os.environ, "GAPLESS_HOME": str(home), "GAPLESS_CHROMA": "off", "GAPLESS_PORT": "0"}
    command = [sys.executable, "-I", "-m", "service.cli"]
    subprocess.run([*command, "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([*command, "down"], env=environment, check=True, stdout=subprocess.DEVNULL)


def wait_until_idle(home: Path, timeout_s: float) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-I", "-m", "service.cli", "queue", "wait", "--timeout", str(timeout_s)]
    subprocess.run(command, env={**os.environ, "GAPLESS_HOME": str(home), "GAPLESS_CHROMA": "off"}, check=True)
    return time.perf_counter() - started


def query(home: Path, sql: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(home / "gapless.db")) as connection:
        return connection.execute(sql).fetchall()


def unaccounted(home: Path, accepted: set[int]) -> list[int]:
    """Ids that got a 202 and are neither done, skipped nor failed."""
    ended = query(home, "SELECT id FROM pending_messages WHERE state IN ('done', 'skipped', 'failed')")
    return sorted(accepted - {row[0] for row in ended})


def edits_without_observation(home: Path, records: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """(session, file) pairs that were edited and that no observation of the session names."""
    named = Counter(
        (session, path.rsplit("/", 1)[-1])
        for session, files in query(home, "SELECT session_id, files_modified FROM observations")
        for path in json.loads(files)
    )
    return sorted({pair for pair in records if (pair[0], pair[1].rsplit("/", 1)[-1]) not in named})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--home", type=Path, help="keep the data folder here")
    parser.add_argument("--page", type=Path, help="write the result to this file")
    options = parser.parse_args()
    if not options.data.is_dir():
        sys.exit(f"{options.data} is not there: the recorded sessions are kept beside the checkout")
    with tempfile.TemporaryDirectory() as scratch:
        home = options.home or Path(scratch) / "home"
        with service(home):
            page = run(home, options.data)
    print(page)
    if options.page:
        options.page.write_text(page, encoding="utf-8")


@dataclass(slots=True)
class Replayed:
    """What was sent, and what the service answered."""

    answers: Counter[str] = field(default_factory=Counter)
    accepted: set[int] = field(default_factory=set)
    edits: list[tuple[str, str]] = field(default_factory=list)
    characters: int = 0
    posting_s: float = 0.0
    drain_s: float = 0.0


def run(home: Path, data: Path) -> str:
    replayed = Replayed()
    for record in recorded(data):
        body = record["payload"]
        replayed.characters += text_in(body)
        if body.get("tool_name") in ("Edit", "Write") and record["event"] == "PostToolUse":
            replayed.edits.append((body["session_id"], str(body["tool_input"].get("file_path", ""))))
        started = time.perf_counter()
        status, answer = hand_over(str(home), record)
        replayed.posting_s += time.perf_counter() - started
        told = (status, answer["status"], answer.get("reason") or "") if answer else (status,)
        replayed.answers[" ".join(told).strip()] += 1
        if answer and answer.get("message_id"):
            replayed.accepted.add(answer["message_id"])
    replayed.drain_s = wait_until_idle(home, 600)
    return "\n".join(report(home, replayed))


def text_in(body: dict[str, Any]) -> int:
    """Characters of the prompt, tool input, tool response (without originalFile) and last message."""
    response = body.get("tool_response")
    if isinstance(response, dict):
        response = {name: value for name, value in response.items() if name != "originalFile"}
    parts = (body.get("tool_input"), response, body.get("error"))
    texts = (body.get("prompt"), body.get("last_assistant_message"))
    return sum(len(json.dumps(part, ensure_ascii=False)) for part in parts if part is not None) + sum(
        len(text) for text in texts if isinstance(text, str)
    )


STORED = {
    "observations": ("observations", ("title", "subtitle", "narrative", "facts", "concepts")),
    "summaries": (
        "session_summaries",
        ("request", "investigated", "learned", "completed", "next_steps", "notes"),
    ),
    "prompts": ("user_prompts", ("text",)),
}


def stored_text(home: Path) -> dict[str, int]:
    """Characters by kind."""
    sums = {
        kind: f"SELECT coalesce(sum({' + '.join(f'length({column})' for column in columns)}), 0) FROM {table}"
        for kind, (table, columns) in STORED.items()
    }
    return {kind: query(home, sql)[0][0] for kind, sql in sums.items()}


def report(home: Path, replayed: Replayed) -> Iterator[str]:
    stored = stored_text(home)
    states = dict(query(home, "SELECT state, count(*) FROM pending_messages GROUP BY state"))
    yield "# Replay of recorded sessions\n"
    yield "Made by `python -m benchmarks.replay --page benchmarks/replay.md`; 2 cores, rules, vectors off.\n"
    yield "| | |\n|---|---|"
    yield f"| hook events | {sum(replayed.answers.values()):,} in {replayed.posting_s:.0f} s, one at a time |"
    yield from (f"| … answered {answer} | {n:,} |" for answer, n in replayed.answers.most_common())
    yield f"| drained after the last event | {replayed.drain_s:.1f} s |"
    yield f"| messages | {', '.join(f'{state} {n:,}' for state, n in states.items())} |"
    yield f"| accepted, and neither done, skipped nor failed | {len(unaccounted(home, replayed.accepted))} |"
    unnamed = edits_without_observation(home, replayed.edits)
    yield f"| edited files that no observation of their session names | {len(unnamed)} |"
    yield f"| projects | {', '.join(row[0] for row in query(home, 'SELECT DISTINCT project FROM sessions'))} |"
    for table in ("sessions", "user_prompts", "observations", "session_summaries"):
        yield f"| {table} | {query(home, f'SELECT count(*) FROM {table}')[0][0]:,} |"
    total = sum(stored.values())
    yield f"| characters in | {replayed.characters:,} |"
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in stored.items())
    yield f"| characters stored | {total:,} ({100 * total / replayed.characters:.2f} %): {kinds} |"
    yield f"| database file | {(home / 'gapless.db').stat().st_size / 1e6:.0f} MB |"
    yield "\n## Samples\n"
    yield from samples(home)


def samples(home: Path) -> Iterator[str]:
    """Titles only: the page is part of the project, the sessions are not."""
    rows = query(home, "SELECT type, title FROM observations ORDER BY id")
    yield from (f"- **{kind}** {title}" for kind, title in random.Random(7).sample(rows, min(SAMPLES, len(rows))))


if __name__ == "__main__":
    main()
