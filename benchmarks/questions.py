"""Retrieval quality on public question sets: LoCoMo, DevMemBench and CoSQA, through the routes of a running service.

    .venv/bin/python -m benchmarks.questions locomo --url http://127.0.0.1:47700 --token "$(cat ~/.gapless/token)"

Use a throw-away data folder: the memories are stored by POST /api/memories/batch, one project for each conversation or
corpus, and asked for when the vector index has caught up. A question is the raw text; the sessions of an answer stand
in the order of their first hit.
"""

import argparse
import re
import statistics
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

SETS = Path(__file__).resolve().parents[2] / "shared/benchmarks"
HIT_LIMIT = 100
BATCH = 500
INDEXED_WITHIN_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`name` is how the set calls it."""

    name: str
    project: str
    text: str
    session: str | None = None
    created_at_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`memories` or `sessions` are what is to be found, by name; a set may have only one of the two."""

    project: str
    text: str
    memories: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What was found for a question, best first."""

    question: Question
    memories: list[str]
    sessions: list[str]
    mode: str
    took_ms: float


def locomo() -> tuple[list[Memory], list[Question]]:
    """A memory for each turn; questions of categories 1 to 4 with the turns that answer them."""
    memories, questions = list[Memory](), list[Question]()
    for conversation in orjson.loads((SETS / "locomo/locomo5.dev.json").read_bytes()):
        project = conversation["sample_id"]
        turns = list(_turns(project, conversation["conversation"]))
        sessions = {turn.name: str(turn.session) for turn in turns}
        memories += turns
        for asked in conversation["qa"]:
            spoken = {name for evidence in asked["evidence"] for name in re.findall(r"D\d+:\d+", evidence)}
            gold = frozenset(f"{project}/{name}" for name in spoken) & sessions.keys()
            if gold and asked["category"] in range(1, 5):
                found_in = frozenset(sessions[name] for name in gold)
                questions.append(Question(project=project, text=asked["question"], memories=gold, sessions=found_in))
    return memories, questions


def _turns(project: str, conversation: dict[str, Any]) -> Iterator[Memory]:
    numbers = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        began = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").astimezone()
        for turn in conversation[f"session_{number}"]:
            caption = turn.get("blip_caption")
            yield Memory(
                name=f"{project}/{turn['dia_id']}",
                project=project,
                text=f"{turn['speaker']}: {turn['text']}" + (f" [image: {caption}]" if caption else ""),
                session=f"{project}-session-{number}",
                created_at_epoch=round(began.timestamp() * 1000),
            )


def devmembench() -> tuple[list[Memory], list[Question]]:
    """A memory for each message; questions that have an answer, with the sessions that hold it."""
    memories = [
        Memory(
            name=f"{session['sessionId']}/{number}",
            project="devmembench",
            text=message["content"],
            session=session["sessionId"],
            created_at_epoch=round(datetime.fromisoformat(session["metadata"]["date"]).timestamp() * 1000) + number,
        )
        for session in orjson.loads((SETS / "devmembench/sessions.json").read_bytes())
        for number, message in enumerate(session["messages"])
    ]
    questions = [
        Question(project="devmembench", text=asked["question"], sessions=frozenset(asked["haystackSessionIds"]))
        for asked in orjson.loads((SETS / "devmembench/questions.dev.json").read_bytes())
        if asked["haystackSessionIds"]
    ]
    return memories, questions


def cosqa() -> tuple[list[Memory], list[Question]]:
    """A memory for each function; questions with the one that answers them."""
    numbers: dict[str, int] = orjson.loads((SETS / "cosqa/code_idx_map.txt").read_bytes())
    memories = [
        Memory(name=str(number), project="cosqa", text=code)
        for code, number in sorted(numbers.items(), key=lambda item: item[1])
    ]
    questions = [
        Question(project="cosqa", text=asked["doc"], memories=frozenset({str(asked["retrieval_idx"])}))
        for asked in orjson.loads((SETS / "cosqa/cosqa-retrieval-dev-500.json").read_bytes())
    ]
    return memories, questions


READ = {"locomo": locomo, "devmembench": devmembench, "cosqa": cosqa}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    url: str
    token: str

    def ask(self, path: str, *, body: object = None, **params: str) -> Any:
        address = f"{self.url.rstrip('/')}{path}?{urllib.parse.urlencode(params)}"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else orjson.dumps(body)
        with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as answer:
            return orjson.loads(answer.read())

    def store(self, memories: Sequence[Memory]) -> dict[int, str]:
        """The names of the memories by their ids."""
        names: dict[int, str] = {}
        for start in range(0, len(memories), BATCH):
            some = memories[start : start + BATCH]
            ids = self.ask("/api/memories/batch", body=[_body(memory) for memory in some])["ids"]
            names |= dict(zip(ids, (memory.name for memory in some), strict=True))
        return names

    def wait_until_indexed(self) -> None:
        """With CHROMA=off nothing is waited for."""
        deadline = time.monotonic() + INDEXED_WITHIN_S
        while self.ask("/api/queue")["index"]["lag"]:
            if time.monotonic() > deadline:
                sys.exit("the vector index does not catch up; see `gapless status`")
            time.sleep(1)

    def answered(self, question: Question, names: dict[int, str]) -> Answered:
        began = time.perf_counter()
        answer = self.ask("/api/search", query=question.text, project=question.project, limit=str(HIT_LIMIT))
        hits = answer["results"]
        return Answered(
            question=question,
            memories=[names[hit["id"]] for hit in hits],
            sessions=list(dict.fromkeys(hit["session_id"] for hit in hits)),
            mode=answer["mode"],
            took_ms=(time.perf_counter() - began) * 1000,
        )


def _body(memory: Memory) -> dict[str, Any]:
    body = {
        "text": memory.text,
        "project": memory.project,
        "session_id": memory.session,
        "created_at_epoch": memory.created_at_epoch,
    }
    return {name: value for name, value in body.items() if value is not None}


def share_found(wanted: frozenset[str], found: Sequence[str]) -> float:
    return len(wanted.intersection(found)) / len(wanted)


def reciprocal_rank(wanted: frozenset[str], found: Sequence[str]) -> float:
    return next((1 / rank for rank, name in enumerate(found, 1) if name in wanted), 0.0)


def report(answers: Sequence[Answered]) -> None:
    def line(what: str, values: Sequence[float]) -> None:
        print(f"{what:20}{100 * statistics.fmean(values):>7.1f}")

    modes = {mode: sum(answer.mode == mode for answer in answers) for mode in {answer.mode for answer in answers}}
    print(f"{len(answers)} questions, answered by {modes}")
    if all(answer.question.memories for answer in answers):
        for depth in (5, 10, 20):
            line(f"memories R@{depth}", [share_found(a.question.memories, a.memories[:depth]) for a in answers])
        line("memories MRR@10", [reciprocal_rank(a.question.memories, a.memories[:10]) for a in answers])
    if all(answer.question.sessions for answer in answers):
        for depth in (1, 5, 10):
            line(f"sessions R@{depth}", [share_found(a.question.sessions, a.sessions[:depth]) for a in answers])
        line("sessions MRR", [reciprocal_rank(a.question.sessions, a.sessions) for a in answers])
    took = sorted(answer.took_ms for answer in answers)
    print(f"p50 {took[len(took) // 2]:.0f} ms, p95 {took[len(took) * 95 // 100]:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=READ)
    parser.add_argument("--url", required=True, help="address of a running service with a throw-away data folder")
    parser.add_argument("--token", required=True, help="its bearer token")
    options = parser.parse_args()
    if not SETS.exists():
        sys.exit(f"needs the benchmark folder {SETS}")
    memories, questions = READ[options.set]()
    service = Service(url=options.url, token=options.token)
    names = service.store(memories)
    service.wait_until_indexed()
    report([service.answered(question, names) for question in questions])


if __name__ == "__main__":
    main()
