"""Kill the service with SIGKILL at random moments while events come in; then count what is missing or double.

    python -m benchmarks.crash [--events 2000] [--kills 200] [--seed 1] [--source recorded|synthetic]

Events go through the hooks' own code: posted, and written to the spool when nobody answered. The same events are first
given to a service that nobody disturbs; in the end both databases must hold the same events, each once, and sessions of
which no batch crashed twice (such batches are taken apart) the same observations.
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import replay
from hooks import envelope, secrets, spool, transport
from hooks.envelope import Envelope

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CLIENTS = 4
POST_S = 0.3  # as the hooks wait
DRAIN_S = 120.0
LIFE_S = 1.5  # the longest life that ends at any moment
STRIKE_S = 0.01  # … after a post began, or after a Stop was answered
ALONE_AFTER_CRASHES = 2

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`delivery` is the same in both runs: it is the identity of events without ids of the client's."""

    captured_ms: int
    delivery: str
    payload: Payload

    def envelope(self) -> Envelope:
        headers = envelope.stamp(client="claude-code", captured_ms=self.captured_ms)
        headers |= {envelope.PROJECT_OVERRIDE: "crash", envelope.DELIVERY: self.delivery}
        return Envelope(headers, json.dumps(self.payload).encode())


def recorded(data: Path, count: int) -> list[Event]:
    """Whole turns, prompt to Stop, without what depends on the order of arrival: second reads and session ends."""
    turns: dict[str, list[Event]] = defaultdict(list)
    seen: set[str] = set()
    events: list[Event] = []
    for record in replay.recorded(data):
        name, payload, session_id = record["event"], record["payload"], record["payload"]["session_id"]
        read = payload.get("tool_name") == "Read" and f"{session_id} {payload['tool_input'].get('file_path')}"
        if name in ("SessionEnd", "PreCompact") or (read and read in seen):
            continue
        seen.add(read or "")
        if name == "UserPromptSubmit":
            turns[session_id] = []
        delivery = f"{len(seen):032x}"
        seen.add(delivery)
        captured_ms = int(datetime.fromisoformat(record["at"]).timestamp() * 1000)
        turns[session_id].append(Event(captured_ms=captured_ms, delivery=delivery, payload=payload))
        if name == "Stop":
            turn = turns.pop(session_id)
            events += turn if turn[0].payload["hook_event_name"] == "UserPromptSubmit" else []
        if len(events) >= count:
            break
    return events


def synthetic(count: int) -> list[Event]:
    """Turns of ten sessions: a prompt, edits, a failing and a passing test, a Stop that says what was done."""
    events: list[Event] = []
    for turn in range(count // 6 + 1):
        session = {"session_id": f"session-{turn % 10}", "cwd": "/nowhere/shop", "prompt_id": f"p{turn}"}
        steps: list[Payload] = [
            {"hook_event_name": "UserPromptSubmit", "prompt": f"make the cart number {turn} work"},
            *(
                {
                    "hook_event_name": "PostToolUse",
                    "tool_name": "Edit",
                    "tool_use_id": f"edit-{turn}-{part}",
                    "tool_input": {
                        "file_path": f"/nowhere/shop/cart_{turn}_{part}.py",
                        "old_string": "total = 0",
                        "new_string": f"total = price * {turn}",
                    },
                    "tool_response": {"filePath": f"/nowhere/shop/cart_{turn}_{part}.py"},
                }
                for part in range(2)
            ),
            {
                "hook_event_name": "PostToolUseFailure",
                "tool_name": "Bash",
                "tool_use_id": f"red-{turn}",
                "tool_input": {"command": "pytest -q"},
                "error": f"Exit code 1\nFAILED test_cart.py::test_total_{turn} - assert {turn} == 0\n1 failed",
            },
            {
                "hook_event_name": "PostToolUse",
                "tool_name": "Bash",
                "tool_use_id": f"green-{turn}",
                "tool_input": {"command": "pytest -q"},
                "tool_response": {"stdout": f"{turn + 3} passed in 0.10s", "stderr": ""},
            },
            {"hook_event_name": "Stop", "last_assistant_message": f"Cart {turn} multiplies its price now."},
        ]
        at = 1_700_000_000_000 + turn * 120_000
        events += [
            Event(captured_ms=at + 1_000 * n, delivery=f"{len(events) + n:032x}", payload={**session, **step})
            for n, step in enumerate(steps)
        ]
    return events[: count // 6 * 6]


@dataclass(slots=True)
class Service:
    """The real service on a data folder, as a process that can be killed and started again."""

    home: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {"PATH": os.defpath, "HOME": str(self.home.parent), "GAPLESS_HOME": str(self.home)}
        environment |= {"GAPLESS_CHROMA": "off", "GAPLESS_PORT": "0"}
        log = (self.home.parent / "service.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-m", "service.cli", "serve"], env=environment, stdout=log, stderr=log, cwd=ROOT
            )

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + DRAIN_S
        while not (self.home / "run" / "port").exists() or not self._answers():
            assert self.process is not None
            assert self.process.poll() is None, f"the service ended: see {self.home.parent}/service.log"
            assert time.monotonic() < deadline, "the service does not answer"
            time.sleep(0.005)

    def _answers(self) -> bool:
        probe = Envelope(
            envelope.stamp(client="probe", captured_ms=1), b'{"hook_event_name":"Probe","session_id":"probe"}'
        )
        try:
            return transport.post(str(self.home), probe, within_s=1.0)[0] in transport.TAKEN
        except transport.Away:
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=35) == 0, "an orderly stop failed"

    def read(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{(self.home / 'gapless.db').as_uri()}?mode=ro", uri=True, timeout=30)


@dataclass(slots=True)
class Clients:
    """Hand over events, each session in order, as the hooks do; each event takes one of `permits`."""

    service: Service
    permits: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    counts: Counter[str] = field(default_factory=Counter)
    strike_at: str = ""
    posts_before_strike: int = 0
    struck: threading.Event = field(default_factory=threading.Event)

    def run(self, events: Sequence[Event]) -> list[threading.Thread]:
        sessions: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            sessions[event.payload["session_id"]].append(event)
        lanes: list[list[Event]] = [[] for _ in range(CLIENTS)]
        for own in sorted(sessions.values(), key=len, reverse=True):
            min(lanes, key=len).extend(own)
        threads = [threading.Thread(target=self._hand_over, args=(lane,), daemon=True) for lane in lanes]
        for thread in threads:
            thread.start()
        return threads

    def _hand_over(self, events: Iterable[Event]) -> None:
        for event in events:
            self.permits.acquire()
            self._one(event)

    def _one(self, event: Event) -> None:
        home, sent = str(self.service.home), event.envelope()
        if self.strike_at == "post":
            self._strike()
        try:
            status, _ = transport.post(home, sent, within_s=POST_S)
        except transport.Away:
            self.counts["spooled"] += 1
            self.counts["committed, never answered"] += self._is_stored(event)
            spool.write(home, Envelope(sent.headers, secrets.redact_json_bytes(sent.body)))
            return
        assert status in transport.TAKEN, status
        self.counts["answered"] += 1
        if self.strike_at == "stop" and event.payload["hook_event_name"] == "Stop":
            self._strike()

    def _strike(self) -> None:
        self.posts_before_strike -= 1
        if self.posts_before_strike < 0:
            self.strike_at = ""
            self.struck.set()

    def _is_stored(self, event: Event) -> bool:
        payload = event.payload
        key = f"{payload['hook_event_name']}/{payload['session_id']}/{payload.get('tool_use_id')}"
        with closing(self.service.read()) as connection:
            found = "SELECT 1 FROM pending_messages WHERE event_key = ?"
            return connection.execute(found, (key,)).fetchone() is not None


def play(home: Path, events: Sequence[Event], *, kills: int, seed: int) -> tuple[Counter[str], float]:
    """Hand all events over while the service dies `kills` times, then wait until all is worked off."""
    service = Service(home)
    service.start()
    try:
        return _play(service, events, kills=kills, chance=random.Random(seed))
    finally:
        service.kill()


def _play(
    service: Service, events: Sequence[Event], *, kills: int, chance: random.Random
) -> tuple[Counter[str], float]:
    service.wait_until_it_answers()
    began = time.monotonic()
    clients = Clients(service)
    threads = clients.run(events)
    for kill in range(kills):
        share = len(events) * (kill + 1) // kills - len(events) * kill // kills
        _await_a_moment(clients, chance, kill, share=share - share // 4)
        service.kill()
        clients.permits.release(max(1, share // 4))
        service.start()
    clients.permits.release(len(events))
    for thread in threads:
        thread.join()
    service.wait_until_it_answers()
    _work_off(service)
    service.end()
    return clients.counts, time.monotonic() - began


def _await_a_moment(clients: Clients, chance: random.Random, kill: int, *, share: int) -> None:
    """Of four deaths one comes at any moment of a life, start-up included, and three while an event is posted or just
    after a Stop was answered, when its turn is compressed."""
    kind = ("any", "post", "stop", "post")[kill % 4]
    if kind == "any":
        clients.permits.release(max(1, share))
        time.sleep(chance.uniform(0, LIFE_S))
        return
    clients.service.wait_until_it_answers()
    clients.struck.clear()
    clients.posts_before_strike = chance.randrange(share) if kind == "post" and share else 0
    clients.strike_at = kind
    clients.permits.release(max(1, share))
    clients.struck.wait(LIFE_S / 2)
    time.sleep(chance.uniform(0, STRIKE_S))


def _work_off(service: Service) -> None:
    deadline = time.monotonic() + DRAIN_S
    waiting = "SELECT count(*) FROM pending_messages WHERE state IN ('pending', 'processing')"
    while True:
        with closing(service.read()) as connection:
            left = connection.execute(waiting).fetchone()[0] + len(spool.pending(str(service.home)))
        if not left:
            return
        assert time.monotonic() < deadline, f"{left} events still wait"
        time.sleep(0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a database holds in the end."""

    messages: dict[str, tuple[str, str | None]]
    prompts: list[str]
    observations: Counter[tuple[Any, ...]]
    taken_apart: set[str]
    crashes: int
    integrity: str
    spooled: int

    @classmethod
    def of(cls, home: Path) -> "Outcome":
        with closing(sqlite3.connect(home / "gapless.db")) as connection:
            rows = connection.execute("SELECT id, event_key, state, reason, session_id, crashes FROM pending_messages")
            messages = {row[0]: row[1:] for row in rows}
            prompts = connection.execute("SELECT session_id, text FROM user_prompts ORDER BY 1, 2").fetchall()
            made = connection.execute("SELECT session_id, title, narrative, source_message_ids FROM observations")
            observations = Counter(
                (*row[:3], tuple(sorted(messages[source][0] for source in json.loads(row[3])))) for row in made
            )
            return cls(
                messages={key: (state, reason) for key, state, reason, _, _ in messages.values()},
                prompts=[f"{session} {text}" for session, text in prompts],
                observations=observations,
                taken_apart={row[3] for row in messages.values() if row[4] >= ALONE_AFTER_CRASHES},
                crashes=sum(row[4] for row in messages.values()),
                integrity=connection.execute("PRAGMA integrity_check").fetchone()[0],
                spooled=len(spool.pending(str(home))) + len(spool.rejected(str(home))),
            )


def differences(calm: Outcome, stormy: Outcome) -> Iterator[str]:
    """What a crash lost, doubled or changed, in words; nothing when all is well."""
    if stormy.integrity != "ok":
        yield f"the database is damaged: {stormy.integrity}"
    if stormy.spooled:
        yield f"{stormy.spooled} events are left in the spool"
    if lost := calm.messages.keys() - stormy.messages.keys():
        yield f"{len(lost)} events are lost, such as {min(lost)}"
    if extra := stormy.messages.keys() - calm.messages.keys():
        yield f"{len(extra)} events are there that never were, such as {min(extra)}"
    if calm.prompts != stormy.prompts:
        yield f"{len(stormy.prompts)} prompts instead of {len(calm.prompts)}"
    if dead := [key for key, (state, _) in stormy.messages.items() if state not in ("done", "skipped")]:
        yield f"{len(dead)} events are not done, such as {dead[0]}"
    if double := [made for made, times in stormy.observations.items() if times > 1]:
        yield f"{len(double)} observations are there twice, such as {double[0][:2]}"
    for more, less, what in (
        (calm.observations, stormy.observations, "missing"),
        (stormy.observations, calm.observations, "new"),
    ):
        whole = [made for made in (more - less) if made[0] not in stormy.taken_apart]
        if whole:
            yield f"{len(whole)} observations are {what}, such as {whole[0]}"


def compare(events: Sequence[Event], *, kills: int, seed: int, folder: Path) -> tuple[list[str], dict[str, object]]:
    """(differences, figures) of a calm and a stormy run of the same events in new data folders below `folder`."""
    homes = [folder / name / "home" for name in ("calm", "stormy")]
    for home in homes:
        home.mkdir(parents=True, mode=0o700)
    play(homes[0], events, kills=0, seed=seed)
    counts, took_s = play(homes[1], events, kills=kills, seed=seed)
    calm, stormy = map(Outcome.of, homes)
    figures: dict[str, object] = {
        "events": len(events),
        "sessions": len({event.payload["session_id"] for event in events}),
        "kills": kills,
        **counts,
        "claims lost to kills (messages)": stormy.crashes,
        "sessions with a batch taken apart": len(stormy.taken_apart),
        "messages": len(stormy.messages),
        "observations": stormy.observations.total(),
        "… undisturbed": calm.observations.total(),
        "took (s)": round(took_s, 1),
    }
    return list(differences(calm, stormy)), figures


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--events", type=int, default=2_000)
    arguments.add_argument("--kills", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--source", choices=("recorded", "synthetic"), default="recorded")
    given = arguments.parse_args()
    if given.source == "recorded" and not SHARED.is_dir():
        sys.exit(
            f"{SHARED} is not there: recorded sessions are kept beside the checkout; --source synthetic needs none"
        )
    events = recorded(SHARED, given.events) if given.source == "recorded" else synthetic(given.events)
    with tempfile.TemporaryDirectory() as folder:
        found, figures = compare(events, kills=given.kills, seed=given.seed, folder=Path(folder))
    for name, value in figures.items():
        print(f"| {name} | {value} |")
    for difference in found:
        print(f"WRONG: {difference}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
