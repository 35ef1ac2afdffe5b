"""Looking into the payload's bytes and changing them, with a JSON parser only where there is no other way."""

from __future__ import annotations

from hooks import privacy

BODY_MAX = 16_000_000  # bytes; the service takes 16 MB
HEAD = 4096  # the fields that every payload has come first
CHARS_MAX = 1_000_000  # where cutting starts; halved until the whole fits
ITEMS_MAX = 100_000
IDS = ("hook_event_name", "session_id", "prompt_id", "cwd", "tool_name", "tool_use_id", "agent_id", "source", "reason")


def peek(raw: bytes, name: bytes) -> bytes | None:
    """The string at `name` of the top level, still encoded; None where only a parser can tell."""
    start = raw.find(b'"%b"' % name, 0, HEAD)
    head = raw[: max(start, 0)]
    if start < 0 or b"\\" in head:
        return None
    structure = b"".join(head.split(b'"')[::2])  # without escapes every second piece is inside a string
    depth = sum(structure.count(sign) for sign in (b"{", b"[")) - sum(structure.count(sign) for sign in (b"}", b"]"))
    colon, quote, rest = raw[start + len(name) + 2 :].partition(b'"')
    value, end, _ = rest.partition(b'"')
    if depth != 1 or colon.strip() != b":" or not quote or not end or b"\\" in value:
        return None
    return value


def text_at(raw: bytes, name: str) -> str | None:
    """The string at `name` of the top level, if there is one."""
    value = peek(raw, name.encode())
    return value.decode("utf-8", "surrogateescape") if value is not None else _parsed(raw, name)


def without_private(raw: bytes) -> tuple[bytes, bool]:
    """The payload, cleaned as text if it doesn't parse, without its private parts; and whether the turn is private."""
    if not privacy.may_hold_private(raw):
        return raw, False
    import json

    try:
        cleaned, private = privacy.strip_payload(json.loads(raw))
    except (ValueError, RecursionError):
        return _strip_as_text(raw), False
    if private and isinstance(cleaned, dict):
        cleaned = {**cleaned, "prompt": "", "private": True}
    return json.dumps(cleaned).encode("ascii"), private


def without_text(raw: bytes) -> bytes:
    """What an event of a private turn is when it has to wait: its ids, so that it can be counted and told apart."""
    import json

    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    kept = {name: document[name] for name in IDS if name in document} if isinstance(document, dict) else {}
    return json.dumps({**kept, "private": True}).encode("ascii")


def fit(raw: bytes) -> tuple[bytes, bool]:
    """The payload in at most `BODY_MAX` bytes, long strings and lists cut. False when that leaves no payload."""
    if len(raw) <= BODY_MAX:
        return raw, True
    import json

    try:
        document = json.loads(raw)
        chars, items = CHARS_MAX, ITEMS_MAX
        while len(raw) > BODY_MAX and chars:
            raw = json.dumps(_cut_fields(document, chars, items)).encode("ascii")
            chars, items = chars // 2, items // 2
    except (ValueError, RecursionError):
        return raw[:BODY_MAX], False
    return raw[:BODY_MAX], len(raw) <= BODY_MAX


def _cut_fields(document: object, chars: int, items: int) -> object:
    """Every field of the top level stays: the ids that make the event itself are there."""
    if isinstance(document, dict):
        return {name: _cut(value, chars, items) for name, value in document.items()}
    return _cut(document, chars, items)


def _cut(value: object, chars: int, items: int) -> object:
    if isinstance(value, str) and len(value) > chars:
        half = chars // 2
        return f"{value[:half]}…[{len(value) - 2 * half} characters cut of {len(value)}]…{value[len(value) - half :]}"
    if isinstance(value, list):
        return [_cut(item, chars, items) for item in value[:items]]
    if isinstance(value, dict):
        return {name: _cut(item, chars, items) for name, item in list(value.items())[:items]}
    return value


def _parsed(raw: bytes, name: str) -> str | None:
    if f'{name}"'.encode() not in raw:
        return None
    import json

    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None


def _strip_as_text(raw: bytes) -> bytes:
    """What doesn't parse has no strings with ends, so an unclosed private part reaches to the end of the bytes."""
    import re

    # The letters of a tag may be escapes too; the scanner expects that only of parsed strings.
    plain = re.sub(rb"\\u00([2-7][0-9A-Fa-f])", lambda escape: bytes([int(escape[1], 16)]), raw)
    return privacy.strip_text(plain.decode("latin-1"))[0].encode("latin-1")
