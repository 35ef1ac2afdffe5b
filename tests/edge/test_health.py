import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from service import inspection
from service.clock import now_ms
from service.version import VERSION
from tests.edge.edge_service import Service, edit, eventually, running, tell_a_turn


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another process holds the database's write lock."""
    connection = sqlite3.connect(home / "gapless.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.close()


async def test_a_service_that_is_idle_is_alive_and_ready(service: Service) -> None:
    assert (await service.client.get("/livez")).json() == {"status": "alive"}
    answer = await service.client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "reasons": [], "notes": []}


async def test_a_database_that_cannot_be_written_is_not_ready(service: Service) -> None:
    with locked(service.home):
        answer = await service.client.get("/readyz")
        assert answer.status_code == 503
        assert "database" in answer.json()["reasons"][0]
        assert (await service.client.get("/livez")).status_code == 200
    await eventually(lambda: _is_ready(service))


async def test_work_that_does_not_move_is_not_ready_until_it_does(home: Path) -> None:
    async with running(home, lease_s=0.05) as service:
        await service.post(edit("/a"))
        await service.client.post("/api/queue/flush")
        answer = await eventually(lambda: _not_ready(service))
        assert "waited" in answer["reasons"][0]
        await service.client.post("/api/queue/pause")
        answer = (await service.client.get("/readyz")).json()
        assert answer["status"] == "ready"
        assert "paused" in answer["notes"][0]


async def test_a_service_without_workers_is_ready_with_a_note(home: Path) -> None:
    async with running(home, has_workers=False, lease_s=0.05) as service:
        await service.post(edit("/a"))
        await service.client.post("/api/queue/flush")
        await eventually(lambda: _is_stalled(service))
        answer = (await service.client.get("/readyz")).json()
        assert answer["status"] == "ready"
        assert "gapless work" in answer["notes"][0]


async def test_a_migration_that_is_due_is_not_ready(service: Service) -> None:
    connection = sqlite3.connect(service.home / "gapless.db")
    with connection:
        connection.execute("DELETE FROM schema_migrations WHERE number = 1")
    connection.close()
    answer = await service.client.get("/readyz")
    assert answer.status_code == 503
    assert "restart" in answer.json()["reasons"][0]


async def test_slow_searches_never_delay_health(service: Service) -> None:
    async with asyncio.TaskGroup() as tasks:
        done = threading.Event()
        for _ in range(8):
            tasks.create_task(_hold_a_reader(service, done))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert (await service.client.get("/readyz")).status_code == 200
            assert (await service.post(edit("/a"))).status_code == 202
        done.set()


async def test_an_event_that_cannot_be_kept_is_answered_503_and_comes_again(service: Service) -> None:
    with locked(service.home):
        answer = await service.post(edit("/a"))
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert answer.json()["error"]["code"] == "unavailable"
    assert (await service.post(edit("/a"))).status_code == 202


async def test_metrics_tell_the_queue_and_the_traffic(working: Service) -> None:
    await tell_a_turn(working)
    async with working.anonymous() as client:
        text = (await client.get("/metrics")).text
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["gapless_messages", "done"] == samples["gapless_accepted_total",] == 2
    assert samples["gapless_events_total", "queued"] == 2
    assert samples["gapless_completed_total",] == 2
    assert samples["gapless_request_seconds_count", "202", "POST"] == 3
    assert samples["gapless_request_seconds_bucket", "+Inf", "202", "POST"] == 3


async def test_the_front_page_says_what_this_is(service: Service) -> None:
    async with service.anonymous() as client:
        answer = (await client.get("/")).json()
    assert answer["version"] == VERSION


async def _is_stalled(service: Service) -> bool:
    stalled = partial(inspection.stalled_ms, window_ms=50, now=now_ms())
    return await service.edge.core.database.read(stalled) is not None


async def _is_ready(service: Service) -> bool:
    return bool((await service.client.get("/readyz")).status_code == 200)


async def _not_ready(service: Service) -> dict[str, list[str]] | None:
    answer = await service.client.get("/readyz")
    found: dict[str, list[str]] = answer.json()
    return found if answer.status_code == 503 else None


async def _hold_a_reader(service: Service, done: threading.Event) -> None:
    await service.edge.core.database.read(lambda _: done.wait(30))
