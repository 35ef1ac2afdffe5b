"""The protocol as the SDK's own client speaks it, over both transports, with a service and without."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from service.edge.tools import WORKFLOW
from tests.edge.edge_service import Service, running
from tests.mcp.clients import over_http, over_stdio, text_of

NAMES = ["__IMPORTANT", "search", "timeline", "get_observations", "remember", "forget"]
WAYS = ["stdio alone", "stdio beside a service", "http"]


@asynccontextmanager
async def connected(way: str, home: Path, folder: Path, *, mode: str = "auto") -> AsyncIterator[Client]:
    if way == "stdio alone":
        async with over_stdio(home, folder, mode=mode, GAPLESS_CHROMA="off") as client:
            yield client
        return
    async with running(home, chroma="off") as service:
        opened = over_http(service, mode=mode) if way == "http" else over_stdio(home, folder, mode=mode)
        async with opened as client:
            yield client


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_connects_however_it_begins(way: str, mode: str, home: Path, folder: Path) -> None:
    async with connected(way, home, folder, mode=mode) as client:
        assert client.protocol_version == "2025-11-25"
        assert client.server_info is not None
        assert client.server_info.name == "gapless"
        assert "search" in (client.instructions or "")
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES


@pytest.mark.parametrize("way", WAYS)
async def test_every_tool_lists_its_parameters_with_types(way: str, home: Path, folder: Path) -> None:
    async with connected(way, home, folder) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    workflow = tools.pop("__IMPORTANT")
    assert workflow.description == WORKFLOW
    assert workflow.input_schema["properties"] == {}
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["type"] == "object"
        for described in tool.input_schema["properties"].values():
            assert described.keys() & {"type", "$ref", "anyOf", "enum"}
    assert tools["get_observations"].input_schema["required"] == ["ids"]
    assert tools["remember"].input_schema["required"] == ["text"]
    assert {"query", "project", "all_projects", "limit"} <= tools["search"].input_schema["properties"].keys()


@pytest.mark.parametrize("way", WAYS)
async def test_a_memory_goes_through_all_three_layers_until_it_is_forgotten(way: str, home: Path, folder: Path) -> None:
    async with connected(way, home, folder) as client:

        async def told(tool: str, **arguments: Any) -> str:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result
            return text_of(result)

        text = "The FORGE port is 7001\nbecause the proxy has 7000"
        assert await told("remember", text=text, tags=["stack:web"]) == "Remembered as 1."
        assert await told("remember", text=text) == "Already remembered as 1."
        index = (await told("search", query="forge")).splitlines()
        assert index[0] == "1 of 1 (keyword)"
        assert index[-1].startswith("| 1 | ")
        assert "The FORGE port is 7001" in index[-1]
        assert "| > 1 | " in await told("timeline", anchor="1")
        assert "| > 1 | " in await told("timeline", query="forge")
        whole = await told("get_observations", ids=[1])
        assert text in whole
        assert "tags: stack:web" in whole
        assert "not instructions" in whole
        assert await told("__IMPORTANT") == WORKFLOW
        assert "Would forget 1 observations" in await told("forget", ids=[1], dry_run=True)
        assert "Forgotten: 1 observations" in await told("forget", ids=["1"])
        assert (await told("search", query="forge")).startswith("0 of 0")
        assert "There is no 1" in await told("get_observations", ids=[1])


@pytest.mark.parametrize("way", WAYS)
async def test_what_cannot_be_done_is_said_in_words_and_no_more(way: str, home: Path, folder: Path) -> None:
    wrong: dict[str, tuple[str, dict[str, Any]]] = {
        "there is no tool 'nope'": ("nope", {}),
        "limit: Input should be less than or equal to 100": ("search", {"limit": 101}),
        "there is no parameter q here; it takes project, all_projects": ("search", {"q": "x"}),
        "dateStart must be a date": ("search", {"dateStart": "yesterday"}),
        "obs_type must be of decision": ("search", {"obs_type": "rumour"}),
        "ids: Field required": ("get_observations", {}),
        "'B7' is no id; ids are as 12, S12 or P12": ("get_observations", {"ids": ["B7"]}),
        "there is no 'B7'; an anchor is 12": ("timeline", {"anchor": "B7"}),
        "give an anchor": ("timeline", {}),
        "text: Field required": ("remember", {}),
        "the text is empty, or all of it is private": ("remember", {"text": "<private>hush</private>"}),
        "say what to forget": ("forget", {}),
    }
    async with connected(way, home, folder) as client:
        for words, (tool, arguments) in wrong.items():
            result = await client.call_tool(tool, arguments)
            assert result.is_error, (tool, arguments)
            assert words in text_of(result)
            assert "Traceback" not in text_of(result)


async def test_a_program_that_asks_for_json_gets_what_the_route_answers(service: Service) -> None:
    await service.client.post("/api/memories", json={"text": "The FORGE port is 7001"})
    route = (await service.client.get("/api/search", params={"query": "forge"})).json()
    async with over_http(service) as client:
        result = await client.call_tool("search", {"query": "forge", "format": "json"})
    assert result.structured_content == route
