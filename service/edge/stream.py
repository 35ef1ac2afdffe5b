"""`/stream`: the outbox as server-sent events, resumable by id."""

import asyncio
import importlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import orjson
import structlog

from service import outbox
from service.edge.operations import Call, Nothing
from service.edge.state import Edge

log = structlog.get_logger()

HEARTBEAT_S = 15
SLOW_READER_S = 20.0
"""A reader that takes nothing for so long is dropped; it can resume by its last id."""
ROWS = 200

Event = dict[str, Any]


async def stream(call: Call[Nothing, Nothing]) -> object:
    # here and not above: its import costs a tenth of a cold start
    sse = await asyncio.to_thread(importlib.import_module, "sse_starlette")
    cursor = await _cursor(call.edge, call.request.headers.get("last-event-id"))
    return sse.EventSourceResponse(
        _events(call.edge, cursor),
        ping=HEARTBEAT_S,
        ping_message_factory=lambda: sse.ServerSentEvent(comment="heartbeat", sep="\n"),
        send_timeout=SLOW_READER_S,
        sep="\n",
    )


async def _cursor(edge: Edge, last_event_id: str | None) -> int:
    """The id after which the stream goes on; -1 when what the client saw last is not ours."""
    _, newest = await edge.core.database.read(outbox.ends)
    if last_event_id is None:
        return newest
    seen = int(last_event_id) if last_event_id.isascii() and last_event_id.isdigit() else -1
    return seen if seen <= newest else -1


async def _events(edge: Edge, cursor: int) -> AsyncIterator[Event]:
    feed, told = edge.feed, None
    with feed.joined():
        while not edge.stop.is_set():
            changed = feed.changed
            rows = await edge.core.database.read(partial(outbox.after, after_id=cursor, limit=ROWS))
            if cursor < 0 or (rows and rows[0]["id"] != cursor + 1):
                _, cursor = await edge.core.database.read(outbox.ends)
                yield _event("reset", {"reason": "older events are gone; load everything again"}, cursor)
                continue
            for row in rows:
                cursor = row["id"]
                yield {"event": row["event"], "data": row["data"], "id": str(cursor)}
            if feed.queue and feed.queue != told:
                told = feed.queue
                yield _event("queue", told)
            if len(rows) < ROWS:
                await changed.wait()


def _event(name: str, data: dict[str, Any], event_id: int | None = None) -> Event:
    event = {"event": name, "data": orjson.dumps(data).decode()}
    return event if event_id is None else event | {"id": str(event_id)}
