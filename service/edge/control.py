"""The queue and the settings, as a person steers them."""

from typing import Any

from service import due, inspection, providers, settings_file
from service.clock import now_ms
from service.database import Reader
from service.edge.operations import Call, Nothing
from service.edge.parameters import MessagesPage, Replay, SettingsChange
from service.edge.reading import named, paged
from service.inspection import Selection
from service.settings import Configuration

NEEDS_RESTART = ("HOST", "PORT", "DATABASE_URL", "CHROMA")
"""Settings of what is opened once, at the start (semantics: HTTP details)."""

WRITABLE = ("settings.toml", "default")
"""Sources of a setting that a change of the file has an effect on."""


async def show_queue(call: Call[Nothing, Nothing]) -> object:
    return await call.edge.core.queue()


async def list_messages(call: Call[MessagesPage, Nothing]) -> object:
    page = call.query

    def read(reader: Reader) -> tuple[int, list[dict[str, Any]]]:
        project = named(reader, page.project)
        return inspection.messages(
            reader, state=page.state, session=page.session, project=project, limit=page.limit, offset=page.offset
        )

    return paged(page, *await call.edge.core.database.read(read))


async def show_message(call: Call[Nothing, Nothing]) -> object:
    message_id = call.number("message_id")
    return await call.edge.core.database.read(lambda reader: inspection.message(reader, message_id))


async def replay(call: Call[Nothing, Replay]) -> object:
    asked, database = call.body, call.edge.core.database
    project = await database.read(lambda reader: named(reader, asked.project))
    selection = Selection(
        ids=None if asked.ids is None else tuple(asked.ids),
        state=asked.state,
        session=asked.session,
        project=project,
        since=asked.since,
        until=asked.until,
    )
    ids = await database.write(lambda tx: inspection.replay(tx, selection, dry_run=asked.dry_run, now=now_ms()))
    call.edge.wake()
    return {"dry_run": asked.dry_run, "messages": len(ids), "ids": ids}


async def pause(call: Call[Nothing, Nothing]) -> object:
    await call.edge.core.database.write(lambda tx: providers.pause_by_hand(tx, now=now_ms()))
    return {"paused": True}


async def resume(call: Call[Nothing, Nothing]) -> object:
    ended = await call.edge.core.database.write(lambda tx: providers.resume(tx, now=now_ms()))
    call.edge.wake()
    return {"paused": False, "ended": ended}


async def flush(call: Call[Nothing, Nothing]) -> object:
    sessions = await call.edge.core.database.write(lambda tx: due.flush(tx, now=now_ms()))
    call.edge.wake()
    return {"sessions": sessions}


async def show_settings(call: Call[Nothing, Nothing]) -> object:
    return _shown(call.edge.core.configuration)


async def change_settings(call: Call[Nothing, SettingsChange]) -> object:
    """Written to settings.toml; what a flag or the environment sets stays in force, and the answer says so."""
    edge = call.edge
    before = edge.core.configuration
    changed = settings_file.change(before, call.body.root)
    await edge.core.take_up_settings()
    after = edge.core.configuration
    edge.reload()
    return {
        **_shown(after),
        "changed": sorted(changed),
        "overridden": sorted(name for name in changed if after.sources[name.lower()] not in WRITABLE),
        "needs_restart": [name for name in NEEDS_RESTART if name in changed],
    }


def _shown(configuration: Configuration) -> dict[str, object]:
    sources = {name.upper(): source for name, source in configuration.sources.items()}
    return {"settings": configuration.masked(), "sources": sources}
