"""What of a hook's payload is stored: no private parts, secrets, binaries or excess, and always writable as JSON."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import orjson

from hooks import privacy, secrets
from hooks.secret_names import secret_word
from service import marks
from service.errors import InvalidInput
from service.marks import LONG_RUN

if TYPE_CHECKING:
    from hooks.secret_places import Finder

DEFAULT_CAP = 32_000  # characters of one string
LARGEST_PAYLOAD_BYTES = 256 * 1024
DEEPEST_NESTING = 100
_MOST_TO_REDACT = 2 * LARGEST_PAYLOAD_BYTES  # bounds the time that a hostile payload can take
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**64 - 1

_SHORTEST_CUT = 250  # strings of this many characters are whole in any payload: ids, names, paths
_CHARACTERS_PER_ITEM = 8  # lists and objects are cut only in payloads that are still too large, to cap / 8 items
_DROPPED = "originalFile"  # the whole file before an edit; the edit itself says what changed
_DATA_FIELDS = frozenset({"base64", "data", "blob"})
_SHORTEST_BASE64 = 64
_SHORTEST_SECRET = 16  # an identifier below it is no token, and no identifier holds a tag or half a surrogate pair

_WINDOW = re.compile(r"[A-Za-z0-9+/_-]{500}")  # a long run covers at least one window that starts at a multiple of 500
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{1000,}={0,2}")
_KINDS_OF_CHARACTER = tuple(re.compile(kind) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
_DATA_URI = re.compile(r"(?i)(data:(image/)?[^,\s;]{0,80}(?:;[^,\s;]{1,80}){0,4};base64,)([A-Za-z0-9+/=_-]{16,})")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\r\n-]{1,256}")
_CUT_NOTE = re.compile(r"…\[\d{1,12} (?:characters|items) cut of (\d{1,12})\]…")  # an earlier cut knows the true length
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """A payload as it is stored, the same as JSON, and whether it is the prompt of a private turn (also by the word of
    the hook, which sends `"private": true` instead of the text)."""

    payload: dict[str, Any]
    encoded: bytes
    private: bool


def shape(payload: dict[str, Any], *, cap: int = DEFAULT_CAP) -> Shaped:
    """Cleans a parsed hook payload for storage; the given one is left alone.

    Strings longer than `cap` characters keep head and tail; the cap is halved until the whole fits in 256 kB. Raises
    InvalidInput(400) as `check_limits` does.
    """
    kept = _without_original_file(payload)
    encoded = _encoded(kept)
    found = marks.EVERYTHING if encoded is None else marks.look(encoded)
    private = payload.get("private") is True
    if found.unclean:
        kept, private = _clean(payload, 1), private or privacy.is_private_turn(payload)
    elif encoded is not None and not found.finders and len(encoded) <= cap:
        return Shaped(payload=kept, encoded=encoded, private=private)
    kept, encoded = _redacted(kept, cap, found.finders)
    return Shaped(payload=kept, encoded=encoded, private=private)


def _without_original_file(payload: dict[str, Any]) -> dict[str, Any]:
    """Looks where edits have it; `_clean` finds it anywhere."""
    response = payload.get("tool_response")
    if not isinstance(response, dict) or _DROPPED not in response:
        return payload
    kept = {name: value for name, value in response.items() if name != _DROPPED}
    return {name: kept if name == "tool_response" else value for name, value in payload.items()}


def _encoded(payload: dict[str, Any]) -> bytes | None:
    """The payload as JSON, or None when half a surrogate pair is in it. Raises as `check_limits`."""
    try:
        encoded = orjson.dumps(payload)
    except orjson.JSONEncodeError:
        check_limits(payload)
        return None
    # without as many brackets or a null it can't nest too deep or hold a NaN
    if encoded.count(b"[") + encoded.count(b"{") > DEEPEST_NESTING or b"null" in encoded:
        check_limits(payload)
    return encoded


def _redacted(payload: dict[str, Any], cap: int, finders: "tuple[Finder, ...]") -> tuple[dict[str, Any], bytes]:
    """The clean payload without secrets and excess, and as JSON. `finders` are those that may find a secret in it."""
    contents, kept = _contents(payload), cast("Any", payload)
    crowded = contents.characters > _MOST_TO_REDACT
    if crowded:  # keep twice what will stay, so that no secret is halved where it would still show
        kept, _, limit = _fitted(kept, 4 * cap, _MOST_TO_REDACT)
        cap = min(cap, limit // 2)
    if crowded or contents.names_secret or (finders and secrets.holds_secret("\n".join(contents.texts), finders)):
        kept = secrets.redact_payload(kept)
    if contents.longest > cap:
        kept = _cut(kept, max(cap, _SHORTEST_CUT), None)
    kept, encoded, _ = _fitted(kept, cap, LARGEST_PAYLOAD_BYTES)
    return kept, encoded


def check_limits(payload: object) -> None:
    """Raises InvalidInput(400) for nesting deeper than 100, NaN, Infinity and integers that 64 bits do not hold."""
    level, depth = [payload], 1
    while level:
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict | list):
                inner.extend(value.values() if isinstance(value, dict) else value)
            elif isinstance(value, int) and not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
                raise InvalidInput(
                    "The JSON holds an integer that 64 bits do not hold; send it as a string.", status=400
                )
            elif isinstance(value, float) and not math.isfinite(value):
                raise InvalidInput("The JSON holds NaN or Infinity; send null or a string.", status=400)
        if depth > DEEPEST_NESTING and any(isinstance(value, dict | list) for value in level):
            raise InvalidInput(f"The JSON nests deeper than {DEEPEST_NESTING} levels; send it flatter.", status=400)
        level, depth = inner, depth + 1


def clean_text(text: str) -> str:
    """Text that a row can hold: no NUL, no half of a surrogate pair."""
    return _without_surrogates(text.replace("\0", ""))


def _clean(value: Any, depth: int, *, image: bool = False, response: bool = False) -> Any:
    """A copy without private parts, whole files, binaries and halves of surrogate pairs."""
    if isinstance(value, str):
        return _clean_string(value)
    if isinstance(value, list):
        return [_clean(item, depth + 1, image=image, response=response) for item in value]
    if isinstance(value, dict):
        return _clean_fields(value, depth, image=image or _is_image(value), response=response)
    return value


def _clean_fields(fields: dict[str, Any], depth: int, *, image: bool, response: bool) -> dict[str, Any]:
    cleaned = {}
    for name, value in fields.items():
        if response and name == _DROPPED:
            continue
        if name in _DATA_FIELDS and isinstance(value, str) and _is_binary(value, fields, image=image):
            cleaned[name] = _removed(value, image=image)
        else:
            inner = response or (depth == 1 and name == "tool_response")
            cleaned[_clean_string(name)] = _clean(value, depth + 1, image=image, response=inner)
    return cleaned


def _clean_string(text: str) -> str:
    if not text.isascii():
        text = _without_surrogates(text)
    if "<" in text or "\\u003" in text:
        text = privacy.strip_text(text)[0]
    return _without_binaries(text) if len(text) >= _SHORTEST_BASE64 else text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What the search for secrets asks of a payload: its strings, how many characters they have, the longest of them,
    and whether a name says that a value is secret."""

    texts: set[str]
    characters: int
    longest: int
    names_secret: bool


def _contents(payload: dict[str, Any]) -> _Contents:
    texts: list[str] = []
    names_secret = False
    unvisited: list[Any] = [payload]
    while unvisited:
        node = unvisited.pop()
        if isinstance(node, dict):
            names_secret = names_secret or _names_a_secret(node)
            texts.extend(node)
            node = node.values()
        else:
            names_secret = names_secret or any(isinstance(item, str) and _is_secret_flag(item) for item in node)
        for value in node:
            if isinstance(value, str):
                texts.append(value)
            elif isinstance(value, dict | list):
                unvisited.append(value)
    lengths = [*map(len, texts)]
    return _Contents(
        texts=set(texts), characters=sum(lengths), longest=max(lengths, default=0), names_secret=names_secret
    )


def _names_a_secret(fields: dict[str, Any]) -> bool:
    """Whether a field's name says so, or a neighbour of the field `value`."""
    return any(
        isinstance(value, str | list) and (_says_secret(name) or (name == "value" and _tells_name(fields)))
        for name, value in fields.items()
    )


def _is_secret_flag(text: str) -> bool:
    """Whether this item of a list makes a secret of the next one."""
    return text.startswith("-") and len(text) <= _SHORTEST_BASE64 and _says_secret(text)


@lru_cache(maxsize=1024)
def _says_secret(name: str) -> bool:
    return bool(secret_word(name, plural=True))


def _tells_name(fields: dict[str, Any]) -> bool:
    """Whether a neighbour of the field `value` holds the name of a secret."""
    return any(isinstance(text, str) and _says_secret(text) for text in fields.values())


def _is_image(fields: dict[str, Any]) -> bool:
    return any(str(fields.get(name, "")).startswith("image") for name in ("type", "media_type", "mimeType"))


def _is_binary(value: str, fields: dict[str, Any], *, image: bool) -> bool:
    """Whether the field `data`, `base64` or `blob` of these fields holds base64 and no text."""
    told = image or fields.get("type") == "base64" or "mimeType" in fields
    if not told and ("base64" not in fields or len(value) < _SHORTEST_BASE64):
        return False
    found = _BASE64.match(value)
    return found is not None and found.end() == min(len(value), 256)


def _removed(value: str, *, image: bool) -> str:
    return f"[{'image' if image else 'binary'} removed, {len(value)} characters]"


def _without_binaries(text: str) -> str:
    if ";base64," in text:
        text = _DATA_URI.sub(lambda uri: uri[1] + _removed(uri[3], image=bool(uri[2])), text)
    if any(_WINDOW.match(text, at) for at in range(0, len(text) - LONG_RUN + 1, LONG_RUN // 2)):
        text = _RUN.sub(_without_run, text)
    return text


def _without_run(run: re.Match[str]) -> str:
    """Base64 of a thousand characters has letters of both cases and digits; a ruler or a long word has not."""
    return _removed(run[0], image=False) if all(kind.search(run[0]) for kind in _KINDS_OF_CHARACTER) else run[0]


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def _fitted(value: Any, cap: int, largest_bytes: int) -> tuple[Any, bytes, int]:
    """The value cut ever harder until its JSON fits, that JSON, and the cap that did it."""
    whole, encoded = value, orjson.dumps(value)
    while len(encoded) > largest_bytes and cap > 1:
        cap //= 2
        value = _cut(whole, max(cap, _SHORTEST_CUT), cap // _CHARACTERS_PER_ITEM)
        encoded = orjson.dumps(value)
    return value, encoded, cap


def _cut(value: Any, cap: int, items: int | None) -> Any:
    """Strings beyond `cap` characters keep half of it at either end; lists and objects keep their first `items`."""
    if isinstance(value, str):
        return value if len(value) <= cap else _head_and_tail(value, cap // 2)
    if isinstance(value, dict):
        kept = {key: _cut(item, cap, items) for key, item in list(value.items())[:items]}
        return kept if len(kept) == len(value) else {**kept, "…": _items_cut(len(kept), len(value), value.get("…"))}
    if isinstance(value, list):
        shortened = [_cut(item, cap, items) for item in value[:items]]
        left = len(value) - len(shortened)
        return [*shortened, _items_cut(len(shortened), len(value), value[-1])] if left else shortened
    return value


def _head_and_tail(text: str, half: int) -> str:
    told = _CUT_NOTE.search(text)
    total = int(told[1]) if told else len(text)
    return f"{text[:half]}…[{total - 2 * half} characters cut of {total}]…{text[len(text) - half :]}"


def _items_cut(kept: int, length: int, last: Any) -> str:
    told = _CUT_NOTE.fullmatch(last) if isinstance(last, str) else None
    total = int(told[1]) if told else length
    return f"…[{total - kept} items cut of {total}]…"
