"""Secrets in payloads: replaced by a visible placeholder such as `[secret:aws-key]`; everything around them stays.

Standard library only, any Python >= 3.9. What a secret is: `hooks.secret_places` (tokens, URLs, private keys),
`hooks.secret_names` (assignments) and `hooks.secret_commands`; none of them loads `re`, but for a private key.
"""

from hooks import secret_commands, secret_names, secret_places
from hooks.secret_kinds import SCHEMES
from hooks.secret_names import kind_of, secret_word
from hooks.secret_places import as_ascii
from hooks.secret_values import PLACEHOLDER, is_literal, is_telling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hooks.secret_places import Finder, Span

    Found = dict[str, str]  # secrets that were told, each with its placeholder

FINDERS: "tuple[Finder, ...]" = (*secret_places.FINDERS, *secret_names.FINDERS, *secret_commands.FINDERS)

_PASSES = 4  # what a replacement uncovers is looked at again
_MOST_FOUND = 64  # secrets of one payload whose repetitions are looked for
_NAME_FIELDS = ("name", "key")  # beside a field `value`
_JSON_SIGNS = "{}[]:,+-.0123456789eE \t\r\ntrufalsn"  # outside of strings
_PAIR, _QUOTED, _QUOTE = "\x00", "\x01", "\x02"  # stand for `\\`, `\"` and `"`: no JSON holds them as they are
_SIGNS, _CONTROL = (_PAIR, _QUOTED, _QUOTE), "\x03"  # an escape that spells a sign is any control character
_SECOND_HALF = 0xDC00 >> 10
_ESCAPES = (("\\/", "/"), ("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ("\\b", "\b"), ("\\f", "\f"))


def redact_text(text: str) -> str:
    """The text with each secret replaced by `[secret:<kind>]`, also where the text repeats it. Redacting twice changes
    nothing more."""
    found: Found = {}
    return _without(_redacted(text, found), found)


def redact_payload(payload: object) -> object:
    """A copy of parsed JSON with the secrets of every string replaced, keys included, at any depth.

    A secret that one place tells (`export PGPASSWORD=…`) is also replaced where the payload repeats it.
    """
    found: Found = {}
    copy = _mapped(payload, lambda name, value: _redacted_field(name, value, found))
    return _mapped(copy, lambda _, value: _without(value, found)) if found else copy


def holds_secret(text: str, finders: "tuple[Finder, ...]" = FINDERS) -> bool:
    """Whether `redact_text` would change this text, or one of the texts that it joins by line ends. `finders` are
    those whose marks the text may hold."""
    return any(True for _ in _find(text, finders))


def redact_json_bytes(raw: bytes) -> bytes:
    """The same JSON without secrets; what is no JSON is redacted as text. Never raises."""
    import json

    try:
        return json.dumps(redact_payload(json.loads(raw))).encode()
    except (ValueError, RecursionError):
        return redact_text(raw.decode("utf-8", "replace")).encode("utf-8", "replace")


def may_hold_secret(raw: "bytes | str") -> bool:
    """False only if neither `redact_text` nor, for the bytes of a JSON text, `redact_payload` would change it.

    Costs no parser, which a hook pays for only when there is something to replace.
    """
    if isinstance(raw, str):
        return holds_secret(raw)
    text = raw.decode("utf-8", "replace")
    pieces = _unescaped(text).split(_QUOTE)  # every second one is a string
    if holds_secret("\n".join(pieces)) or any(_tells_field(pieces, at) for at in range(1, len(pieces), 2)):
        return True
    is_json = (
        not any(sign in text for sign in _SIGNS)
        and len(pieces) % 2 == 1
        and not "".join(pieces[::2]).strip(_JSON_SIGNS)
    )
    return not is_json and holds_secret(text)


def _find(text: str, finders: "tuple[Finder, ...]" = FINDERS) -> "Iterator[Span]":
    text = as_ascii(text)
    low = text.lower()
    for _, find in finders:
        yield from find(text, low)


def _redacted(text: str, found: "Found") -> str:
    for _ in range(_PASSES):
        spans = sorted(_find(text), key=lambda span: (span[0], -span[1]))
        if not spans:
            break
        pieces, position = [], 0
        for start, end, kind in spans:
            if start >= position:
                pieces += [text[position:start], _placeholder(text[start:end], kind, found)]
                position = end
        text = "".join(pieces) + text[position:]
    return text


def _redacted_field(name: str, value: str, found: "Found") -> str:
    """The value of a field: as a whole if the name says secret and it is a literal, else as a text."""
    word = secret_word(name)
    plain = as_ascii(value) if word else ""
    if word and is_literal(plain, word, quoted=True, constant=name.isupper()):
        return _placeholder(value, kind_of(word), found)
    scheme, _, credential = plain.partition(" ")
    if word == "auth" and scheme.lower() in SCHEMES and is_literal(credential, "secret", quoted=True):
        return f"{scheme} {_placeholder(value[len(scheme) + 1 :], word, found)}"
    return _redacted(value, found)


def _placeholder(secret: str, kind: str, found: "Found") -> str:
    placeholder = f"{PLACEHOLDER}{kind}]"
    if len(found) < _MOST_FOUND and kind != "private-key" and is_telling(secret):
        found[secret] = placeholder
    return placeholder


def _without(text: str, found: "Found") -> str:
    """The text without the repetitions of secrets, but for those that are part of a longer word."""
    for secret in sorted(found, key=len, reverse=True):
        pieces, kept_from = [], 0
        at = text.find(secret)
        while at >= 0:
            end = at + len(secret)
            joined = text[max(0, at - 1) : at].isalnum() and secret[0].isalnum()
            if not joined and not (text[end : end + 1].isalnum() and secret[-1].isalnum()):
                pieces += [text[kept_from:at], found[secret]]
                kept_from = end
            at = text.find(secret, end)
        text = "".join([*pieces, text[kept_from:]]) if pieces else text
    return text


def _mapped(payload: object, change: "Callable[[str, str], str]") -> object:
    """A copy in which each string, given with the name that it has, is changed."""
    root: list[Any] = [payload]
    unvisited: list[tuple[Any, str]] = [(root, "")]  # copies whose children are still the originals; no recursion
    while unvisited:
        node, outer = unvisited.pop()
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            name = _name_in_object(node, key) if isinstance(node, dict) else _name_in_list(node, key, outer)
            if isinstance(value, str):
                node[key] = change(name, value)
            elif isinstance(value, dict):
                node[key] = {change("", inner): child for inner, child in value.items()}
                unvisited.append((node[key], ""))
            elif isinstance(value, list):
                node[key] = list(value)
                unvisited.append((node[key], name))
    return root[0]


def _name_in_object(fields: "dict[str, Any]", key: "Any") -> str:
    """The field's own name, or the one that its neighbour gives: `{"name": "DB_PASSWORD", "value": "…"}`."""
    given = next((fields[field] for field in _NAME_FIELDS if field in fields), None) if key == "value" else None
    return given if isinstance(given, str) else key


def _name_in_list(items: "list[Any]", at: int, outer: str) -> str:
    """The flag before it, or what the list's name says of each: `["--token", "…"]`, `{"passwords": ["…"]}`."""
    flag = items[at - 1] if at else None
    if isinstance(flag, str) and flag.startswith("-"):
        return flag
    return secret_word(outer, plural=True)


def _unescaped(text: str) -> str:
    """JSON with its escapes undone, and `_QUOTE` where a string starts or ends."""
    text = text.replace("\\\\", _PAIR).replace('\\"', _QUOTED).replace('"', _QUOTE)
    if "\\" in text:
        for escape, character in _ESCAPES:
            text = text.replace(escape, character)
        first, *others = text.split("\\u")
        text = first + "".join(_character(other[:4]) + other[4:] for other in others)
    return text.replace(_PAIR, "\\").replace(_QUOTED, '"')


def _character(digits: str) -> str:
    try:
        code = int(digits, 16)
    except ValueError:
        return digits
    if code >> 10 == _SECOND_HALF:  # of a pair, which is one character
        return ""
    return chr(code) if chr(code) not in _SIGNS else _CONTROL


def _tells_field(pieces: "list[str]", at: int) -> bool:
    """Whether the string at this odd place is a name that makes a secret of what follows or stands beside it."""
    name = pieces[at]
    if not secret_word(name, plural=True) or at + 1 >= len(pieces):
        return False
    follows = pieces[at + 1].strip()
    if follows == ":":
        value = pieces[at + 2]
        return _redacted_field(name, value, {}) != value
    if follows.startswith(":"):
        return follows[1:].lstrip().startswith("[")
    return name.startswith("-") or (at > 1 and pieces[at - 2] in _NAME_FIELDS and pieces[at - 1].strip() == ":")
