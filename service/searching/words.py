"""How the text of a query is understood: which words count, which belong together, which are code."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from service.fulltext import CJK, bigrams, humps

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing down during each few for from further get got had has have having he her here hers him
    his how i if in into is it its just let lets like me more most my need no nor not now of off on once only or other
    our out over own please same she should so some such than that the their them then there these they this those
    through to too under until up us very want was we were what when where which while who whom why will with would you
    your""".split()  # noqa: SIM905 - a list this long is read as a text
)
CONTRACTED = re.compile(r"(?<=\w)['’](?:s|t|ll|ve|re|d|m)\b", re.IGNORECASE)
"""The endings of don't, it's, we'll: the tokenizer would make words of them."""
NEGATED = frozenset("don isn aren wasn weren doesn didn hasn haven hadn won wouldn couldn shouldn".split())  # noqa: SIM905

PATH = re.compile(r"(?<![\w.@~-])[\w.@~-]*+(?:[/\\][\w.@-]++)++")
JOINED = re.compile(r"(?<!\w)\w++(?:(?:\.|-|#|:|::|->)\w++)++")
COMPOUND = re.compile(r"[a-z]+(?:-[a-z]+)+")
WORD = re.compile(r"\w+")
PART = re.compile(r"[^\W_]+")
LONGEST_WORD, LONGEST_PATH = 200, 1_000
"""Characters. What is longer is data, not a word."""
CONSIDERED = 96
"""Terms of one query that are looked up at all; a 100 kB query is its first so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One thing to look for. `match` is an FTS5 expression, `literal` its plain spelling for a SQLite without FTS5.

    A term that is not `required` only raises the rank: the parts of an identifier, a path beside its file name.
    """

    match: str
    literal: str
    required: bool = True


def plain(text: str) -> str:
    """The query as SQLite can hold it and the tokenizer sees it: NFC, blanks for NUL and half surrogates."""
    return unicodedata.normalize("NFC", re.sub("[\0\ud800-\udfff]", " ", text))


def terms(text: str) -> list[Term]:
    """The terms of a natural-language query, in its order, each once; stop words only when there is nothing else."""
    text = CONTRACTED.sub("", plain(text))
    found: dict[str, Term] = {}
    for term in _terms(text, STOP_WORDS | NEGATED) or _terms(text, frozenset()):
        known = found.get(term.match)
        if known is None or (term.required and not known.required):
            found[term.match] = term
        if len(found) >= CONSIDERED:
            break
    return list(found.values())


def names_only(text: str) -> bool:
    """Whether a query is nothing but paths and identifiers: these are looked up, not asked about."""
    rest = JOINED.sub(" ", PATH.sub(" ", text))
    words = WORD.findall(rest)
    is_named = [len(humps(word)) > 1 or any(map(str.isdigit, word)) for word in words]
    return rest != text if not words else all(is_named)


def phrase(words: str) -> str:
    """An FTS5 string: no character of it is syntax."""
    return '"' + words.replace('"', '""') + '"'


def ideographs(run: str) -> str:
    """A CJK run as the shadow column holds it: a phrase of bigrams, a single character as a prefix."""
    return f"search_extra : {phrase(' '.join(bigrams(run)))}" + ("*" if len(run) == 1 else "")


def _terms(text: str, ignored: frozenset[str]) -> list[Term]:
    """The most telling first: paths, joined words, then words in their order."""
    terms = [*_paths(text), *_joined(text)]
    for word in WORD.findall(PATH.sub(" ", text)):
        terms += _word(word, ignored)
        if len(terms) >= 4 * CONSIDERED:
            break
    return terms


def _paths(text: str) -> Iterator[Term]:
    """The file's name is what counts; its folder and the whole path raise the rank of the very file, identifiers in it
    that of others near it (a test's name has slashes too)."""
    for match in PATH.finditer(text):
        parts = [part for part in re.split(r"[/\\]", match[0]) if PART.search(part)]
        if parts and len(parts[-1]) <= LONGEST_WORD:
            yield _phrase(parts[-1])
        if len(parts) > 1 and len(match[0]) <= LONGEST_PATH:
            yield _phrase(" ".join(parts[-2:]), required=False)
            yield _phrase(" ".join(parts), required=False)
        for identifier in (word for part in parts for word in WORD.findall(part) if len(humps(word)) > 1):
            yield from (replace(term, required=False) for term in _word(identifier, STOP_WORDS))


def _joined(text: str) -> Iterator[Term]:
    """`a.b.c`, `std::vec`, `ENT-260`: the parts are words of their own, together they say more. Not so in `web-shop`,
    which would count three times."""
    for match in JOINED.finditer(PATH.sub(" ", text)):
        if not CJK.search(match[0]) and not COMPOUND.fullmatch(match[0]) and len(match[0]) <= LONGEST_PATH:
            yield _phrase(match[0], required=False)


def _word(word: str, ignored: frozenset[str]) -> Iterator[Term]:
    if word.casefold() in ignored or len(word) > LONGEST_WORD:
        return
    runs = CJK.findall(word)
    if runs:
        for run in runs:
            yield Term(match=ideographs(run), literal=run)
            if len(run) > len("二字"):
                yield from (Term(match=ideographs(pair), literal=pair, required=False) for pair in bigrams(run))
        for rest in PART.findall(CJK.sub(" ", word)):
            yield from _word(rest, ignored)
        return
    parts = humps(word)
    if len(parts) == 1:
        yield _phrase(word)
    if len(parts) <= 1:
        return
    whole, apart = phrase("".join(parts).lower()), phrase(" ".join(parts).lower())
    yield Term(match=f"({whole} OR {apart})", literal=word)
    for part in parts:
        if len(part) > 1 and part.casefold() not in ignored:
            yield _phrase(part, required=False)


def _phrase(words: str, *, required: bool = True) -> Term:
    literal = words.strip()
    return Term(match=phrase(" ".join(PART.findall(words)).lower()), literal=literal, required=required)
