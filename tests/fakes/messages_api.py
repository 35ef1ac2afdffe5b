"""A local server that speaks Anthropic's Messages API over HTTP: scripted answers first, then plausible ones."""

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it arrived; header names are lower case, `raw` is the body's bytes."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.raw)
        return body

    @property
    def content(self) -> str:
        """The text of the first user message."""
        return str(self.body["messages"][0]["content"])

    @property
    def tool(self) -> dict[str, Any]:
        tool: dict[str, Any] = self.body["tools"][0]
        return tool


Body = object | bytes | Callable[[Request], object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """One answer. `body`: None makes the default answer, bytes go out as they are, a callable is asked, else JSON.

    `hang` never answers, `drop` closes instead of answering, `cut` closes in the middle of the body.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = None
    delay_s: float = 0.0
    hang: bool = False
    drop: bool = False
    cut: bool = False


def message(
    *content: dict[str, Any], stop_reason: str = "tool_use", usage: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The body of a successful answer."""
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 200} | dict(usage or {}),
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_use(tool_input: object, name: str = "record_observations") -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_fake", "name": name, "input": tool_input}


def prose(words: str) -> Scripted:
    return Scripted(body=message(text(words), stop_reason="end_turn"))


def called(tool_input: object, usage: Mapping[str, int] | None = None) -> Scripted:
    return Scripted(body=message(tool_use(tool_input), usage=usage))


def error(status: int, kind: str = "", words: str = "", *, code: str = "", **headers: str) -> Scripted:
    """An error in the provider's shape; underscores in the names of `headers` become hyphens."""
    details = {"details": {"error_code": code}} if code else {}
    return Scripted(
        status=status,
        headers={"request-id": "req_fake"} | {name.replace("_", "-"): value for name, value in headers.items()},
        body={"type": "error", "error": {"type": kind, "message": words, **details}, "request_id": "req_fake"},
    )


class MessagesApi:
    """`async with MessagesApi() as api`: `api.url` is its address, `api.requests` what arrived, in order."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._answers: deque[Scripted] = deque()
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[Any] | None] = {}
        self._closing = asyncio.Event()
        self.requests: list[Request] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        self._server.close()
        handlers = [task for task in self._connections.values() if task]
        for writer in self._connections:
            writer.close()
        await asyncio.gather(*handlers)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def script(self, *answers: Scripted) -> None:
        """Queues answers, one for each of the next requests."""
        self._answers.extend(answers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = asyncio.current_task()
        try:
            while request := await _read(reader):
                self.requests.append(request)
                if not await self._reply(request, writer):
                    break
        except ConnectionError:
            pass
        finally:
            del self._connections[writer]
            writer.close()

    async def _reply(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; False when the connection is to be closed."""
        answer = self._answers.popleft() if self._answers else Scripted()
        await asyncio.sleep(answer.delay_s)
        if answer.hang:
            await self._closing.wait()
        if answer.hang or answer.drop:
            return False
        payload = _payload(answer.body, request)
        headers = {"content-type": "application/json", "content-length": str(len(payload))} | dict(answer.headers)
        lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write(
            ("\r\n".join(lines) + "\r\n\r\n").encode() + (payload[: len(payload) // 2] if answer.cut else payload)
        )
        await writer.drain()
        return not answer.cut


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method=method, path=path, headers=headers, raw=raw)


def _payload(body: Body, request: Request) -> bytes:
    made = default_answer(request) if body is None else body(request) if callable(body) else body
    return made if isinstance(made, bytes) else json.dumps(made).encode()


def default_answer(request: Request) -> dict[str, Any]:
    """A valid tool call made of the request: one observation for the batch, and the summary when the tool has one."""
    events = re.findall(r'<event n="(\d+)" name="([^"]*)">\n?([^\n]*)', request.content)
    prompts = re.findall(r"<user_prompt n=\"\d+\">\n?([^\n]*)", request.content)
    name, detail = next(((name, re.sub(r"<[^>]*>", "", line)) for _, name, line in events), ("session", ""))
    # The digest tells batches apart that begin alike, or the store would take them for one.
    digest = hashlib.sha256(request.content.encode()).hexdigest()[:8]
    summary = dict.fromkeys(("investigated", "learned", "next_steps", "notes"), "") | {
        "request": prompts[-1][:200] if prompts else "",
        "completed": f"{len(events)} events ended with {name} ({digest}).",
    }
    if request.tool["name"] == "record_summary":
        return message(tool_use(summary, "record_summary"), usage=_usage(request))
    observation = {
        "type": "discovery",
        "title": f"{name}: {detail[:80]} ({digest})",
        "subtitle": "",
        "narrative": f"{len(events)} events, the first of them {name}: {detail[:200]}",
        "facts": [],
        "concepts": ["fake"],
        "files_read": [],
        "files_modified": [],
        "events": [int(number) for number, _, _ in events],
    }
    answer: dict[str, Any] = {"observations": [observation], "nothing_to_record": False}
    if "summary" in request.tool["input_schema"]["properties"]:
        answer["summary"] = summary
    return message(tool_use(answer), usage=_usage(request))


def _usage(request: Request) -> dict[str, int]:
    return {"input_tokens": len(request.raw) // 4, "output_tokens": 150}


async def _run(port: int) -> None:
    async with MessagesApi(port) as api:
        print(api.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the address is printed")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args().port))
