"""The spool: what hooks left there comes into the queue in order, once, and one bad file stops no other."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hooks import envelope, spool
from hooks.envelope import Envelope
from service.errors import StoreUnavailable
from service.models import Batch, Compressed
from tests.store.desk import T0, Desk
from tests.workers.queued import QueuedCompressor, consumer
from workers.drain import Drain


def leave(desk: Desk, payload: Any, *, at_ms: int = 0, delivery: str | None = None) -> str:
    """Spool an event as a hook does."""
    headers = envelope.stamp(client="claude-code", captured_ms=T0 + at_ms)
    if delivery is not None:
        headers[envelope.DELIVERY] = delivery
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return spool.write(str(desk.core.configuration.home), Envelope(headers, body))


def waiting(desk: Desk) -> list[str]:
    return spool.pending(str(desk.core.configuration.home))


async def test_spooled_events_come_in_by_their_captured_time(desk: Desk) -> None:
    for at_ms in (30, 10, 20):
        leave(desk, desk.payload(tool_use_id=str(at_ms)), at_ms=at_ms)
    await Drain(desk.core).tick()
    rows = await desk.rows("SELECT event_key, captured_at_epoch - 1700000000000 FROM pending_messages ORDER BY id")
    assert [(key.rpartition("/")[2], at) for key, at in rows] == [("10", 10), ("20", 20), ("30", 30)]
    assert waiting(desk) == []


async def test_an_event_that_was_committed_and_spooled_is_one_message(desk: Desk) -> None:
    event = desk.payload()
    await desk.post(event)
    leave(desk, event, at_ms=5)
    await Drain(desk.core).tick()
    assert await desk.states() == {"pending": 1}
    assert waiting(desk) == []


async def test_an_event_without_ids_is_one_message_by_its_delivery(desk: Desk) -> None:
    event = {"hook_event_name": "PreCompact", "session_id": "s1", "cwd": "/x"}
    await desk.tool()
    await desk.post(event, delivery="d1", at_ms=1)
    await desk.tool(at_ms=2)
    leave(desk, event, at_ms=1, delivery="d1")
    await Drain(desk.core).tick()
    assert await desk.value("SELECT count(*) FROM pending_messages WHERE hook_event = 'PreCompact'") == 1


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"42", b"\xff\xfe", b'{"session_id": "s1"}', b"[" * 5_000, b'{"a": NaN}'], ids=repr
)
async def test_a_file_that_is_no_event_is_set_aside_and_the_others_come_in(desk: Desk, body: bytes) -> None:
    leave(desk, desk.payload(), at_ms=0)
    leave(desk, body, at_ms=1)
    leave(desk, desk.payload(), at_ms=2)
    await Drain(desk.core).tick()
    assert await desk.states() == {"pending": 2}
    assert waiting(desk) == []
    assert len(spool.rejected(str(desk.core.configuration.home))) == 1


async def test_a_file_that_has_no_headers_is_set_aside(desk: Desk) -> None:
    await asyncio.to_thread(Path(leave(desk, desk.payload())).write_bytes, b"\x00\x01 cut off")
    await Drain(desk.core).tick()
    assert waiting(desk) == []
    assert len(spool.rejected(str(desk.core.configuration.home))) == 1


async def test_a_half_written_file_is_left_alone(desk: Desk) -> None:
    folder = desk.core.configuration.spool
    folder.mkdir(exist_ok=True)
    draft = folder / ".000001700000000-d.event.tmp"
    draft.write_bytes(b"X-Gapless")
    await Drain(desk.core).tick()
    assert draft.exists()


async def test_a_session_is_not_compressed_before_its_spool_is_in(desk: Desk) -> None:
    drain = Drain(desk.core)
    leave(desk, desk.payload(tool_use_id="spooled"), at_ms=0)
    await desk.tool(tool_use_id="posted", at_ms=1)
    await desk.stop(at_ms=2)
    compressor = QueuedCompressor()
    worker = consumer(desk, compressor, held=drain.sessions_waiting)
    await worker.tick()
    assert compressor.asked == []
    await drain.tick()
    await worker.tick()
    (batch,) = compressor.asked
    assert [m.event_key.rpartition("/")[2] for m in batch.messages[:2]] == ["spooled", "posted"]


async def test_a_stop_that_overtakes_its_whole_turn_in_the_spool_is_sent_back_for_later(desk: Desk) -> None:
    leave(desk, {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": "/x", "prompt": "go"}, at_ms=0)
    leave(desk, desk.payload(), at_ms=1)
    stop = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "/x", "last_assistant_message": "all done"}
    with pytest.raises(StoreUnavailable, match="spool"):
        await desk.post(stop, at_ms=2)
    leave(desk, stop, at_ms=2)
    await Drain(desk.core).tick()
    found: list[Batch] = []
    await desk.work_off(lambda batch: found.append(batch) or Compressed())  # type: ignore[func-returns-value]
    assert [m.hook_event for m in found[0].messages] == ["PostToolUse", "Stop"]


async def test_many_files_come_in_over_several_commits(desk: Desk) -> None:
    for number in range(250):
        leave(desk, desk.payload(), at_ms=number)
    await Drain(desk.core).tick()
    assert await desk.states() == {"pending": 250}
