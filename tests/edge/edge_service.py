"""A real service inside the test's own loop, and the events that tests send to it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from service.core import Core
from service.edge.app import build_app, make_edge
from service.edge.security import read_token
from service.edge.server import Listening, listening, serve
from service.edge.state import Edge
from service.settings import load

DEADLINE_S = 10.0


@dataclass
class Service:
    """A service that listens in this process, and clients of it."""

    edge: Edge
    where: Listening
    home: Path
    client: httpx.AsyncClient

    def anonymous(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.where.address)

    def over_unix_socket(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self.where.path)), base_url="http://localhost"
        )

    def rows(self, sql: str) -> list[Any]:
        """What another process sees in the database."""
        connection = sqlite3.connect(self.home / "gapless.db")
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    async def post(self, payload: Any, **params: str) -> httpx.Response:
        return await self.client.post("/api/events", json=payload, params=params)


@asynccontextmanager
async def running(home: Path, *, has_workers: bool = True, **settings: Any) -> AsyncIterator[Service]:
    """Without vectors, unless they are set: a process for them takes longer than most tests."""
    configuration = load(home=home, flags={"port": 0, "chroma": "off", **settings}, environment={})
    core = Core.open(configuration)
    try:
        edge = make_edge(core, read_token(home), has_workers=has_workers)
        configuration.run.mkdir(mode=0o700, exist_ok=True)
        with listening(configuration) as where:
            headers = {"Authorization": f"Bearer {edge.token.value}"}
            async with (
                asyncio.TaskGroup() as tasks,
                httpx.AsyncClient(base_url=where.address, headers=headers, timeout=DEADLINE_S) as client,
            ):
                tasks.create_task(serve(build_app(edge), where.sockets, stop=edge.stop))
                try:
                    yield Service(edge=edge, where=where, home=home, client=client)
                finally:
                    edge.end()
    finally:
        await core.close()


async def eventually(check: Callable[[], Awaitable[Any]]) -> Any:
    """The first result of `check` that is true."""
    async with asyncio.timeout(DEADLINE_S):
        while not (result := await check()):  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)
        return result


def prompt(text: str, *, session: str = "s1", number: int = 1, **more: Any) -> dict[str, Any]:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt_id": f"p{number}", "prompt": text}
    return event | {"cwd": "/nowhere/shop"} | more


def edit(path: str, *, session: str = "s1", number: int = 1, **more: Any) -> dict[str, Any]:
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": session,
        "prompt_id": "p1",
        "cwd": "/nowhere/shop",
        "tool_name": "Edit",
        "tool_use_id": f"toolu_{number}",
        "tool_input": {"file_path": path, "old_string": "total = 0", "new_string": "total = sum(prices)"},
        "tool_response": {"filePath": path, "oldString": "total = 0", "newString": "total = sum(prices)"},
    }
    return event | more


def stop(message: str, *, session: str = "s1", **more: Any) -> dict[str, Any]:
    event = {"hook_event_name": "Stop", "session_id": session, "prompt_id": "p1", "cwd": "/nowhere/shop"}
    return event | {"last_assistant_message": message} | more


async def tell_a_turn(service: Service, *, session: str = "s1", path: str = "/nowhere/shop/cart.py") -> None:
    """A prompt, an edit and the stop, and everything that is made of them."""
    before = len(service.rows("SELECT 1 FROM session_summaries"))
    for event in (
        prompt("The cart forgets the prices, please fix it", session=session),
        edit(path, session=session),
        stop("I fixed the cart: the total is now the sum of the prices.", session=session),
    ):
        assert (await service.post(event)).status_code == 202
    await eventually(lambda: _more_summaries(service, before))


async def _more_summaries(service: Service, before: int) -> bool:
    return len(service.rows("SELECT 1 FROM session_summaries")) > before


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777
