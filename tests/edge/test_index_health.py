"""What the service tells of the vector index: in /api/queue, in /metrics, and as a note (not a reason) in /readyz."""

import sqlite3
from contextlib import closing
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.edge.edge_service import Service, running

ROWS = """
INSERT INTO projects (name, created_at_epoch) VALUES ('shop', 1);
INSERT INTO observations (project, type, title, content_hash, created_at_epoch, stored_at_epoch)
VALUES ('shop', 'change', 'one', 'x', 1, 1), ('shop', 'change', 'two', 'y', 1, 1);
INSERT INTO watermarks (name, seq, index_id, seen_at_epoch) VALUES ('vectors', 1, 'i', 1);
"""
BROKEN = "UPDATE watermarks SET failures = 4, error = 'the disk is full', failing_epoch = 1, retry_at_epoch = 2;"
GAPS = "INSERT INTO gaps VALUES ('observation', 1, 10, 'no text', NULL, 1);"


def put(home: Path, script: str) -> None:
    with closing(sqlite3.connect(home / "gapless.db")) as connection:
        connection.executescript(script)


async def samples(service: Service) -> dict[str, float]:
    text = (await service.client.get("/metrics")).text
    return {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}


async def test_lag_gaps_and_failures_are_told(home: Path) -> None:
    put(home, ROWS + BROKEN + GAPS)
    async with running(home, has_workers=False, chroma="embedded") as service:
        index = (await service.client.get("/api/queue")).json()["index"]
        assert (index["lag"], index["gaps"], index["given_up"]) == (1, 1, 1)
        assert index["failing"]["last_error"] == "the disk is full"
        measured = await samples(service)
    assert measured["gapless_index_lag"] == measured["gapless_index_gaps"] == measured["gapless_index_given_up"] == 1
    assert measured["gapless_index_failures"] == 4


async def test_a_broken_index_is_a_note_and_the_service_stays_ready(home: Path) -> None:
    put(home, ROWS)
    async with running(home, chroma="embedded") as service:
        assert (await service.client.get("/readyz")).json()["notes"] == []
        put(home, BROKEN)
        answer = await service.client.get("/readyz")
    assert answer.status_code == 200
    assert "the disk is full" in answer.json()["notes"][0]


async def test_without_an_index_there_is_nothing_to_tell(home: Path) -> None:
    put(home, ROWS + BROKEN)
    async with running(home, chroma="off") as service:
        index = (await service.client.get("/api/queue")).json()["index"]
        assert (index["in_use"], index["lag"], index["gaps"], index["failing"]) == (False, 0, 0, None)
        assert (await service.client.get("/readyz")).json()["notes"] == []
