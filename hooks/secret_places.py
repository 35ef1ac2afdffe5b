"""Where in a text secrets stand that tell themselves: tokens by their shape, passwords in URLs, private keys.

Plain string work on ASCII texts: loading `re` would double the price of a hook. Every look around a place is bounded,
so time is linear in the text.
"""

from hooks.secret_kinds import (
    BASE64,
    BASE64URL,
    DIGITS,
    HYPHEN_PREFIXES,
    JWT_FEWEST,
    JWT_MARK,
    NO_HOSTS,
    SHAPES,
    SIGNATURE_FEWEST,
    SIGNATURE_MARK,
    TELEGRAM_BOT,
    TELEGRAM_FEWEST,
    TELEGRAM_MARK,
    TELEGRAM_MOST,
    UNDERSCORE_PREFIXES,
    WORD,
)
from hooks.secret_values import LONG, PLAIN, is_random, is_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

    Span = tuple[int, int, str]  # start, end, kind
    Find = Callable[[str, str], Iterator[Span]]  # of an ASCII text, given also in lower case
    Finder = tuple[tuple[str, ...], Find]  # the text must hold one of the marks, those in lower case in any case

_CHUNK = 256  # characters of a run that are looked at in one go
_LONGEST_PREFIX, _LONGEST_HEAD, _LONGEST_USERINFO = 16, 4096, 512
_URL_STOPS = " \t\r\n\v\f\"'<>`"
_KEY_BEGIN = "-----BEGIN "
_KEY_HEADER = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_KEY_FOOTER = r"-----END [A-Z0-9 ]{0,60}(?:-----)?"
_KEY_GAP = r"(?:[\s\"'+>|,?-]|\\+[nrt]|\d{1,6}\?)"  # quotes, diff marks, line numbers and arrows
_KEY_LINES = rf"(?:{_KEY_GAP}{{0,40}}[A-Za-z0-9+/=]{{20,}})+(?:{_KEY_GAP}{{1,8}}[A-Za-z0-9+/=]+)?"
_KEY_BODY = r"[A-Za-z0-9+/=\s\\\"'?|,>:.-]+$"

_compiled: "dict[str, re.Pattern[str]]" = {}


def as_ascii(text: str) -> str:
    """The text with `?` for what is not ASCII: every character keeps its place, and searching is fast."""
    return text if text.isascii() else text.encode("ascii", "replace").decode("ascii")


def run_end(text: str, at: int, characters: str, most: "int | None" = None) -> int:
    """Where the run of these characters that starts at `at` ends, at most `most` characters on."""
    if most is not None and most <= _CHUNK:
        piece = text[at : at + most]
        return at + len(piece) - len(piece.lstrip(characters))
    limit = len(text) if most is None else min(len(text), at + most)
    while at < limit:
        piece = text[at : min(at + _CHUNK, limit)]
        rest = piece.lstrip(characters)
        at += len(piece) - len(rest)
        if rest:
            break
    return at


def run_start(text: str, at: int, characters: str, most: int) -> int:
    """Where the run of these characters that ends at `at` starts, at most `most` characters before."""
    piece = text[max(0, at - most) : at]
    return at - len(piece) + len(piece.rstrip(characters))


def places(text: str, mark: str) -> "Iterator[int]":
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _shaped(mark: str, kind: str, characters: str, fewest: int, most: int) -> "Finder":
    def find(text: str, _: str) -> "Iterator[Span]":
        for start in places(text, mark):
            if start and text[start - 1].isalnum():
                continue
            body = start + len(mark)
            end = run_end(text, body, characters, most + 1)
            if fewest <= end - body <= most and not text[end : end + 1].isalnum():
                yield start, end, kind

    return (mark,), find


def _prefixed(sign: str, prefixes: "tuple[str, ...]") -> "Finder":
    endings = frozenset(prefix[-2:] for prefix in prefixes)  # of many signs, few follow these

    def find(text: str, _: str) -> "Iterator[Span]":
        at = 0  # just behind the sign
        for piece in text.split(sign)[:-1]:
            at += len(piece) + 1
            if piece[-2:] not in endings:
                continue
            start = run_start(text, at - 1, BASE64URL, _LONGEST_PREFIX)
            body = text[at : run_end(text, at, BASE64URL, LONG)]
            whole = text[start : at - 1] in prefixes and len(body) == LONG and (sign == "-" or body.isalnum())
            end = run_end(text, at, BASE64URL) if whole else at
            if whole and not _is_kebab(text[at:end]):
                yield start, end, "token"

    return tuple(prefix + sign for prefix in prefixes), find


def _is_kebab(body: str) -> bool:
    return body.islower() and all(part.isalpha() and len(part) < LONG for part in body.split("-"))


def _web_tokens(text: str, _: str) -> "Iterator[Span]":
    for start in places(text, JWT_MARK):
        if start and text[start - 1] in BASE64URL:
            continue
        head = run_end(text, start, BASE64URL, _LONGEST_HEAD)
        claims = run_end(text, head + 1, BASE64URL) if text.startswith(".", head) else head
        if head - start >= JWT_FEWEST + len(JWT_MARK) and claims - head > JWT_FEWEST:
            yield start, run_end(text, claims + 1, BASE64URL) if text.startswith(".", claims) else claims, "jwt"


def _telegram_tokens(text: str, _: str) -> "Iterator[Span]":
    for at in places(text, TELEGRAM_MARK):
        start = at + 1
        end = run_end(text, start, BASE64URL, TELEGRAM_MOST)
        if end - start >= TELEGRAM_FEWEST and at - run_start(text, at, DIGITS, TELEGRAM_BOT) == TELEGRAM_BOT:
            yield start, end, "telegram-token"


def _signatures(text: str, _: str) -> "Iterator[Span]":
    for at in places(text, SIGNATURE_MARK):
        start = at + len(SIGNATURE_MARK)
        end = run_end(text, start, BASE64 + "%", _LONGEST_USERINFO)
        if end - start >= SIGNATURE_FEWEST and text[at - 1 : at] in ("?", "&", ";"):
            yield start, end, "signature"


def _url_passwords(text: str, _: str) -> "Iterator[Span]":
    """`scheme://user:password@host`, and without a scheme `user:password@tcp(…)` or `user:password@host:5432`."""
    for at in places(text, "@"):
        before = text[max(0, at - _LONGEST_USERINFO) : at]
        slashes = before.rfind("//")
        user, colon, password = before[slashes + 2 :].partition(":") if slashes >= 0 else ("", "", "")
        if not colon or not _is_userinfo(user, password):
            user, colon, password = _login(text, at)
        if colon and password and _is_userinfo(user, password) and not is_reference(password):
            yield at - len(password), at, "url-password"


def _is_userinfo(user: str, password: str) -> bool:
    return not any(stop in user or stop in password for stop in (*_URL_STOPS, "/")) and "@" not in user


def _login(text: str, at: int) -> "tuple[str, str, str]":
    """User, colon and password in front of this `@` if a host follows it, else empty strings."""
    start = run_start(text, at, WORD + "-.!#$%^&*+=~:", 128)
    user, colon, password = text[start:at].rpartition("=")[2].partition(":")
    if not user or len(password) <= PLAIN:
        return "", "", ""
    end = run_end(text, at + 1, WORD + ".-", 80)
    host, after = text[at + 1 : end], text[end : end + 2]
    if host in ("tcp", "unix") and after[:1] == "(":
        return user, colon, password
    served = (after[:1] == ":" and after[1:].isdigit()) or (after[:1] == "/" and "." in host)
    named = host[:1].isalpha() and host not in NO_HOSTS
    return (user, colon, password) if served and named and is_random(password, "pass") else ("", "", "")


def _private_keys(text: str, _: str) -> "Iterator[Span]":
    begin = text.find(_KEY_BEGIN)
    while begin >= 0:
        following = text.find(_KEY_BEGIN, begin + 1)
        limit = following if following >= 0 else len(text)
        header = _regex(_KEY_HEADER).match(text, begin, limit)
        if header:
            footer = _regex(_KEY_FOOTER).search(text, header.end(), limit)
            cut = _regex(_KEY_LINES).match(text, header.end(), limit)
            if footer and _regex(_KEY_BODY).match(text, header.end(), footer.start()):
                yield begin, footer.end(), "private-key"
            elif cut:
                yield begin, cut.end(), "private-key"
        begin = following


def _regex(pattern: str) -> "re.Pattern[str]":
    """The pattern, compiled on first use: only a private key is worth what loading `re` costs a hook."""
    compiled = _compiled.get(pattern)
    if compiled is None:
        import re

        compiled = _compiled[pattern] = re.compile(pattern, re.ASCII)
    return compiled


FINDERS: "tuple[Finder, ...]" = (
    _prefixed("_", UNDERSCORE_PREFIXES),
    _prefixed("-", HYPHEN_PREFIXES),
    *(_shaped(*shape) for shape in SHAPES),
    ((JWT_MARK,), _web_tokens),
    ((TELEGRAM_MARK,), _telegram_tokens),
    ((SIGNATURE_MARK,), _signatures),
    (("@",), _url_passwords),
    ((_KEY_BEGIN,), _private_keys),
)
