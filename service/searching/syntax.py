"""FTS5's own syntax in a query: recognised, checked and written anew, so that none of a person's text reaches FTS5 raw.

query   = either, { "OR", either }
either  = without, { "AND", without }
without = group, { "NOT", group }
group   = item, { item }                   all of them; binds tightest, as in FTS5
item    = [ column ":" ], ( '"phrase"' | word | word* | "phrase"* | "(", query, ")" )
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from service.fulltext import CJK
from service.searching.words import PART, ideographs, phrase, plain, terms

TOKEN = re.compile(r'\s*(?:(?P<phrase>"(?:[^"]|"")*")|(?P<word>[0-9A-Za-z_\x80-\U0010ffff]+)|(?P<sign>[():*]))')
OPERATORS = ("OR", "AND", "NOT")
COLUMNS = ("title", "narrative", "facts", "concepts", "files")
MOST_TOKENS, DEEPEST = 200, 40
NOTHING = '""'
"""An FTS5 expression that matches no row."""


class _NotSyntaxError(Exception):
    """The text does not parse."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    glued: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """`match` is what was asked, as an FTS5 expression. `relaxed` is what to try when that finds nothing: the phrases
    must stand, the loose words beside them only raise the rank; None when there is nothing to relax."""

    match: str
    relaxed: str | None

    def outside_project(self) -> "Syntax":
        return Syntax(match=outside_project(self.match), relaxed=self.relaxed and outside_project(self.relaxed))


def outside_project(match: str) -> str:
    """The expression for all columns of text: the project's name is in the index to filter by it."""
    return f"(- project : ({match}))"


def parse(text: str, columns: Mapping[str, tuple[str, ...]]) -> Syntax | None:
    """The query in FTS5's syntax, with its columns as this index has them; None when it is ordinary text.

    Syntax needs a quoted phrase, a word with a trailing `*`, an upper-case operator, or one of the five columns with a
    term, and all of it must parse. `columns` maps names of COLUMNS; a term in an absent one matches nothing.
    """
    tokens = _tokens(plain(text))
    if tokens is None or not _has_syntax(tokens):
        return None
    parser = _Parser(tokens, columns)
    try:
        match = parser.query(0)
    except _NotSyntaxError:
        return None
    return None if parser.rest() else Syntax(match=match, relaxed=parser.relaxed())


def _tokens(text: str) -> list[_Token] | None:
    """None as soon as a character is neither a word's nor syntax, and for more tokens than a person types."""
    tokens: list[_Token] = []
    end, text = 0, text.rstrip()
    while end < len(text):
        match = TOKEN.match(text, end)
        if match is None or len(tokens) == MOST_TOKENS:
            return None
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match[kind], glued=match.start(kind) == end and end > 0))
        end = match.end()
    return tokens


def _has_syntax(tokens: list[_Token]) -> bool:
    return any(
        token.kind == "phrase"
        or token.text in OPERATORS
        or (following.text == "*" and following.glued and token.kind == "word")
        or (following.text == ":" and token.text in COLUMNS)
        for token, following in pairwise([*tokens, _Token("end", "", glued=False)])
    )


@dataclass(slots=True)
class _Parser:
    """Recursive descent; raises `_NotSyntaxError` where FTS5 would refuse."""

    tokens: list[_Token]
    columns: Mapping[str, tuple[str, ...]]
    place: int = 0
    phrases: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    explicit: bool = False

    def rest(self) -> bool:
        return self.place < len(self.tokens)

    def relaxed(self) -> str | None:
        if self.explicit or not self.phrases or not self.words:
            return None
        kept = " AND ".join(self.phrases)
        return f"({kept}) AND ({' OR '.join([*self.words, *self.phrases])})"

    def query(self, depth: int) -> str:
        return self._chain("OR", depth, lambda: self._chain("AND", depth, lambda: self._without(depth)))

    def _without(self, depth: int) -> str:
        return self._chain("NOT", depth, lambda: self._group(depth))

    def _chain(self, operator: str, depth: int, part: Callable[[], str]) -> str:
        if depth > DEEPEST:
            raise _NotSyntaxError
        found = part()
        while self._take(operator, "word"):
            self.explicit = True
            found = f"({found} {operator} {part()})"
        return found

    def _group(self, depth: int) -> str:
        items = [self._item(depth)]
        while (token := self._peek()) is not None and token.text not in (*OPERATORS, ")"):
            items.append(self._item(depth))
        return items[0] if len(items) == 1 else f"({' AND '.join(items)})"

    def _item(self, depth: int) -> str:
        token = self._next()
        if token.text == "(" and token.kind == "sign":
            self.explicit = True
            inner = self.query(depth + 1)
            if not self._take(")", "sign"):
                raise _NotSyntaxError
            return inner
        if token.kind == "sign" or (token.kind == "word" and token.text in OPERATORS):
            raise _NotSyntaxError
        if token.kind == "word" and self._take(":", "sign"):
            return self._in_column(token.text, depth)
        return self._string(token)

    def _in_column(self, name: str, depth: int) -> str:
        self.explicit = True
        if name not in COLUMNS:
            raise _NotSyntaxError
        inner = self._item(depth)
        if "search_extra" in inner:  # ideographs are found in no other column
            return inner
        columns = self.columns.get(name)
        return f"({{{' '.join(columns)}}} : {inner})" if columns else NOTHING

    def _string(self, token: _Token) -> str:
        prefix = self._take("*", "sign", glued=True)
        text = token.text[1:-1].replace('""', '"') if token.kind == "phrase" else token.text
        if not PART.search(text):
            raise _NotSyntaxError
        match = _prefixed(text) if prefix else _match(text, loose=token.kind == "word")
        (self.words if token.kind == "word" and not prefix else self.phrases).append(match)
        return match

    def _peek(self) -> _Token | None:
        return self.tokens[self.place] if self.rest() else None

    def _next(self) -> _Token:
        token = self._peek()
        if token is None:
            raise _NotSyntaxError
        self.place += 1
        return token

    def _take(self, text: str, kind: str, *, glued: bool = False) -> bool:
        token = self._peek()
        if token is None or (token.text, token.kind) != (text, kind) or (glued and not token.glued):
            return False
        self.place += 1
        return True


def _prefixed(text: str) -> str:
    """Words that start so. The stemmer makes everi of every, and everydai of everyday: a silent e guards the y."""
    start = phrase(" ".join(PART.findall(text)))
    return f'({start}* OR {start[:-1]}e"*)' if text.endswith(("y", "Y")) else f"{start}*"


def _match(text: str, *, loose: bool) -> str:
    """One string of the query; a loose word is also found in the shapes that identifiers have."""
    runs = CJK.findall(text)
    if runs:
        rest = [phrase(word) for word in PART.findall(CJK.sub(" ", text))]
        return f"({' AND '.join([*map(ideographs, runs), *rest])})"
    if loose:
        return " AND ".join(term.match for term in terms(text) if term.required)
    return phrase(" ".join(PART.findall(text)))
