"""`gapless status`: what runs, what waits, what is wrong, and what to do about it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.options import Json
from service.cli.output import local_time, megabytes, print_json, print_line, print_pairs
from service.cli.queue import index_in_words

if TYPE_CHECKING:
    from service.core import Core


def status(*, as_json: Json = False) -> None:
    """Show the service, the queue, spend, sizes, and whatever needs a person."""
    from service.cli.queue import with_core

    report = with_core(_report)
    report["problems"] = list(problems(report))
    if as_json:
        print_json(report)
        return
    print_pairs(_rows(report))
    for problem in report["problems"]:
        print_line(f"! {problem}")


async def _report(core: "Core") -> dict[str, Any]:
    from service import liveness
    from service.cli import live
    from service.version import VERSION

    configuration = core.configuration
    found = live.find(configuration)
    readiness = live.readiness(configuration) if found else live.Readiness(ready=False)
    return {
        "version": VERSION,
        "home": str(configuration.home),
        "service": {
            "running": found is not None,
            "ready": readiness.ready,
            "reasons": readiness.reasons,
            "notes": readiness.notes,
            "pid": found and found.pid,
            "address": found and found.address,
            "version": found and found.version,
        },
        "workers": liveness.live_workers(configuration.run),
        "provider": configuration.settings.provider,
        "queue": await core.queue(),
        "database_bytes": database_bytes(configuration.database),
        "fulltext": core.has_fulltext,
    }


def database_bytes(database: Path) -> int:
    """With the write-ahead log, which is part of it."""
    files = (database, database.with_name(f"{database.name}-wal"))
    return sum(path.stat().st_size for path in files if path.exists())


def problems(report: dict[str, Any]) -> Iterator[str]:
    """What is not as it should be, each with what to do."""
    yield from _service_problems(report)
    yield from _queue_problems(report["queue"], report["provider"])
    if not report["fulltext"]:
        yield "this SQLite has no FTS5 (or FTS=off): search is slower and ranks worse"


def _service_problems(report: dict[str, Any]) -> Iterator[str]:
    service, states = report["service"], report["queue"]["states"]
    waiting = states["pending"] + states["processing"]
    if not service["running"]:
        yield "the service does not run, hooks keep events in the spool: `gapless up` starts it"
        return
    if not service["ready"]:
        yield f"the service is not ready: {'; '.join(service['reasons'])}"
    if service["version"] not in {None, report["version"]}:
        yield (
            f"the service is version {service['version']}, this command {report['version']}: "
            "`gapless down`, then `gapless up`"
        )
    if waiting and not report["workers"]:
        yield f"{waiting} messages wait and no worker runs: `gapless work` starts one"


def _queue_problems(queue: dict[str, Any], provider: str) -> Iterator[str]:
    if paused := queue["paused"]:
        until = f" until {local_time(paused['until_epoch'])}" if paused["until_epoch"] else ""
        yield f"compression is paused{until} ({paused['reason']}): {paused['message']}; `gapless queue resume` goes on"
    elif failing := queue["failing"]:
        since = local_time(failing["since_epoch"])
        yield f"the provider {provider} has failed {failing['failures']} times since {since}: {failing['last_error']}"
    if dead := queue["states"]["failed"] - queue["expired"]:
        yield (
            f"{dead} dead letters: `gapless queue list --state failed` says why, "
            "`gapless queue replay --state failed` tries again"
        )
    if queue["expired"]:
        yield f"{queue['expired']} dead letters are older than 90 days; their raw events are gone"
    if queue["rejected"]:
        yield f"{queue['rejected']} events could not be used: `gapless doctor` shows them"
    yield from _index_problems(queue["index"])


def _index_problems(index: dict[str, Any]) -> Iterator[str]:
    if failing := index["failing"]:
        yield (
            f"the vector index has failed {failing['failures']} times since {local_time(failing['since_epoch'])}, "
            f"search goes by words: {failing['last_error']}; it is tried again by itself"
        )
    if given_up := index["given_up"]:
        yield (
            f"{given_up} records could not be indexed by meaning and were given up: `gapless doctor` says why, "
            "`gapless doctor --fix` tries again"
        )


def _rows(report: dict[str, Any]) -> Iterator[tuple[str, object]]:
    service, queue = report["service"], report["queue"]
    state = "not running"
    if service["running"]:
        state = f"{'ready' if service['ready'] else 'not ready'} at {service['address']}, pid {service['pid']}"
    yield "service", state
    if service["notes"]:
        yield "", "; ".join(service["notes"])
    yield "data folder", report["home"]
    yield "database", megabytes(report["database_bytes"])
    yield "provider", report["provider"]
    yield "workers", report["workers"]
    yield "queue", ", ".join(f"{count} {state}" for state, count in queue["states"].items())
    if queue["oldest_pending_age_s"] is not None:
        yield "oldest waiting", f"{queue['oldest_pending_age_s']:.0f} s"
    if not_queued := {reason: count for reason, count in queue["not_queued"].items() if count}:
        yield "not queued", ", ".join(f"{count} {reason}" for reason, count in not_queued.items())
    yield "spool", f"{queue['spool']} waiting, {queue['rejected']} rejected"
    yield "vector index", index_in_words(queue["index"])
    budget = queue["budget"]
    yield (
        "spent today",
        f"{_of(budget['calls'], budget['daily_calls'])} calls, {_of(budget['tokens'], budget['daily_tokens'])} tokens",
    )


def _of(spent: int, limit: int) -> str:
    return f"{spent} of {limit}" if limit else str(spent)
