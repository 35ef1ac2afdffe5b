"""Quality of the rule-based compressor on real sessions: retrieval (R@5), size of what is stored, speed.

    .venv/bin/python -m benchmarks.rules_quality [--events EVENTS.jsonl]

Needs the data folder ../shared beside the checkout. Events are those of its to_hooks.py; the file given by --events is
a cache and is made when it is not there. No service runs: turns are cut as the queue cuts them for rules.
"""

import argparse
import asyncio
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from benchmarks.keyword_ranking import SCHEMA, Index, shadow
from service.models import Batch, Compressed, Message, MessageType, Observation, Prompt, Session
from service.noise import file_read, is_bookkeeping
from service.settings import DEFAULT_SKIP_TOOLS
from workers.compressors.rules import RulesCompressor

SHARED = Path(__file__).resolve().parents[2] / "shared"
SESSIONS = (SHARED / "sessions/entire-cli", SHARED / "sessions/clients/gemini/entire-cli")
BENCHMARK = SHARED / "benchmarks/entire-cli"
SKIP_TOOLS = frozenset(name.strip() for name in DEFAULT_SKIP_TOOLS.split(","))
SUMMARY_EVENTS = frozenset({"Stop", "PreCompact", "SessionEnd"})
COPIED = ("type", "title", "subtitle", "narrative", "facts", "concepts", "files_read", "files_modified", "metadata")
FLOORS = {"commit": 0.56, "intent": 0.88, "finding": 0.80, "file": 0.87, "prompt-blame": 0.33, "prompt-files": 0.34}


def epoch_ms(iso: str) -> int:
    return int(datetime.fromisoformat(iso).timestamp() * 1000)


@dataclass
class Log:
    """One session as the queue would hold it."""

    session: Session
    prompts: list[Prompt] = field(default_factory=list)
    waiting: list[Message] = field(default_factory=list)
    earlier: list[Observation] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    fresh: bool = False

    def batch(self) -> Batch:
        first = self.waiting[0].captured_at_epoch
        current = [p for p in self.prompts if p.created_at_epoch <= first][-1:]
        later = [p for p in self.prompts if p.created_at_epoch > first]
        return Batch(
            session=self.session,
            messages=tuple(self.waiting),
            prompts=(*current, *later),
            earlier=tuple(self.earlier[-20:]),
        )


@dataclass
class Text:
    """Characters that came in and that are stored, by kind."""

    came: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)


def events(cache: Path) -> Iterator[dict[str, Any]]:
    if not cache.exists():
        sources = [str(folder) for folder in SESSIONS if folder.exists()]
        with cache.open("wb") as out:
            subprocess.run([sys.executable, str(SHARED / "tools/to_hooks.py"), *sources], stdout=out, check=True)
    with cache.open("rb") as lines:
        for line in lines:
            yield orjson.loads(line)


def incoming(payload: dict[str, Any], event: str) -> Iterator[tuple[str, int]]:
    if event.startswith("PostToolUse"):
        response = payload.get("tool_response", payload.get("error"))
        if isinstance(response, dict):
            response = {key: value for key, value in response.items() if key != "originalFile"}
        yield "inputs", len(orjson.dumps(payload.get("tool_input")).decode())
        yield "responses", len(orjson.dumps(response).decode())
    elif event in {"Stop", "SubagentStop"}:
        yield "last messages", len(payload.get("last_assistant_message") or "")


def is_noise(log: Log, payload: dict[str, Any]) -> bool:
    """What the queue stores as skipped: bookkeeping tools, bare listings, reading the same file again."""
    tool, asked = payload.get("tool_name") or "", payload.get("tool_input")
    asked = asked if isinstance(asked, dict) else {}
    subject = file_read(tool, asked)
    again = subject in log.read
    if subject:
        log.read.add(subject)
    return again or is_bookkeeping(tool, asked, SKIP_TOOLS)


def message_of(number: int, at: int, event: str, payload: dict[str, Any]) -> Message:
    if isinstance(payload.get("tool_response"), dict):
        payload["tool_response"].pop("originalFile", None)
    return Message(
        message_id=number,
        event_key=str(number),
        session_id=payload["session_id"],
        project="cli",
        message_type=MessageType.SUMMARY if event in SUMMARY_EVENTS else MessageType.OBSERVATION,
        hook_event=event,
        tool_name=payload.get("tool_name"),
        client_prompt_id=payload.get("prompt_id"),
        agent_id=payload.get("agent_id"),
        payload=payload,
        captured_at_epoch=at,
        attempts=0,
        crashes=0,
        claim_no=1,
    )


def batches(cache: Path, logs: dict[str, Log], text: Text) -> Iterator[tuple[Log, Batch]]:
    """The batches of the whole replay in time order: flushed at a stop, the next prompt, the end."""
    for number, line in enumerate(events(cache), 1):
        event, payload, at = line["event"], line["payload"], epoch_ms(line["at"])
        session_id = payload["session_id"]
        log = logs.setdefault(
            session_id,
            Log(
                session=Session(
                    session_id=session_id,
                    project="cli",
                    platform="claude-code",
                    cwd=payload.get("cwd") or "",
                    started_at_epoch=at,
                )
            ),
        )
        text.came.update(dict(incoming(payload, event)))
        if event == "UserPromptSubmit":
            text.came["prompts"] += len(payload["prompt"])
            if payload["prompt"].lstrip().startswith("<task-notification>"):
                continue
            if log.waiting:
                yield log, log.batch()
                log.waiting.clear()
            log.prompts.append(
                Prompt(
                    prompt_id=number,
                    session_id=session_id,
                    prompt_number=len(log.prompts) + 1,
                    client_prompt_id=payload.get("prompt_id"),
                    text=payload["prompt"],
                    created_at_epoch=at,
                )
            )
            log.fresh = True
            continue
        closing = event in SUMMARY_EVENTS
        wanted = (
            log.fresh
            if closing
            else (event.startswith("PostToolUse") and not is_noise(log, payload)) or event == "SubagentStop"
        )
        if wanted:
            log.waiting.append(message_of(number, at, event, payload))
            log.fresh = not closing
        if closing and log.waiting:
            yield log, log.batch()
            log.waiting.clear()


def store(db: sqlite3.Connection, log: Log, batch: Batch, made: Compressed, text: Text) -> None:
    captured = {message.message_id: message.captured_at_epoch for message in batch.messages}
    session_id = log.session.session_id
    for draft in made.observations:
        row_id = db.execute("SELECT count(*) FROM observations_fts").fetchone()[0] + 1
        at = max(captured[message_id] for message_id in draft.message_ids)
        facts, concepts = "\n".join(draft.facts), " ".join(draft.concepts)
        files = (" ".join(draft.files_modified), " ".join(draft.files_read))
        texts = (draft.title, draft.subtitle, draft.narrative, facts, concepts)
        text.kept["observations"] += sum(map(len, texts))
        text.kept["(files)"] += sum(map(len, files))
        add(db, "observations", row_id, session_id, at, (*texts, *files, shadow(" ".join((*texts, *files)))))
        log.earlier.append(
            Observation(
                observation_id=row_id,
                session_id=session_id,
                project="cli",
                created_at_epoch=at,
                **{
                    name: getattr(draft, name)
                    for name in [
                        "type",
                        "title",
                        "subtitle",
                        "narrative",
                        "facts",
                        "concepts",
                        "files_read",
                        "files_modified",
                        "metadata",
                    ]
                },
            )
        )
    if (summary := made.summary) is not None:
        fields = (
            summary.request,
            summary.investigated,
            summary.learned,
            summary.completed,
            summary.next_steps,
            summary.notes,
        )
        files = (" ".join(summary.files_edited), " ".join(summary.files_read))
        text.kept["summaries"] += sum(map(len, fields))
        text.kept["(files)"] += sum(map(len, files))
        row_id = db.execute("SELECT count(*) FROM summaries_fts").fetchone()[0] + 1
        at = batch.messages[-1].captured_at_epoch
        add(db, "summaries", row_id, session_id, at, (*fields, *files, shadow(" ".join((*fields, *files)))))


def add(db: sqlite3.Connection, kind: str, row_id: int, session_id: str, at: int, columns: tuple[str, ...]) -> None:
    marks = ",".join("?" * len(columns))
    db.execute(f"INSERT INTO {kind}_fts VALUES ({marks})", columns)
    db.execute(f"INSERT INTO {kind} VALUES (?,?,?)", (row_id, session_id, at))


def replay(cache: Path, db: sqlite3.Connection) -> tuple[Text, dict[str, Any]]:
    text, logs = Text(), dict[str, Log]()
    compressor, spent_s, count = RulesCompressor(), 0.0, 0
    kinds: Counter[str] = Counter()
    edited = defaultdict[str, set[str]](set)
    named = defaultdict[str, set[str]](set)
    for log, batch in batches(cache, logs, text):
        began = time.process_time()
        made = asyncio.run(compressor.compress(batch, strict=False))
        spent_s += time.process_time() - began
        count += len(batch.messages)
        store(db, log, batch, made, text)
        kinds.update(draft.type for draft in made.observations)
        kinds["summary"] += made.summary is not None
        named[log.session.session_id].update(path for draft in made.observations for path in draft.files_modified)
        edited[log.session.session_id].update(edited_paths(batch.messages))
    for log in logs.values():
        for prompt in log.prompts:
            text.kept["prompts"] += len(prompt.text)
            row_id = db.execute("SELECT count(*) FROM prompts").fetchone()[0] + 1
            add(
                db,
                "prompts",
                row_id,
                log.session.session_id,
                prompt.created_at_epoch,
                (prompt.text, shadow(prompt.text)),
            )
    db.executemany("INSERT INTO sessions VALUES (?,?)", [(k, log.session.started_at_epoch) for k, log in logs.items()])
    db.commit()
    silent = [s for s, paths in edited.items() if any(not any(path.endswith(n) for n in named[s]) for path in paths)]
    return text, {"messages": count, "seconds": spent_s, "kinds": kinds, "edits_unnamed": silent}


def edited_paths(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        if message.hook_event == "PostToolUse" and message.tool_name in {
            "Edit",
            "Write",
            "MultiEdit",
            "NotebookEdit",
            "replace",
            "write_file",
        }:
            asked = message.payload.get("tool_input")
            if isinstance(asked, dict) and (path := asked.get("file_path") or asked.get("notebook_path")):
                yield str(path)


def evaluate(index: Index, depth: int = 5) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = defaultdict(list)
    for line in (BENCHMARK / "queries.dev.jsonl").read_bytes().splitlines():
        question = orjson.loads(line)
        before = epoch_ms(question["before"]) if question.get("before") else None
        relevant = {item["session"] for item in question["relevant"]}
        found = index.sessions(question["query"], before=before, without=question.get("asking"))[:depth]
        scores[question["kind"]].append(len(relevant.intersection(found)) / min(depth, len(relevant)))
    return scores


def report(text: Text, facts: dict[str, Any], scores: dict[str, list[float]]) -> None:
    came, kept = sum(text.came.values()), sum(n for kind, n in text.kept.items() if kind != "(files)")
    print(f"messages {facts['messages']}, {facts['messages'] / facts['seconds']:.0f}/s compressing alone")
    print(
        f"made {dict(facts['kinds'])}; sessions with an edit that no observation names: {len(facts['edits_unnamed'])}"
    )
    print(f"text in {came / 1e6:.1f} MB {dict(text.came)}")
    print(f"text stored {kept / 1e6:.2f} MB = {kept / came:.2%} {dict(text.kept)}")
    print(f"{'kind':14}{'n':>5}{'R@5':>8}{'floor':>8}")
    for kind, values in sorted(scores.items()):
        print(f"{kind:14}{len(values):>5}{sum(values) / len(values):>8.3f}{FLOORS.get(kind, float('nan')):>8.2f}")
    every = [value for values in scores.values() for value in values]
    print(f"{'all':14}{len(every):>5}{sum(every) / len(every):>8.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=Path, default=Path("/tmp/replay/events.jsonl"))
    parser.add_argument("--db", default=":memory:", help="where to keep the index; a file can be looked at afterwards")
    options = parser.parse_args()
    if not BENCHMARK.exists():
        sys.exit(f"needs the benchmark folder {BENCHMARK}")
    if options.db != ":memory:":
        Path(options.db).unlink(missing_ok=True)
    db = sqlite3.connect(options.db)
    db.executescript(SCHEMA)
    text, facts = replay(options.events, db)
    report(text, facts, evaluate(Index(db)))


if __name__ == "__main__":
    main()
