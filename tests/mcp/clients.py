"""Clients of the MCP server: the SDK's own, over both transports, and one that sends what it is given."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.cli.command_line import environment
from tests.edge.edge_service import Service

COMMAND = ["-I", "-m", "service.cli", "mcp"]
DEADLINE_S = 30.0
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@asynccontextmanager
async def over_stdio(home: Path, folder: Path, *, mode: str = "auto", **variables: str) -> AsyncIterator[Client]:
    """A client that has started `gapless mcp` in a folder."""
    server = StdioServerParameters(
        command=sys.executable, args=COMMAND, env=environment(home, **variables), cwd=str(folder)
    )
    async with Client(server, mode=mode, read_timeout_seconds=DEADLINE_S) as client:
        yield client


@asynccontextmanager
async def over_http(service: Service, *, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client of `/mcp`. In headers `_` stands for `-`."""
    given = {"Authorization": f"Bearer {service.edge.token.value}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient(headers=given, timeout=DEADLINE_S) as http:
        transport = streamable_http_client(f"{service.where.address}/mcp", http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=DEADLINE_S) as client:
            yield client


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def request(method: str, params: Any = None, *, number: int | str = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


def tool_call(name: str, number: int = 1, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": name, "arguments": arguments}, number=number)


def said(home: Path, *messages: Any, cwd: Path | None = None, **variables: str) -> list[Any]:
    """What `gapless mcp` answers to messages (as they are when they are bytes) until it ends."""
    lines = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
    done = subprocess.run(
        [sys.executable, *COMMAND],
        input=b"".join(line + b"\n" for line in lines),
        env=environment(home, **variables),
        cwd=cwd,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]
