"""What no client would send: each request has one answer, in words, and the server goes on."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from service.edge.tools import TOOLS
from service.mcp.dialogue import METHODS
from tests.cli.command_line import environment
from tests.edge.service_process import service_process, wait_until_ready
from tests.edge.test_fuzz import Target
from tests.mcp.clients import COMMAND, request, tool_call

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unmeasured")]

BOUNDED = hypothesis.settings(
    max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PARAMETERS = sorted({name for tool in TOOLS.values() for name in tool.listed["inputSchema"]["properties"]} | {"cursor"})
VALUES = JSON | st.sampled_from(
    ["1", "S1", "P9" * 30, "*", '"', "a\x00b", "\ud800", "2026-11-30", "-1", "NEAR(", "[1,"]
)
PING = request("ping", number="the end")
CALLS = st.builds(
    lambda name, arguments: request("tools/call", {"name": name, "arguments": arguments}),
    st.sampled_from([*TOOLS, "nope"]),
    st.dictionaries(st.sampled_from(PARAMETERS), VALUES, max_size=4).map(
        lambda arguments: {name: value for name, value in arguments.items() if name != "vacuum"}
    ),
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers(-(2**63), 2**63) | st.text(max_size=20) | JSON,
        "method": st.sampled_from([*METHODS, "notifications/cancelled", "resources/list"]) | JSON,
        "params": st.dictionaries(st.sampled_from(["name", "arguments", "protocolVersion", "_meta"]), JSON) | JSON,
    },
)
DOCUMENTS = CALLS | MESSAGES | st.lists(CALLS | MESSAGES | JSON, max_size=3) | JSON


def encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


def check_answer(document: Any, raw: bytes) -> None:
    """The answers to a document, of the right number and each with a result or words."""
    assert b"Traceback" not in raw
    assert b"please report it" not in raw
    answer = json.loads(raw)
    for each in answer if isinstance(answer, list) else [answer]:
        assert each["jsonrpc"] == "2.0"
        assert each.keys() == {"jsonrpc", "id", "result"} or each["error"]["message"]
    if isinstance(document, dict) and document.get("jsonrpc") == "2.0" and isinstance(document.get("id"), str):
        assert answer["id"] == document["id"].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    home = tmp_path_factory.mktemp("fuzz") / "data"
    with service_process(home, PORT="0", CHROMA="off") as process:
        yield Target(home, wait_until_ready(home, process))
        assert process.poll() is None
    assert "request.failed" not in (home / "logs" / "gapless.log").read_text()


@given(document=DOCUMENTS)
@BOUNDED
def test_any_document_is_answered_over_http(target: Target, document: Any) -> None:
    status, answer = target.send("POST", "/mcp", encoded(document))
    assert status in (200, 202, 400)
    assert (status == 202) == (answer == b"")
    if answer:
        check_answer(document, answer)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[bytes]]:
    home = tmp_path_factory.mktemp("fuzz") / "data"
    with subprocess.Popen(
        [sys.executable, *COMMAND],
        env=environment(home, GAPLESS_CHROMA="off"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield process
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


@given(document=DOCUMENTS)
@hypothesis.settings(BOUNDED, max_examples=100)
def test_any_line_is_answered_over_stdio(started: subprocess.Popen[bytes], document: Any) -> None:
    assert started.stdin is not None
    assert started.stdout is not None
    for sent in (document, PING):
        started.stdin.write(encoded(sent) + b"\n")
        started.stdin.flush()
        if is_answered(sent):
            check_answer(sent, started.stdout.readline())


def is_answered(document: Any) -> bool:
    """Whether JSON-RPC wants an answer: a request does, and what is none at all."""
    if isinstance(document, list) and document:
        return any(map(is_answered, document))
    if not isinstance(document, dict):
        return True
    if "method" not in document and document.keys() & {"result", "error"}:
        return False
    wrong = document.get("jsonrpc") != "2.0" or not isinstance(document.get("method"), str)
    params = document.get("params")
    return "id" in document or wrong or not (params is None or isinstance(params, dict))


NUMBERS = ["9" * 5000, "1e400", "-0", "18446744073709551616", "NaN", "1" * 20]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("place", ["id", "limit"])
def test_numbers_that_no_row_can_have_are_answered_in_words(target: Target, number: str, place: str) -> None:
    call = json.dumps(tool_call("search", 4711, limit=4712)).replace("4711" if place == "id" else "4712", number)
    status, answer = target.send("POST", "/mcp", call.encode())
    assert status in (200, 400)
    assert b"Traceback" not in answer
    assert b"limit" in answer or "error" in json.loads(answer) or place == "id"


def test_what_is_nested_too_deep_is_answered_in_words(target: Target) -> None:
    for depth in (100, 500, 5000):
        deep = '{"a":' * depth + "1" + "}" * depth
        call = json.dumps(tool_call("remember", text="x", metadata=4711)).replace("4711", deep)
        status, answer = target.send("POST", "/mcp", call.encode())
        assert status in (200, 400)
        told = json.loads(answer)
        assert "error" in told or told["result"]["isError"] is True
