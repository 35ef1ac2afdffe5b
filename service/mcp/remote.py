"""The tools of the live service, asked over its `/mcp`."""

import socket
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

import orjson

from hooks import transport
from service.mcp.rpc import Json, RpcError

CONNECT_S = 1.0
ANSWER_S = 30.0
"""A search gives up by itself long before; forgetting a large project may not."""


def ask(home: str, headers: Mapping[str, str], method: str, params: Json) -> Json:
    """The result of one request to the service of a data folder; blocks.

    Raises `transport.Away` when no service answers as it should, `RpcError` when it refuses.
    """
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    try:
        status, raw = _post(home, headers, body)
        answer = orjson.loads(raw)
    except (OSError, HTTPException, ValueError) as error:
        raise transport.Away(f"not reachable: {error}") from None
    if status != HTTPStatus.OK or not isinstance(answer, dict):
        raise transport.Away(f"something answered {status}")
    match answer:
        case {"result": dict(result)}:
            return result
        case {"error": {"code": int(code), "message": str(message)}}:
            raise RpcError(code, message)
    raise transport.Away("the answer is none of MCP")


def _post(home: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
    reached, host, token = transport.reach(home, time.monotonic() + CONNECT_S)
    connection = HTTPConnection(host)
    connection.sock = socket.socket(fileno=reached.detach())
    connection.sock.settimeout(ANSWER_S)
    proof = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request("POST", "/mcp", body, {**headers, **proof, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
