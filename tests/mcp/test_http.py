"""`/mcp` as HTTP: who may ask, which status says what, and whose memory it is about."""

from typing import Any

import httpx
import pytest

from tests.edge.edge_service import Service, eventually, tell_a_turn
from tests.mcp.clients import INITIALIZE, over_http, request, text_of, tool_call

NOTIFICATION = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def post(service: Service, message: Any, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return await service.client.post("/mcp", json=message, headers=given)


async def test_nobody_without_the_token_is_answered(service: Service) -> None:
    async with service.anonymous() as client:
        answer = await client.post("/mcp", json=request("tools/list"))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
async def test_foreign_names_and_pages_are_refused(service: Service, headers: dict[str, str]) -> None:
    assert (await post(service, request("tools/list"), **headers)).status_code == 403


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_are_no_streams_and_no_sessions(service: Service, method: str) -> None:
    answer = await service.client.request(method, "/mcp", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_request_is_answered_in_json_and_opens_no_session(service: Service) -> None:
    answer = await post(service, request("initialize", INITIALIZE), Accept="application/json, text/event-stream")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in answer.headers
    assert answer.json()["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("message", [NOTIFICATION, {"jsonrpc": "2.0", "id": 4, "result": {}}, [NOTIFICATION]])
async def test_what_needs_no_answer_gets_none(service: Service, message: Any) -> None:
    answer = await post(service, message)
    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_the_version_that_was_agreed_on_is_served(service: Service, version: str) -> None:
    assert (await post(service, request("ping"), MCP_Protocol_Version=version)).status_code == 200


async def test_another_version_is_refused_with_those_there_are(service: Service) -> None:
    answer = await post(service, request("ping"), MCP_Protocol_Version="1999-01-01")
    assert answer.status_code == 400
    assert "2025-11-25" in answer.json()["error"]["message"]


async def test_a_discovery_is_answered_in_any_version(service: Service) -> None:
    answer = await post(service, request("server/discover"), MCP_Protocol_Version="2026-07-28")
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == -32601


@pytest.mark.parametrize("body", [b"no json", b"", b"[]", b"7", b'{"id": 1}', b'{"jsonrpc": "1.0", "method": "ping"}'])
async def test_what_is_no_message_is_a_bad_request(service: Service, body: bytes) -> None:
    answer = await service.client.post("/mcp", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


async def test_without_a_project_in_the_headers_it_is_about_all(service: Service) -> None:
    for name in ("first", "second"):
        await service.client.post("/api/memories", json={"text": f"note of the {name}", "project": name})
    async with over_http(service) as client:
        found = text_of(await client.call_tool("search", {"query": "note"}))
        around = text_of(await client.call_tool("timeline", {"query": "note"}))
        of_one = text_of(await client.call_tool("search", {"query": "note", "project": "second"}))
    assert "note of the first" in found
    assert "note of the second" in found
    assert around.count("note of the") == 1
    assert "note of the first" not in of_one


async def test_the_headers_can_name_the_project_for_everything(service: Service) -> None:
    for name in ("first", "second"):
        await service.client.post("/api/memories", json={"text": f"note of the {name}", "project": name})
    async with over_http(service, X_Gapless_Project="second") as client:
        assert "note of the first" not in text_of(await client.call_tool("search", {"query": "note"}))
        every = text_of(await client.call_tool("search", {"query": "note", "all_projects": True}))
        assert "note of the first" in every
        await client.call_tool("remember", {"text": "another one"})
        assert "Forgotten: 1 observations" in text_of(await client.call_tool("forget", {"query": "note"}))
        assert "There is no 2" in text_of(await client.call_tool("get_observations", {"ids": [1, 2]}))
    projects = service.rows("SELECT project FROM observations ORDER BY id")
    assert projects == [("first",), ("second",)]


async def test_a_project_that_nobody_named_is_not_all_that_is_forgotten(service: Service) -> None:
    await service.client.post("/api/memories", json={"text": "note", "project": "first"})
    async with over_http(service, X_Gapless_Project="first") as client:
        result = await client.call_tool("forget", {})
    assert result.is_error
    assert service.rows("SELECT count(*) FROM observations") == [(1,)]


async def test_a_project_that_is_not_there_is_made_by_a_memory_and_by_nothing_else(service: Service) -> None:
    async with over_http(service, X_Gapless_Project="boat%20house", X_Gapless_Project_Key="/x/boat") as client:
        for tool, arguments in (("search", {}), ("timeline", {"query": "x"}), ("forget", {"query": "x"})):
            await client.call_tool(tool, arguments)
        assert service.rows("SELECT count(*) FROM projects") == [(0,)]
        await client.call_tool("remember", {"text": "note"})
    assert service.rows("SELECT name, key FROM projects") == [("boat house", "/x/boat")]


async def test_records_of_every_kind_are_read_and_only_observations_counted(working: Service) -> None:
    await tell_a_turn(working)
    async with over_http(working) as client:
        whole = text_of(await client.call_tool("get_observations", {"ids": "S1, p1, 99, S99"}))
        whole += text_of(await client.call_tool("get_observations", {"ids": "1"}))
    assert "## 1 · " in whole
    assert "## S1 · summary" in whole
    assert "## P1 · prompt" in whole
    assert "The cart forgets the prices" in whole
    assert "There is no 99, S99" in whole

    async def counted() -> list[Any]:
        return working.rows("SELECT observation_id, signal_type FROM observation_feedback")

    assert await eventually(counted) == [(1, "fetched")]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": "note", "limit": "1", "concepts": ["a", "b"], "offset": None}),
        ("search", {"query": 7, "limit": 1.0, "all_projects": "true"}),
        ("search", {"query": "x", "dateStart": 1_790_000_000_000}),
        ("timeline", {"anchor": 1, "depth_before": "2"}),
        ("get_observations", {"ids": "[1, 'S1']"}),
        ("get_observations", {"ids": 1}),
        ("remember", {"text": "another", "tags": "a, b", "confidence": "0.5"}),
    ],
)
async def test_models_may_spell_values_as_they_do(service: Service, tool: str, arguments: dict[str, Any]) -> None:
    await service.client.post("/api/memories", json={"text": "note"})
    (await post(service, tool_call(tool, **arguments))).raise_for_status()
    answer = (await post(service, tool_call(tool, **arguments))).json()
    assert answer["result"]["isError"] is False, answer


async def test_nothing_stored_can_drive_the_reader(service: Service) -> None:
    await service.client.post("/api/memories", json={"text": "red \x1b[31m\u202eevil\nsecond | line"})
    async with over_http(service) as client:
        whole = text_of(await client.call_tool("get_observations", {"ids": [1]}))
        index = text_of(await client.call_tool("search", {"query": "red"}))
    for text in (whole, index):
        assert "\x1b" not in text
    assert "\u202e" not in whole
    assert "second | line" in whole
