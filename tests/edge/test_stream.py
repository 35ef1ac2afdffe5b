import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service import outbox
from service.edge import stream
from tests.edge.edge_service import DEADLINE_S, Service, eventually, prompt, tell_a_turn

Event = dict[str, str]


class Stream:
    """The events of an open stream, one at a time."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def next(self) -> Event:
        event: Event = {}
        async with asyncio.timeout(DEADLINE_S):
            async for line in self._lines:
                if not line:
                    return event
                name, _, value = line.partition(": ")
                event[name or "comment"] = value
        return {"event": "closed"}

    async def next_of(self, name: str) -> Event:
        while (event := await self.next()).get("event") not in (name, "closed"):
            pass
        return event


@asynccontextmanager
async def open_stream(service: Service, last_event_id: int | str | None = None) -> AsyncIterator[Stream]:
    headers = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
    async with service.client.stream("GET", "/stream", headers=headers, timeout=None) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer.aiter_lines())


async def _say(service: Service, *numbers: int) -> None:
    for number in numbers:
        await service.post(prompt(f"prompt {number}", number=number))


async def test_a_stream_begins_with_the_queue_and_tells_what_is_new(working: Service) -> None:
    async with open_stream(working) as events:
        assert json.loads((await events.next_of("queue"))["data"])["states"]["pending"] == 0
        await tell_a_turn(working)
        seen = {(await events.next())["event"] for _ in range(4)}
        while "summary" not in seen:
            seen.add((await events.next())["event"])
    assert seen >= {"prompt", "observation", "summary"}


async def test_a_new_stream_does_not_repeat_the_past(service: Service) -> None:
    await _say(service, 1)
    async with open_stream(service) as events:
        await events.next_of("queue")
        await _say(service, 2)
        assert json.loads((await events.next_of("prompt"))["data"])["text"] == "prompt 2"


async def test_a_stream_goes_on_after_the_last_event_without_loss_or_repeat(service: Service) -> None:
    async with open_stream(service) as events:
        await _say(service, 1, 2)
        last = (await events.next_of("prompt"))["id"]
    await _say(service, 3, 4)
    async with open_stream(service, last) as events:
        texts = [json.loads((await events.next_of("prompt"))["data"])["text"] for _ in range(3)]
    assert texts == ["prompt 2", "prompt 3", "prompt 4"]


@pytest.mark.parametrize("last_event_id", [10**6, "nonsense", 0])
async def test_a_stream_that_lost_its_place_is_told_to_begin_anew(service: Service, last_event_id: int | str) -> None:
    await _say(service, *range(3))
    keep_nothing = outbox.KEEP_MS + 1
    await service.edge.core.database.write(lambda tx: outbox.trim(tx, now=2**50 + keep_nothing))
    await _say(service, 3)
    async with open_stream(service, last_event_id) as events:
        assert (await events.next())["event"] == "reset"
        await _say(service, 4)
        assert json.loads((await events.next_of("prompt"))["data"])["text"] == "prompt 4"


async def test_the_queue_is_told_when_its_depth_changed(service: Service) -> None:
    async with open_stream(service) as events:
        await events.next_of("queue")
        await service.client.post("/api/queue/pause")
        assert (await events.next_of("health"))["id"]
        paused = json.loads((await events.next_of("queue"))["data"])["paused"]
    assert paused["reason"] == "manual"


async def test_a_silent_stream_has_heartbeats(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.05)
    async with open_stream(service) as events:
        await events.next_of("queue")
        assert await events.next() == {"comment": "heartbeat"}


async def test_streams_end_when_the_service_ends(service: Service) -> None:
    async with open_stream(service) as events:
        await events.next_of("queue")
        service.edge.end()
        assert await events.next() == {"event": "closed"}


async def test_a_reader_that_takes_nothing_is_dropped(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SLOW_READER_S", 0.2)
    reader, writer = await asyncio.open_connection(service.where.host, service.where.port, limit=1)
    request = f"GET /stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.edge.token.value}\r\n"
    writer.write(f"{request}Last-Event-ID: 0\r\n\r\n".encode())
    await reader.read(1)
    long: dict[str, Any] = {"text": "x" * 1_000_000}

    def tell_much(tx: Any) -> None:
        for _ in range(20):
            outbox.tell(tx, "prompt", long, now=1)

    await service.edge.core.database.write(tell_much)
    await eventually(lambda: _has_no_streams(service))
    writer.close()


async def _has_no_streams(service: Service) -> bool:
    return not service.edge.feed.streams
