"""JSON-RPC 2.0: what stands in a message, and the answer to it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import orjson

from service.errors import GaplessError, InvalidInput
from service.jsonin import parse

Json = dict[str, Any]
Id = str | int | None

BATCH_LIMIT = 100
"""Messages in one array (MCP took arrays in 2025-03-26 only)."""


class Code(IntEnum):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603


class RpcError(GaplessError):
    """A message that cannot be answered as asked. `id` is None where the message has none that could be read."""

    def __init__(self, code: int, message: str, *, id: Id = None) -> None:  # noqa: A002 - JSON-RPC's name
        super().__init__(message)
        self.code = code
        self.id = id


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request, or a notification, which has no id and gets no answer."""

    method: str
    params: Json
    id: Id

    @property
    def is_notification(self) -> bool:
        return self.id is None


def read(raw: bytes) -> tuple[list[Message | RpcError], bool]:
    """The messages of one JSON document, and whether they came as an array, as the answers must then. What is wrong
    with a message stands in its place. Answers of the client are left out: it is never asked anything.

    Raises `RpcError` when the document has no messages.
    """
    try:
        document = parse(raw)
    except InvalidInput as error:
        raise RpcError(Code.PARSE_ERROR, str(error)) from None
    if not isinstance(document, list):
        return list(_messages([document])), False
    if not 0 < len(document) <= BATCH_LIMIT:
        raise RpcError(Code.INVALID_REQUEST, f"send 1 to {BATCH_LIMIT} messages in an array, not {len(document)}")
    return list(_messages(document)), True


def _messages(items: list[Any]) -> Iterator[Message | RpcError]:
    for item in items:
        if isinstance(item, dict) and "method" not in item and item.keys() & {"result", "error"}:
            continue
        try:
            yield _message(item)
        except RpcError as error:
            yield error


def _message(item: Any) -> Message:
    if not isinstance(item, dict):
        raise RpcError(Code.INVALID_REQUEST, "a message is a JSON object with jsonrpc, method and, if it asks, id")
    asked = item.get("id")
    if "id" in item and (not isinstance(asked, str | int) or isinstance(asked, bool)):
        raise RpcError(Code.INVALID_REQUEST, "an id is a text or a whole number of at most 64 bits")
    if item.get("jsonrpc") != "2.0":
        raise RpcError(Code.INVALID_REQUEST, 'a message says "jsonrpc": "2.0"', id=asked)
    method, params = item.get("method"), item.get("params")
    if not isinstance(method, str):
        raise RpcError(Code.INVALID_REQUEST, "a message names its method", id=asked)
    if params is not None and not isinstance(params, dict):
        raise RpcError(Code.INVALID_PARAMS, "params are a JSON object", id=asked)
    return Message(method=method, params=params or {}, id=asked)


def result(message: Message, value: Json) -> Json:
    return {"jsonrpc": "2.0", "id": message.id, "result": value}


def failure(error: RpcError) -> Json:
    return {"jsonrpc": "2.0", "id": error.id, "error": {"code": int(error.code), "message": str(error)}}


def as_bytes(answers: list[Json], *, as_array: bool) -> bytes | None:
    """None when there is nothing to answer."""
    if not answers:
        return None
    return orjson.dumps(answers if as_array else answers[0])
