"""A model on loopback that says what a script tells it to: the wire of the Messages API, streamed, and nothing else."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMPACTION = "create a detailed summary of the conversation"
"""What the client's request for a summary says."""
PIECE = 60
"""Characters in a streamed piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool call. `tool_use_id` is what the client's events will name."""

    tool_use_id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model; `input_tokens` makes the client believe its window is as full."""

    text: str = ""
    uses: Sequence[Use] = ()
    input_tokens: int = 1_000


Script = Mapping[str, Sequence[Turn]]
"""By a word of the prompt, the answers to it and to the tool results that follow."""


@dataclass(slots=True, kw_only=True)
class ScriptedModel:
    script: Script
    latency_s: float = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0

    @contextmanager
    def listening(self) -> Iterator["ScriptedModel"]:
        server = _Server(("127.0.0.1", 0), _Handler)
        server.model = self
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, request: dict[str, Any]) -> Turn:
        messages = request.get("messages") or []
        if any(COMPACTION in _text(message) for message in messages[-2:]):  # a reminder may follow
            return Turn(text="<summary>All of it, in short: the tide table was repaired.</summary>")
        if not request.get("tools"):
            return Turn(text="A title")
        for position in range(len(messages) - 1, -1, -1):
            if messages[position]["role"] != "user":
                continue
            text = _text(messages[position])
            word = next((word for word in self.script if word in text), None)
            if word is not None:
                said = sum(message["role"] == "assistant" for message in messages[position + 1 :])
                return self.script[word][said] if said < len(self.script[word]) else Turn(text="Nothing is left to do.")
        return Turn(text="OK.")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ScriptedModel

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that is overridden
        pass

    def do_HEAD(self) -> None:
        self._reply({})

    def do_GET(self) -> None:
        self._reply({"data": [], "has_more": False})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        if self.path.partition("?")[0] != "/v1/messages":
            self._reply({"input_tokens": 1_000})
            return
        time.sleep(self.server.model.latency_s)
        self.server.model.requests.append(request)
        number = len(self.server.model.requests)  # the client takes answers of one id for parts of one
        message = _message(self.server.model.answer(request), f"msg_{number}", str(request.get("model")))
        if request.get("stream"):
            self._stream(message)
        else:
            self._reply(message)

    def _reply(self, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, message: dict[str, Any]) -> None:
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _events(message)).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _message(turn: Turn, identifier: str, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [
        {"type": "tool_use", "id": use.tool_use_id, "name": use.name, "input": dict(use.input)} for use in turn.uses
    ]
    return {
        "id": identifier,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if turn.uses else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": turn.input_tokens, "output_tokens": 20},
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, kind, name, text = {**block, "text": ""}, "text_delta", "text", block["text"]
        else:
            empty, kind, name = {**block, "input": {}}, "input_json_delta", "partial_json"
            text = json.dumps(block["input"], ensure_ascii=False)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for start in range(0, len(text), PIECE):
            delta = {"type": kind, name: text[start : start + PIECE]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or [] if block.get("type") == "text")
