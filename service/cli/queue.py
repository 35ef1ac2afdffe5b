"""`gapless queue …`: what waits, what failed and why, and driving it again."""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from service.cli.options import Json, moment
from service.cli.output import complain, local_time, print_json, print_line, print_pairs, print_table

if TYPE_CHECKING:
    from service.core import Core
    from service.settings import Configuration

T = TypeVar("T")

WAIT_S = 300.0
LOOK_AGAIN_S = 0.1
NO_WORKER_S = 3.0
"""How long `queue wait` believes that a worker is about to start."""
STATES = "pending, processing, done, skipped or failed"

State = Annotated[str | None, typer.Option(help=f"Only this state: {STATES}.")]
Session = Annotated[str | None, typer.Option(help="Only this session (the client's own id).")]
Project = Annotated[str | None, typer.Option(help="Only this project, by name or key.")]

app = typer.Typer(help="The queue: what waits, what failed and why, and driving it again.", no_args_is_help=True)


def with_core(work: Callable[["Core"], Awaitable[T]], configuration: "Configuration | None" = None) -> T:
    """Open a data folder, the user's own if none is given, for one piece of work and close it again."""
    import asyncio

    from service.core import Core
    from service.settings import load

    async def run() -> T:
        core = Core.open(configuration or load(), starts_vectors=False)
        try:
            return await work(core)
        finally:
            await core.close()

    return asyncio.run(run())


@app.command("status")
def show_status(*, as_json: Json = False) -> None:
    """Count the messages by state, and say what holds them up."""
    queue = with_core(lambda core: core.queue())
    if as_json:
        print_json(queue)
        return
    print_table(("state", "messages"), queue["states"].items())
    paused = queue["paused"]
    print_line(f"paused: {paused['message']} ({paused['reason']})" if paused else "not paused")
    print_line(f"spool: {queue['spool']} waiting, {queue['rejected']} rejected")
    print_line(f"index: {index_in_words(queue['index'])}")


@app.command("list")
def show_list(
    *,
    state: State = None,
    session: Session = None,
    project: Project = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    offset: Annotated[int, typer.Option(min=0)] = 0,
    as_json: Json = False,
) -> None:
    """List messages, newest first."""
    from service import inspection

    async def read(core: "Core") -> tuple[int, list[dict[str, Any]]]:
        named = await _named(core, project)
        return await core.database.read(
            lambda reader: inspection.messages(
                reader, state=_state(state), session=session, project=named, limit=limit, offset=offset
            )
        )

    total, rows = with_core(read)
    if as_json:
        print_json({"total": total, "limit": limit, "offset": offset, "results": rows})
        return
    columns = ("id", "state", "reason", "event", "tool", "project", "captured", "attempts", "error")
    print_table(columns, (_row(row) for row in rows))
    print_line(f"{len(rows)} of {total}")


@app.command("show")
def show_message(message_id: Annotated[int, typer.Argument(metavar="ID")], *, as_json: Json = False) -> None:
    """Show one message with its stored payload."""
    from service import inspection

    async def read(core: "Core") -> dict[str, Any]:
        return await core.database.read(lambda reader: inspection.message(reader, message_id))

    message = with_core(read)
    if as_json:
        print_json(message)
        return
    payload = message.pop("payload")
    print_pairs(message.items())
    if payload is None:
        print_line("its payload is older than RETENTION_DAYS and gone")
    else:
        print_json(payload)


@app.command("replay")
def replay(
    ids: Annotated[list[int] | None, typer.Argument(metavar="[ID]…", show_default=False)] = None,
    *,
    state: State = None,
    session: Session = None,
    project: Project = None,
    since: Annotated[str | None, typer.Option(help="Captured at this time or later (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option(help="Captured at this time or earlier (ISO 8601).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be replayed.")] = False,
    as_json: Json = False,
) -> None:
    """Put finished messages back into the queue; what they make then replaces what they made before."""
    from service import inspection
    from service.clock import now_ms

    async def put_back(core: "Core") -> list[int]:
        selection = inspection.Selection(
            ids=tuple(ids) if ids else None,
            state=_state(state),
            session=session,
            project=await _named(core, project),
            since=moment("since", since),
            until=moment("until", until),
        )
        return await core.database.write(lambda tx: inspection.replay(tx, selection, dry_run=dry_run, now=now_ms()))

    replayed = with_core(put_back)
    if as_json:
        print_json({"dry_run": dry_run, "messages": len(replayed), "ids": replayed})
    else:
        print_line(f"{len(replayed)} messages {'would be replayed' if dry_run else 'are in the queue again'}")


@app.command("pause")
def pause() -> None:
    """Stop compressing until `gapless queue resume`; events are still taken."""
    from service import providers
    from service.clock import now_ms

    with_core(lambda core: core.database.write(lambda tx: providers.pause_by_hand(tx, now=now_ms())))
    print_line("paused, events are still taken; `gapless queue resume` goes on")


@app.command("resume")
def resume() -> None:
    """End every pause, of a person or a provider, and make what was put off due at once."""
    from service import providers
    from service.clock import now_ms

    with_core(lambda core: core.database.write(lambda tx: providers.resume(tx, now=now_ms())))
    print_line("nothing is paused")


@app.command("flush")
def flush(*, as_json: Json = False) -> None:
    """Make everything that waits due now."""
    sessions = with_core(_flush)
    if as_json:
        print_json({"sessions": sessions})
    else:
        print_line(f"{sessions} sessions are due now")


@app.command("wait")
def wait(
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")] = WAIT_S, *, as_json: Json = False
) -> None:
    """Flush what is open and wait until nothing waits or is in work and the vector index has caught up; dead letters
    and records the index gave up don't count."""
    reason = with_core(lambda core: until_drained(core, timeout_s=timeout))
    if as_json:
        print_json({"drained": reason is None, "reason": reason})
    elif reason is None:
        print_line("nothing waits")
    if reason is not None:
        complain(reason)
        raise typer.Exit(1)


async def until_drained(core: "Core", *, timeout_s: float) -> str | None:
    """None when the queue and the spool are empty and the index has caught up, else why not, with what to do."""
    import asyncio

    from service import liveness

    deadline = time.monotonic() + timeout_s
    last_worker = time.monotonic()
    while True:
        await _flush(core)
        queue = await core.queue()
        states = queue["states"]
        waiting = states["pending"] + states["processing"] + queue["spool"]
        lag = queue["index"]["lag"]
        if not waiting and not lag:
            return None
        now = time.monotonic()
        if liveness.live_workers(core.configuration.run):
            last_worker = now
        if (reason := _stuck(queue, left_s=deadline - now)) is not None:
            return reason
        if now - last_worker >= min(NO_WORKER_S, timeout_s):
            return f"{_what(waiting, lag)} and no worker runs: `gapless up` starts the service, `gapless work` a worker"
        if now >= deadline:
            return f"{_what(waiting, lag)} after {timeout_s:g} s: `gapless status` says what holds them up"
        await asyncio.sleep(LOOK_AGAIN_S)


def _stuck(queue: dict[str, Any], *, left_s: float) -> str | None:
    """A pause that does not end in time, only one that does is worth waiting for; or an index that is broken."""
    from service.clock import now_ms

    failing = queue["index"]["failing"]
    if failing and failing["broken"]:
        return f"the vector index is broken: {failing['last_error']}"
    paused = queue["paused"]
    if paused is None or queue["states"]["processing"]:
        return None
    until = paused["until_epoch"]
    if until is not None and until - now_ms() < left_s * 1000:
        return None
    return f"compression is paused ({paused['reason']}): {paused['message']}"


def _what(waiting: int, lag: int) -> str:
    return f"{waiting} events wait" if waiting else f"{lag} records wait for the vector index"


def index_in_words(index: dict[str, Any]) -> str:
    """The report of the vector index (`watermarks.report`) on a line."""
    if not index["in_use"]:
        return "not in use (CHROMA=off)"
    return f"{index['lag']} waiting, {index['gaps']} gaps, {index['given_up']} of them given up"


async def _named(core: "Core", project: str | None) -> str | None:
    """The name of a project given by name or key; an unknown one stays as it is and matches nothing."""
    from service import projects

    if project is None:
        return None
    return await core.database.read(lambda reader: projects.find(reader, project)) or project


async def _flush(core: "Core") -> int:
    from service import due
    from service.clock import now_ms

    return await core.database.write(lambda tx: due.flush(tx, now=now_ms()))


def _state(given: str | None) -> str | None:
    from service.errors import InvalidInput
    from service.models import MessageState

    if given is not None and given not in set(MessageState):
        raise InvalidInput(f"there is no state {given!r}; use {STATES}", field="state")
    return given


def _row(message: dict[str, Any]) -> tuple[object, ...]:
    names = ("id", "state", "reason", "hook_event", "tool_name", "project")
    return (
        *(message[name] for name in names),
        local_time(message["captured_at_epoch"]),
        message["attempts"],
        message["error"],
    )
