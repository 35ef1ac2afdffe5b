"""What no client would send: every answer is a JSON error or a result, never a 5xx, never a stack trace."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from service.edge.app import OPERATIONS
from service.edge.operations import Operation
from tests.edge.service_process import DEADLINE_S, service_process, wait_until_ready

pytestmark = pytest.mark.slow

EXAMPLES = 12
BOUNDED = hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
FUZZED = [operation for operation in OPERATIONS if operation.path != "/stream"]  # that one never ends


class Target:
    """A running service and its token."""

    def __init__(self, home: Path, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}"}

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            connection.request(method, path, body, {**self.headers, **headers})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    home = tmp_path_factory.mktemp("fuzz") / "data"
    with service_process(home, PORT="0") as process:
        yield Target(home, wait_until_ready(home, process))
        assert process.poll() is None
    assert "Traceback" not in (home / "logs" / "gapless.log").read_text()
    assert "request.failed" not in (home / "logs" / "gapless.log").read_text()


@pytest.fixture(scope="module")
def served(target: Target) -> Any:
    _, document = target.send("GET", "/openapi.json")
    return schemathesis.openapi.from_dict(json.loads(document))


@pytest.mark.parametrize("operation", FUZZED, ids=lambda operation: f"{operation.method} {operation.path}")
def test_no_request_made_from_the_document_breaks_the_service(
    served: Any, target: Target, operation: Operation[Any, Any]
) -> None:
    @given(case=served[operation.path][operation.method].as_strategy())
    @BOUNDED
    def answers_as_documented(case: Any) -> None:
        answer = case.call(base_url=target.url, headers=target.headers)
        case.validate_response(answer, checks=CHECKS)
        assert b"Traceback" not in answer.content

    answers_as_documented()


ODD = {
    "deep arrays": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 1000 + b"1" + b"}" * 1000,
    "deep inside an event": b'{"hook_event_name":"Stop","session_id":"s","x":' + b"[" * 500 + b"]" * 500 + b"}",
    "NUL": b'{"hook_event_name":"Stop","session_id":"s\\u0000","last_assistant_message":"a\\u0000b"}',
    "raw NUL": b'{"hook_event_name":"Stop\x00"}',
    "half surrogate": b'{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"a\\ud800b"}',
    "half surrogate as id": b'{"hook_event_name":"UserPromptSubmit","session_id":"\\udfff","prompt":"x"}',
    "huge integer": b'{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"X","n":' + b"9" * 5000 + b"}",
    "huge exponent": b'{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"X","n":1e999999}',
    "huge timestamp": b'{"hook_event_name":"Stop","session_id":"s","timestamp":1e300}',
    "NaN": b'{"hook_event_name":"Stop","session_id":"s","n":NaN}',
    "Infinity": b'{"hook_event_name":"Stop","session_id":"s","n":-Infinity}',
    "duplicate keys": b'{"hook_event_name":"Stop","hook_event_name":"x","session_id":"s","session_id":7}',
    "array as root": b'[{"hook_event_name":"Stop","session_id":"s"}]',
    "not UTF-8": b'{"hook_event_name":"\xff\xfe","session_id":"s"}',
    "byte order mark": b'\xef\xbb\xbf{"hook_event_name":"Stop","session_id":"s"}',
    "ids of other types": b'{"hook_event_name":["Stop"],"session_id":{}}',
    "fields of other types": b'{"hook_event_name":"Stop","session_id":"s","tool_name":7,"tool_input":[],"cwd":{}}',
    "long id": b'{"hook_event_name":"Stop","session_id":"' + b"x" * 100_000 + b'"}',
    "many keys": json.dumps(
        {"hook_event_name": "Stop", "session_id": "s", **dict.fromkeys(map(str, range(50_000)))}
    ).encode(),
    "nothing": b"",
    "white space": b" \n\t ",
    "two documents": b"{} {}",
}
BODY_ROUTES = [
    ("POST", "/api/events"),
    ("POST", "/api/events/batch"),
    ("POST", "/api/observations/batch"),
    ("POST", "/api/queue/replay"),
    ("PATCH", "/api/settings"),
    ("POST", "/api/login"),
    ("POST", "/mcp"),
]


@pytest.mark.parametrize(("method", "path"), BODY_ROUTES)
@pytest.mark.parametrize("name", ODD)
def test_odd_json_is_answered_in_words(target: Target, name: str, method: str, path: str) -> None:
    status, answer = target.send(method, path, ODD[name])
    assert status < 500
    if status >= 400:
        assert json.loads(answer)["error"]["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.sampled_from(
    ["SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SubagentStop", "Stop"]
)
FIELDS = ["prompt", "tool_name", "tool_input", "tool_response", "tool_use_id", "prompt_id", "agent_id", "cwd", "error"]
FIELDS += ["last_assistant_message", "timestamp", "private", "transcript_path"]
PAYLOADS = st.builds(
    lambda event, session, fields: {**fields, "hook_event_name": event, "session_id": session},
    EVENTS,
    st.text(min_size=1, max_size=20),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6),
)


@given(payload=PAYLOADS)
@hypothesis.settings(BOUNDED, max_examples=150)
def test_an_event_with_fields_of_any_kind_never_breaks_the_service(target: Target, payload: dict[str, Any]) -> None:
    status, answer = target.send("POST", "/api/events", json.dumps(payload).encode())
    assert status < 500, answer
    assert isinstance(json.loads(answer), dict)


@given(
    name=st.sampled_from(
        ["Host", "Origin", "Authorization", "Cookie", "Content-Type", "Last-Event-ID", "Content-Length"]
    )
    | st.sampled_from(["X-Gapless-Captured-At", "X-Gapless-Project", "X-Gapless-Delivery", "X-Gapless-Project-Key"]),
    value=st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60),
)
@hypothesis.settings(BOUNDED, max_examples=150)
def test_a_header_of_any_kind_never_breaks_the_service(target: Target, name: str, value: str) -> None:
    body = None if name == "Content-Length" else b'{"hook_event_name":"Stop","session_id":"s"}'
    status, answer = target.send("POST", "/api/events", body, **{name: value})
    assert status < 500, answer


@given(query=st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=60))
@hypothesis.settings(BOUNDED, max_examples=150)
def test_a_query_string_of_any_kind_never_breaks_the_service(target: Target, query: str) -> None:
    for path in ("/api/search", "/api/observations", "/api/queue/messages", "/api/hello", "/readyz"):
        status, answer = target.send("GET", f"{path}?{query}")
        assert status < 500, answer
