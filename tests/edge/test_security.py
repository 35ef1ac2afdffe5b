from typing import Any

import pytest

from service.edge.app import OPERATIONS
from service.edge.operations import Operation
from service.edge.security import read_token
from tests.edge.edge_service import Service, edit, mode_of

PRIVATE = [operation for operation in OPERATIONS if not operation.public]
PUBLIC = {"/", "/livez", "/readyz", "/metrics", "/openapi.json", "/api/hello", "/api/login"}


def _path(operation: Operation[Any, Any]) -> str:
    return operation.path.replace("{observation_id}", "1").replace("{message_id}", "1")


@pytest.mark.parametrize("operation", PRIVATE, ids=lambda operation: f"{operation.method} {operation.path}")
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}])
async def test_nothing_is_read_or_written_without_the_token(
    service: Service, operation: Operation[Any, Any], headers: dict[str, str]
) -> None:
    async with service.anonymous() as client:
        answer = await client.request(operation.method, _path(operation), headers=headers, json={})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


def test_only_what_the_contract_names_is_public() -> None:
    assert {operation.path for operation in OPERATIONS if operation.public} == PUBLIC


async def test_the_unix_socket_needs_no_token(service: Service) -> None:
    async with service.over_unix_socket() as client:
        answer = await client.post("/api/events", json=edit("/a"))
    assert answer.status_code == 202


async def test_the_unix_socket_and_the_token_are_for_their_owner_alone(service: Service) -> None:
    assert service.where.path is not None
    assert mode_of(service.where.path) == 0o600
    assert mode_of(service.home / "token") == 0o600
    assert mode_of(service.home) == 0o700


@pytest.mark.parametrize("host", ["evil.example", "evil.example:47700", "localhost.evil.example", "[::2]", "", "a@b@["])
@pytest.mark.parametrize("path", ["/", "/livez", "/api/queue", "/nowhere"])
async def test_a_foreign_host_is_refused_everywhere(service: Service, host: str, path: str) -> None:
    answer = await service.client.get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:47700", "LOCALHOST"])
async def test_our_own_names_are_served_with_any_port(service: Service, host: str) -> None:
    assert (await service.client.get("/livez", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1"])
async def test_pages_of_another_origin_are_refused_and_never_allowed(service: Service, origin: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        answer = await service.client.request(method, "/api/queue/pause", headers={"Origin": origin})
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_our_own_page_may_call(service: Service) -> None:
    answer = await service.client.get("/api/queue", headers={"Origin": service.where.address})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_signing_in_opens_get_routes_to_a_browser_and_nothing_else(service: Service) -> None:
    async with service.anonymous() as client:
        assert (await client.post("/api/login", json={"token": service.edge.token.value})).status_code == 204
        assert (await client.get("/api/queue")).status_code == 200
        assert (await client.post("/api/queue/pause")).status_code == 401


async def test_the_cookie_is_out_of_reach_of_scripts_and_foreign_pages_and_is_not_the_token(service: Service) -> None:
    answer = await service.client.post("/api/login", json={"token": service.edge.token.value})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert service.edge.token.value not in cookie


async def test_signing_in_with_anything_else_is_refused(service: Service) -> None:
    answer = await service.client.post("/api/login", json={"token": "wrong"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_hello_proves_the_token_without_telling_it(service: Service) -> None:
    async with service.anonymous() as client:
        answer = await client.get("/api/hello", params={"nonce": "00ff00ff00ff"})
    assert answer.json()["proof"] == service.edge.token.sign("00ff00ff00ff")
    assert service.edge.token.value not in answer.text


@pytest.mark.parametrize("nonce", ["", "gapless cookie", "xyz", "0" * 1000])
async def test_hello_signs_nothing_but_hexadecimal_numbers(service: Service, nonce: str) -> None:
    answer = await service.client.get("/api/hello", params={"nonce": nonce})
    assert answer.status_code == 422


async def test_the_token_of_a_data_folder_stays_the_same(service: Service) -> None:
    assert read_token(service.home) == service.edge.token


async def test_a_token_file_that_others_could_read_is_closed(service: Service) -> None:
    (service.home / "token").chmod(0o644)
    read_token(service.home)
    assert mode_of(service.home / "token") == 0o600
