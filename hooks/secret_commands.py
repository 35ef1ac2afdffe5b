"""Secrets that are told by the command, header or statement they belong to: `curl -u`, `Bearer`, `IDENTIFIED BY`.

Plain string work on ASCII texts, as in `hooks.secret_places`; each look goes to the end of its line at most.
"""

from hooks.secret_kinds import AFTER_COLON, APART, BASE64, COMMANDS, EITHER, JOINED, LOGIN_OWNERS, WORD
from hooks.secret_names import closing_quote, opening_quote
from hooks.secret_places import places, run_end
from hooks.secret_values import LONG, PLACEHOLDER, SHORT, is_credential, is_literal, is_random, is_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from hooks.secret_places import Finder, Span

_BLANKS = " \t"
_LONGEST_COMMAND, _LONGEST_STATEMENT, _LONGEST_OWNER = 400, 60, 24
_MOST_FLAGS, _LONGEST_CLUSTER = 16, 8
_ARGUMENT = "".join(sign for sign in map(chr, range(33, 127)) if sign not in "\"'\\`;|<>")


def _commanded(command: str, flags: "tuple[str, ...]", form: str) -> "Finder":
    def find(text: str, low: str) -> "Iterator[Span]":
        for at in places(low, command):
            if command != "login" or low[max(0, at - _LONGEST_OWNER) : at].rstrip().endswith(LOGIN_OWNERS):
                yield from _arguments(text, at + len(command), _command_end(low, at, command), flags, form)

    return (command,), find


def _bearer(text: str, low: str) -> "Iterator[Span]":
    for start, end in _after_scheme(text, low, "bearer"):
        if is_credential(text[start:end]):
            yield start, end, "token"


def _basic(text: str, low: str) -> "Iterator[Span]":
    for start, end in _after_scheme(text, low, "basic"):
        if _is_basic(text[start:end]):
            yield start, end, "auth"


def _after_scheme(text: str, low: str, scheme: str) -> "Iterator[tuple[int, int]]":
    for at in places(low, scheme + " "):
        start = run_end(text, at + len(scheme), _BLANKS, 4)
        yield start, run_end(text, start, BASE64 + ".~")


def _openssl(text: str, low: str) -> "Iterator[Span]":
    for at in places(low, " pass:"):
        if low.endswith(("-passin", "-passout", "-pass"), 0, at):
            yield from _argument(text, at + len(" pass:"))


def _command_end(low: str, at: int, command: str) -> int:
    """Where the line of the command at this place ends, or the next one like it starts."""
    end = min(len(low), at + _LONGEST_COMMAND)
    ends = low.find("\n", at, end), low.find(command, at + 1, end)
    return min((found for found in ends if found >= 0), default=end)


def _arguments(text: str, at: int, end: int, flags: "tuple[str, ...]", form: str) -> "Iterator[Span]":
    """The values that these flags have between `at` and `end`."""
    for _ in range(_MOST_FLAGS):
        blank = text.find(" -", at, end)
        if blank < 0 or (form != AFTER_COLON and any(sign in text[at:blank] for sign in "|;&")):
            return
        at = run_end(text, blank + 1, WORD + "-")
        flag = text[blank + 1 : at]
        if form == AFTER_COLON and (flag in flags or _is_cluster(flag)):
            yield from _after_user(text, run_end(text, at, " =", 2))
        elif form in (APART, EITHER) and flag in flags:
            yield from _argument(text, run_end(text, at, " =", 4))
        elif form in (JOINED, EITHER) and flag.startswith(flags) and not text.startswith((" ", "-"), blank + 3):
            yield from _argument(text, blank + 3)


def _is_cluster(flag: str) -> bool:
    """Short flags of curl in one, the last of which takes user and password: `-su`."""
    return flag[1:].isalpha() and flag.endswith(("u", "U")) and len(flag) < _LONGEST_CLUSTER


def _after_user(text: str, at: int) -> "Iterator[Span]":
    _, start = opening_quote(text, at)
    end = run_end(text, start, _ARGUMENT, _LONGEST_STATEMENT)
    user, colon, _ = text[start:end].partition(":")
    if colon and user:
        yield from _argument(text, start + len(user) + 1)


def _argument(text: str, at: int) -> "Iterator[Span]":
    """The word of a command line that starts here, or what stands between quotes here, if it can be a password."""
    quote, start = opening_quote(text, at)
    end = closing_quote(text, start, quote) if quote else -1
    end = end if end >= 0 else run_end(text, start, _ARGUMENT)
    value = text[start:end]
    if value.strip() and not value.startswith("-") and PLACEHOLDER not in value and not is_reference(value):
        yield start, end, "password"


def _identified_by(text: str, low: str) -> "Iterator[Span]":
    for at in places(low, "identified"):
        by = low.find(" by ", at, at + _LONGEST_STATEMENT)
        quote, start = opening_quote(text, run_end(text, by + 4, _BLANKS, 4)) if by >= 0 else ("", at)
        end = closing_quote(text, start, quote) if quote else -1
        if end >= 0 and is_literal(text[start:end], "pass", quoted=True):
            yield start, end, "password"


def _cookies(text: str, low: str) -> "Iterator[Span]":
    """Long random values in a Cookie or Set-Cookie header: who has them is signed in."""
    for cookie in places(low, "cookie"):
        named = run_end(text, cookie + len("cookie"), "\\\"'", 4)
        value = run_end(text, named, ": ,\"'\\", 6)
        if not text[named:value].strip("\"'\\ "):  # neither a colon nor a comma
            continue
        line = text.find("\n", value, value + _LONGEST_COMMAND)
        for pair in text[value : line if line >= 0 else value + _LONGEST_COMMAND].split(";"):
            name, sign, _ = pair.partition("=")
            start = value + len(name) + len(sign)
            end = run_end(text, start, BASE64 + "%.~", len(pair))
            if sign and end - start >= LONG and _is_cookie_name(name) and is_random(text[start:end], "token"):
                yield start, end, "cookie"
            value += len(pair) + 1


def _is_cookie_name(name: str) -> bool:
    return not name.strip(WORD + " .-")


def _is_basic(value: str) -> bool:
    """Whether this is base64 of `user:password`."""
    if len(value) < SHORT or (value.isalpha() and (value.islower() or value.istitle())):
        return False
    from binascii import Error, a2b_base64

    try:
        decoded = a2b_base64(value)
    except Error:
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode("ascii").isprintable()


FINDERS: "tuple[Finder, ...]" = (
    *(_commanded(*command) for command in COMMANDS),
    (("bearer ",), _bearer),
    (("basic ",), _basic),
    ((" pass:",), _openssl),
    (("identified",), _identified_by),
    (("cookie",), _cookies),
)
