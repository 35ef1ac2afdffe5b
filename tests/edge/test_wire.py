"""What comes over a connection: long queries, and what is no HTTP at all."""

import asyncio
import json

import pytest

from tests.edge.edge_service import Service


async def exchange(service: Service, raw: bytes) -> tuple[int, bytes]:
    """The status and body of the answer to these bytes; httpx would not send them."""
    reader, writer = await asyncio.open_connection(service.where.host, service.where.port)
    writer.write(raw)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def get(service: Service, target: str) -> bytes:
    host = f"{service.where.host}:{service.where.port}"
    return (
        f"GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {service.edge.token.value}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("length", [60_000, 66_000, 100_000, 500_000])
async def test_a_query_of_any_length_is_searched_for_within_its_filters(service: Service, length: int) -> None:
    for project in ("shop", "mill"):
        await service.client.post("/api/memories", json={"text": "the harvester needs oil", "project": project})
    query = "harvester+" + "x" * length
    status, body = await exchange(service, get(service, f"/api/search?query={query}&project=mill"))
    assert (status, [hit["project"] for hit in json.loads(body)["results"]]) == (200, ["mill"])


@pytest.mark.parametrize("raw", [b"nonsense\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n"])
async def test_what_is_no_request_is_refused_in_json(service: Service, raw: bytes) -> None:
    status, body = await exchange(service, raw)
    assert (status, json.loads(body)["error"]["code"]) == (400, "bad_request")


async def test_a_url_beyond_all_measure_is_refused_in_json(service: Service) -> None:
    for target in (f"/api/search?query={'x' * 1_100_000}", f"/{'x' * 70_000}"):
        status, body = await exchange(service, get(service, target))
        assert (status, json.loads(body)["error"]["code"]) == (400, "bad_request")
