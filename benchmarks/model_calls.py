"""How many model calls the recorded sessions cost at their recorded spacing: the real queue under a virtual clock.

    python -m benchmarks.model_calls [--data ../shared]

Every function of the queue takes the time as an argument, so days of work pass in a minute and no model is asked: a
claim is a call. Prints calls for each 100 messages (accepted events, noise included).
"""

import argparse
import sqlite3
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from benchmarks.replay import PROJECT, ROOT, recorded
from service import completion, inspection, intake, retention
from service.completion import Idle, Terms
from service.core import flush_policy, prepare_database
from service.database import Tx, open_writable
from service.intake import Envelope, House, Skip
from service.models import Batch, Compressed
from service.providers import Budget
from service.settings import Settings, load

SWEEP_MS = 60_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared")
    options = parser.parse_args()
    if not options.data.is_dir():
        sys.exit(f"{options.data} is not there: the recorded sessions are kept beside the checkout")
    with tempfile.TemporaryDirectory() as scratch:
        configuration = load(home=Path(scratch), environment={}, flags={"provider": "anthropic"})
        prepare_database(configuration.database, settings=configuration.settings, backups=Path(scratch))
        connection = open_writable(configuration.database)
        connection.execute("PRAGMA synchronous = OFF")
        print(run(connection, configuration.settings, options.data))


def run(connection: sqlite3.Connection, settings: Settings, data: Path) -> str:
    house = House(own_folder="/nowhere", skip_tools=settings.skipped_tools, locate=lambda ref: ref)
    policy = flush_policy(settings)
    tx = Tx(connection)
    terms = Terms(
        worker="benchmark",
        provider=settings.provider,
        policy=policy,
        limit=settings.batch_events,
        lease_ms=round(settings.lease_s * 1000),
        budget=Budget(calls=0, tokens=0),
    )
    calls = swept = 0
    connection.execute("BEGIN")
    for record in recorded(data):
        at = int(datetime.fromisoformat(record["at"]).timestamp() * 1000)
        if at - swept > SWEEP_MS:
            retention.close_idle_sessions(tx, idle_ms=settings.session_idle_min * 60_000, now=at)
            swept = at
        calls += compress_due(tx, terms, until=at)
        event = intake.prepare(record["payload"], 0, Envelope(captured_at=at, project=PROJECT), house, now=at)
        if not isinstance(event, Skip):
            intake.accept(tx, event, policy, now=at)
    retention.close_idle_sessions(tx, idle_ms=0, now=at + 1)
    calls += compress_due(tx, terms, until=at + 10**9)
    connection.execute("COMMIT")
    messages = tx.value("SELECT count(*) FROM pending_messages")
    waiting = tx.value("SELECT count(*) FROM pending_messages WHERE state IN ('pending', 'processing')")
    return f"{calls} calls for {messages} messages: {100 * calls / messages:.1f} per 100; {waiting} still waiting"


def compress_due(tx: Tx, terms: Terms, *, until: int) -> int:
    """Claim everything that falls due up to `until`, each at its own time; the number of claims."""
    calls = 0
    while True:
        due = tx.value(inspection.OLDEST_DUE)
        if due is None or due > until:
            return calls
        batch = completion.claim_batch(tx, terms, held=(), now=due)
        if isinstance(batch, Idle):
            continue
        assert isinstance(batch, Batch)
        completion.complete(tx, batch, Compressed(), provider=terms.provider, window_ms=0, now=due)
        calls += 1


if __name__ == "__main__":
    main()
