"""Laws of privacy over all texts: the cheap tests on bytes miss nothing, and cleaning twice changes nothing more."""

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from hooks import privacy, secrets
from service import marks
from service.shaping import shape

TAG_PIECES = [
    "<",
    "</",
    ">",
    "private",
    "PRIVATE",
    "system-reminder",
    "gapless-context",
    " ",
    "\n",
    "/",
    "\\",
    "x",
    "\\u003c",
]
SECRET_PIECES = [
    "password", "PASSWORD", "api_key", "token", "secret", "auth", "Authorization: Bearer ", "curl -u a:", "mysql -p",
    "//u:", "@", "=", ": ", " = ", '"', "'", "\\", "\n", ",", "hunter2", "Zx9!fake", "$X", "(", "[", "]", "--", "İ",
    "[secret:password]", "AKIAIOSFODNN7EXAMPLE", "ghp_" + "a" * 36, "sk-" + "b1" * 12, "eyJhbGciOi.eyJzdWIi.abc",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "A" * 40, "passwords", "auth=(", "setPassword(",
    "docker login", "redis-cli", " -p ", " -a ", "sshpass -p", "--token", "<password>", "</password>", "value", "root:",
    "@tcp(", "IDENTIFIED BY ", "Cookie: sid=", "abcdef0123456789x", "Basic dXNlcjpwYXNz", "swordfish", ") ", " ", "/",
]  # fmt: skip

tagged = st.lists(st.sampled_from(TAG_PIECES) | st.text(max_size=3), max_size=14).map("".join)
secretive = st.lists(st.sampled_from(SECRET_PIECES) | st.text(max_size=3), max_size=12).map("".join)
NAMES = st.sampled_from(["password", "passwords", "API_TOKEN", "Authorization", "name", "value", "apiKey"])
payloads = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | secretive
    | tagged
    | st.sampled_from(["swordfish", "DB_PASSWORD", "--token", "Bearer abc123def"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | secretive | tagged, inner, max_size=4),
    max_leaves=8,
)


def escaped(text: str, chosen: list[bool]) -> bytes:
    """A JSON string in which the characters chosen are written as escapes."""
    letters = (
        f"\\u{ord(c):04x}" if c < "\x80" and pick else json.dumps(c)[1:-1] for c, pick in zip(text, chosen, strict=True)
    )
    return f'"{"".join(letters)}"'.encode()


@given(tagged, st.data())
def test_the_test_on_bytes_misses_no_tag_however_it_is_escaped(text: str, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    if privacy.strip_text(text)[0] != text:
        assert privacy.may_hold_private(escaped(text, chosen))
        assert privacy.may_hold_private(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))


@given(tagged)
def test_stripping_twice_changes_nothing_more(text: str) -> None:
    once = privacy.strip_text(text)[0]
    assert privacy.strip_text(once) == (once, False)


@given(secretive)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = secrets.redact_text(text)
    assert secrets.redact_text(once) == once


@given(secretive, st.data())
def test_the_test_for_secrets_misses_none(text: str, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    if secrets.redact_text(text) != text:
        assert secrets.may_hold_secret(text)
        assert secrets.may_hold_secret(escaped(text, chosen))


@given(payloads, st.booleans())
def test_the_test_for_secrets_misses_none_in_a_payload(payload: object, ascii_only: bool) -> None:
    if secrets.redact_payload(payload) != payload:
        raw = json.dumps(payload, ensure_ascii=ascii_only)
        assert secrets.may_hold_secret(raw.encode("utf-8", "replace"))


@given(st.lists(payloads, max_size=4))
def test_redacting_a_payload_twice_changes_nothing_more(payload: list[object]) -> None:
    once = secrets.redact_payload(payload)
    assert secrets.redact_payload(once) == once


@given(st.binary() | payloads.map(lambda payload: json.dumps(payload).encode()))
def test_redacting_bytes_never_fails(raw: bytes) -> None:
    secrets.redact_json_bytes(raw)


@given(st.dictionaries(NAMES | secretive | tagged, payloads, max_size=4))
def test_one_pass_over_the_json_rules_out_nothing_that_would_be_removed(payload: dict[str, Any]) -> None:
    found = marks.look(orjson.dumps(payload))
    assert found.unclean or privacy.strip_payload(payload)[0] == payload
    if not found.finders:
        assert secrets.redact_payload(payload) == payload


@given(secretive)
def test_the_finders_that_one_pass_leaves_find_what_all_find(text: str) -> None:
    assert secrets.holds_secret(text, marks.look(orjson.dumps(text)).finders) == secrets.holds_secret(text)


@given(st.dictionaries(st.text(max_size=8), payloads, max_size=4))
def test_a_shaped_payload_is_json_and_stable(payload: dict[str, Any]) -> None:
    shaped = shape(payload)
    assert orjson.loads(shaped.encoded) == shaped.payload
    assert shape(shaped.payload).payload == shaped.payload
    assert shaped.payload.keys() <= {str(key) for key in shape(dict.fromkeys(payload)).payload}
