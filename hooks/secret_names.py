"""Secrets that are told by the name they are assigned to: `PGPASSWORD=…`, `"client_secret": "…"`, `setPassword("…")`.

Plain string work on ASCII texts, as in `hooks.secret_places`; every look around a name is bounded.
"""

from hooks.secret_kinds import (
    BASE64,
    DIGITS,
    KEY_OWNERS,
    KINDS,
    LETTERS,
    NAME_ENDS,
    NAME_TAILS,
    NO_NAMES,
    NO_TOKEN_OWNERS,
    PASSWORD_WORDS,
    PLURAL_ENDS,
    PUTTERS,
    SCHEMES,
    SETTERS,
    STRONG_WORDS,
    WORD,
    WORDS,
)
from hooks.secret_places import as_ascii, run_end, run_start
from hooks.secret_values import PLACEHOLDER, PLAIN, SHORT, is_code, is_credential, is_literal, is_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from hooks.secret_places import Finder, Span

_NAME_RUN = WORD + "-"
_BLANKS, _QUOTES, _BACKSLASH = " \t", ("'", '"', "`"), "\\"
_OPERATORS = ("=>", ":=", "===", "==", "=", "::", ":", ",", ">", "(")
_ASSIGNING = ("=", ":", "=>", ":=", "===", "==")
_UNQUOTED = ("=", ":", ">", " ", "is")  # operators that values without quotes may follow
_OWNED = ("key", "token")  # what stands before these counts
_OTHER_LETTERS = frozenset(LETTERS.lower()).difference(end[0] for end in (*NAME_ENDS, *PLURAL_ENDS) if end)
_FOLLOWING = frozenset("=:,>(\"'`[\\* \t\r\n")  # what can stand behind a name that is assigned to
_SPACE, _VERB, _VERBS = " ", "is", ("is: ", "is ", "was ")  # white space alone, or a verb, in the place of an operator
_GO_TYPES, _LONGEST_TYPE = ("string", "[]byte"), 48
_LONGEST_FIELD, _LONGEST_NAME, _LONGEST_TAIL, _LONGEST_QUOTED, _LONGEST_GAP = 64, 48, 24, 4096, 40
_MOST_ITEMS, _LONGEST_NUMBER = 50, 2
_PRINTABLE = "".join(map(chr, range(33, 127)))
_PLAIN_RUN = "".join(sign for sign in _PRINTABLE if sign not in "\"'`;&|<>(){}[],\\")  # of an unquoted value
_SHELL_RUN = _PLAIN_RUN + "(){}[],"
_ENOUGH = 128  # characters of an unquoted value to judge by, so that each try costs no more


class _Assignment:
    """What follows a name: whether the name has quotes of its own, the operator, whether it stands without blanks, the
    opening quote of the value with the backslashes before it, and where the value starts."""

    __slots__ = ("closed", "operator", "quote", "start", "tight")

    def __init__(self, *, closed: bool, operator: str, tight: bool, quote: str, start: int) -> None:
        self.closed, self.operator, self.tight, self.quote, self.start = closed, operator, tight, quote, start


def secret_word(name: str, *, plural: bool = False) -> str:
    """The word that says that a field of this name holds a secret (`apiKey`, `DB_PASSWORD`), or ""; with `plural` also
    the word of a name for several (`passwords`)."""
    if len(name) > _LONGEST_FIELD:
        return ""
    low = as_ascii(name).lower()
    for word in WORDS:
        at = low.rfind(word)
        if at >= 0 and _name_end(low, at, word, plural=plural) == len(name):
            return word
    return ""


def can_be_assigned(low: str, at: int, word: str) -> bool:
    """Whether the word at `at` of a text in lower case can end a name to which a secret is assigned."""
    end = _name_end(low, at, word, plural=True)
    return end >= 0 and low[end : end + 1] in _FOLLOWING


def kind_of(word: str) -> str:
    return KINDS.get(word, word)


def _assigned(word: str) -> "Finder":
    """Finds the literals that are assigned to names with this word."""

    def find(text: str, low: str) -> "Iterator[Span]":
        at = low.find(word)
        while at >= 0:
            searched = at + 1
            for start, end in _named(text, low, at, word):
                searched = max(searched, end)
                yield start, end, kind_of(word)
            at = low.find(word, searched)

    return (word,), find


def closing_quote(text: str, start: int, quote: str) -> int:
    """Where the closing quote stands on the same line, or -1. `quote` holds the backslashes before it, if escaped."""
    newline = text.find("\n", start, limit := min(len(text), start + _LONGEST_QUOTED))
    end = text.find(quote, start, limit := newline if newline >= 0 else limit)
    while end > start and text[end - 1] == _BACKSLASH:
        backslashes = end - len(text[start:end].rstrip(_BACKSLASH)) - start
        if len(quote) == 1 and backslashes % 2 == 0:
            break
        end = text.find(quote, end + 1, limit)
    return end


def opening_quote(text: str, at: int) -> "tuple[str, int]":
    """The quote here, with the backslashes that escape it, or "", and where what it opens starts."""
    quote = run_end(text, at, _BACKSLASH, 8)
    return (text[at : quote + 1], quote + 1) if text[quote : quote + 1] in _QUOTES else ("", at)


def _name_end(low: str, at: int, word: str, *, plural: bool = False) -> int:
    """Where the name that holds this word ends, or -1 if it says no secret: `author`, `keyboard`, `passed`."""
    start = at + len(word)
    if low[start : start + 1] in _OTHER_LETTERS:  # no such name goes on so
        return -1
    if word in _OWNED:
        before = low[max(0, at - 16) : at].rstrip(" _-.")
        if not before.endswith(KEY_OWNERS) if word == "key" else before.endswith(NO_TOKEN_OWNERS):
            return -1
    end = run_end(low, start, _NAME_RUN, _LONGEST_TAIL)
    rest = _without_tail(low[start:end].replace("-", "_")) if end > start else ""
    if not rest and low.endswith(NO_NAMES, 0, start):
        return -1
    told = rest in NAME_ENDS or (word == "credential" and rest == "s") or (plural and rest in PLURAL_ENDS)
    return end if told else -1


def _without_tail(rest: str) -> str:
    """How a name goes on behind its word, without a number and `_prod`, `_value`, …"""
    stem, _, tail = rest.rpartition("_")
    if tail in NAME_TAILS and stem != rest:
        rest = stem
    number = len(rest) - len(rest.rstrip(DIGITS))
    return rest.rstrip(DIGITS).removesuffix("_") if 0 < number <= _LONGEST_NUMBER else rest


def _named(text: str, low: str, at: int, word: str) -> "Iterator[tuple[int, int]]":
    """Start and end of each literal that is assigned to the name with the word at `at`."""
    end = _name_end(low, at, word, plural=True)
    if end < 0 or text[end : end + 1] not in _FOLLOWING or _in_placeholder(low, at):
        return
    start = run_start(text, at, WORD + ".-", _LONGEST_NAME)
    name, assigned = text[start:end], _assignment(text, end)
    opened = run_end(text, end, " =", 4)
    header = low.startswith("orization", at + len(word)) and assigned.operator in (*_ASSIGNING, ",")
    credential = _credential(text, assigned.start) if header else None
    if assigned.operator in _ASSIGNING and not assigned.quote and text.startswith("[", assigned.start):
        yield from _listed(text, assigned.start + 1, word)
    elif _name_end(low, at, word) < 0:  # a plural names a list
        return
    elif word == "auth" and text.startswith("(", opened):
        yield from _second_of_pair(text, opened + 1)
    elif credential:
        yield credential
    elif _is_assigned(text, low, start, name, word, assigned):
        close = closing_quote(text, assigned.start, assigned.quote) if assigned.quote else -1
        if close < 0:
            yield from _unquoted(text, name, word, assigned)
        elif is_literal(text[assigned.start : close], word, quoted=True, constant=name.isupper()):
            yield assigned.start, close


def _in_placeholder(low: str, at: int) -> bool:
    inside = low.rfind(PLACEHOLDER, max(0, at - _LONGEST_NAME), at + len(PLACEHOLDER))
    return inside >= 0 and "]" not in low[inside:at] and "\n" not in low[inside:at]


def _assignment(text: str, end: int) -> _Assignment:
    """What follows the name that ends here; without an operator it may be no assignment at all."""
    at = _after_close(text, end)
    field = run_end(text, at, " \t\r\n,\"'\\", _LONGEST_GAP)
    if field > at and text[field : field + 5].lower() == "value":  # name="password" value="…"
        at = _after_close(text, field + 5)
    sign = run_end(text, at, _BLANKS, _LONGEST_GAP)
    operator = next((operator for operator in _OPERATORS if text.startswith(operator, sign)), "")
    typed = _after_type(text, sign, operator)
    tight = False
    if typed >= 0:
        operator, value = "=", typed
    elif operator:
        behind = sign + len(operator)
        behind += 2 * text.startswith("**", behind)
        value = run_end(text, behind, _BLANKS, _LONGEST_GAP)
        tight = at == sign and value == behind
        below = run_end(text, value, "\r\n" + _BLANKS, _LONGEST_GAP)
        value = below if text.startswith('"', below) else value
    else:
        verb = next((verb for verb in _VERBS if sign > at and text.startswith(verb, sign)), "")
        value = run_end(text, sign + len(verb), _BLANKS, _LONGEST_GAP)
        operator = _VERB if verb else _SPACE if sign > at else ""
    prefix = run_end(text, value, "bBrRuUfF@", 2)
    quote, start = opening_quote(text, prefix)
    return _Assignment(
        closed=text[at - 1] in (*_QUOTES, "]") and at > end,
        operator=operator,
        tight=tight,
        quote=quote,
        start=start if quote else value,
    )


def _after_close(text: str, end: int) -> int:
    """Behind what closes a name: an index, quotes, a bracket, the stars of Markdown."""
    at = end
    if text.startswith("[", end):
        index = run_end(text, end + 1, DIGITS, 4)
        at = index + 1 if text.startswith("]", index) else end
    quote, behind = opening_quote(text, at)
    if quote:
        return behind + text.startswith("]", behind)
    return at + 2 * text.startswith("**", at)


def _after_type(text: str, at: int, operator: str) -> int:
    """Where the quote after `: str =` or, in Go, ` string =` stands, or -1."""
    kind, sign, value = text[at + (operator == ":") : at + _LONGEST_TYPE].partition("=")
    if not sign or not value.lstrip(_BLANKS).startswith(_QUOTES):
        return -1
    kind = kind.strip(_BLANKS)
    typed = operator == ":" and kind[:1] in LETTERS + "_[" and not kind.strip(WORD + ".[]| ")
    if not typed and (operator or kind not in _GO_TYPES):
        return -1
    return run_end(text, text.index("=", at) + 1, _BLANKS, _LONGEST_GAP)


def _is_assigned(text: str, low: str, start: int, name: str, word: str, assigned: _Assignment) -> bool:
    """Whether the operator assigns to a name of this kind at this place."""
    operator = assigned.operator
    if operator == _SPACE:
        flag = name.startswith("--") or (name.startswith("-") and text[start - 1 : start] in (" ", '"', "'"))
        return flag or _is_introduced(low, start, name, word, assigned)
    if operator == _VERB:
        return word in PASSWORD_WORDS
    if operator in {",", "("}:
        last = name.rpartition(".")[2].lower()
        put = low[max(0, start - _LONGEST_TAIL) : start].rstrip("\"'`\\").removesuffix("(").endswith(PUTTERS)
        told = last.startswith(SETTERS) if operator == "(" else name.isupper() or name.startswith("-") or put
        return bool(assigned.quote) and assigned.closed == (operator == ",") and told
    if operator == ">":
        element, end, _ = text[assigned.start : assigned.start + 200].partition("</")
        return bool(end) and bool(element) and not any(sign in element for sign in " \t\r\n<>")
    labels = operator == ":" and not assigned.closed and (name.lower() == "pass" or text.endswith("/", 0, start))
    return operator in _ASSIGNING and not labels  # `--- PASS: x`, `on branch feature/auth: d5a174d`


def _is_introduced(low: str, start: int, name: str, word: str, assigned: _Assignment) -> bool:
    """Whether white space alone assigns here: `login me password X`, `ENV API_KEY X`, `with password 'X'`."""
    before = low[max(0, start - 120) : start]
    if before.rpartition("\n")[2].lstrip().startswith(("env ", "setenv ", "setx ")):
        return True
    if assigned.quote:
        return before.endswith("with ") or (name == "PASSWORD" and assigned.quote == "'")  # SQL
    return word in PASSWORD_WORDS and before.split()[-2:-1] == ["login"]  # .netrc


def _listed(text: str, at: int, word: str) -> "Iterator[tuple[int, int]]":
    for _ in range(_MOST_ITEMS):
        quote, start = opening_quote(text, run_end(text, at, " \t\r\n,", _LONGEST_GAP))
        end = closing_quote(text, start, quote) if quote else -1
        if end < 0:
            return
        if is_literal(text[start:end], word, quoted=True):
            yield start, end
        at = end + len(quote)


def _second_of_pair(text: str, at: int) -> "Iterator[tuple[int, int]]":
    """The password of `("user", "password")`."""
    quote, user = opening_quote(text, at)
    end = closing_quote(text, user, quote) if quote else -1
    if end >= 0 and text.startswith(",", end + len(quote)):
        quote, start = opening_quote(text, run_end(text, end + len(quote) + 1, _BLANKS, _LONGEST_GAP))
        end = closing_quote(text, start, quote) if quote else -1
        if end >= 0 and is_literal(text[start:end], "pass", quoted=True):
            yield start, end


def _credential(text: str, at: int) -> "tuple[int, int] | None":
    """What follows the scheme of an Authorization header."""
    scheme = run_end(text, at, LETTERS + "-", 12)
    start = run_end(text, scheme, _BLANKS, 4)
    end = run_end(text, start, BASE64 + ".~:")
    told = start > scheme and text[at:scheme].lower() in SCHEMES and is_credential(text[start:end])
    return (start, end) if told else None


def _unquoted(text: str, name: str, word: str, assigned: _Assignment) -> "Iterator[tuple[int, int]]":
    operator, start = assigned.operator, assigned.start
    constant = assigned.tight and operator == "=" and name.isupper()
    shell = constant or name.startswith("-")
    run = _SHELL_RUN if shell else _PLAIN_RUN
    judged = run_end(text, start, run, _ENOUGH)
    literal = text[start:judged] if shell else text[start:judged].rstrip(".,!?:")
    rest = text[judged : judged + _LONGEST_GAP]
    header = name.lower().startswith("x-")
    code = is_code(literal) and not header and not (constant and "(" not in literal)
    code = code or rest.startswith(("(", "[", "{") if operator == ">" else ("(", "[", "{", "<"))
    code = code or (word == "pwd" and literal.startswith("/"))
    told = operator in _UNQUOTED and literal and not code and is_literal(literal, word, quoted=False)
    if told and _is_plain_secret(literal, rest, name, word, assigned):
        yield start, run_end(text, judged, run) if len(literal) == judged - start else start + len(literal)


def _is_plain_secret(literal: str, rest: str, name: str, word: str, assigned: _Assignment) -> bool:
    """Whether a value without quotes is one; `rest` is what follows on."""
    random, plain = is_random(literal, word), word in STRONG_WORDS and len(literal) >= PLAIN
    if assigned.operator == ">":
        return random or plain
    if assigned.operator == "=" and assigned.tight:
        constant = name.isupper() and len(literal) >= PLAIN and not literal.isdigit()
        return random or constant or (plain and not rest.startswith((",", ")")))
    if assigned.operator == "=":
        name_like = literal.replace("_", "a").isalnum() and literal.partition("_")[0].isalpha() and "_" in literal
        return random and len(literal) >= SHORT and not name_like
    alone = not rest.partition("\n")[0].strip() or rest.startswith((" -", " &", " |", '"', "'"))
    header = name.lower().startswith("x-") and len(literal) >= SHORT
    return (
        (random and len(literal) > PLAIN)
        or header
        or (plain and alone and word in PASSWORD_WORDS and literal.islower())
    )


FINDERS: "tuple[Finder, ...]" = tuple(map(_assigned, WORDS))
