"""Stored text on its way into a model's context: harmless, and measured in UTF-16 code units as the client does."""

import re
import unicodedata
from collections.abc import Iterable

from hooks.privacy import PRIVATE, TAGS

NAME = "gapless-context"
OPENING, CLOSING = f"<{NAME}>", f"</{NAME}>"
CUT = "…"
LONGEST = 10_000
"""Units of any context (the client shows no more, measured)."""

ESCAPE = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")
"""Terminal codes as a whole: without their ESC they would be litter."""
LINE_ENDS = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
UNSEEN = re.compile(
    "[\0-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
"""Control characters and what no one sees: it reorders text, or hides it. Joiners stay, emoji are made with them."""
SURROGATE = re.compile("[\ud800-\udfff]")
TAG = re.compile("[<\ufe64\uff1c]([^<>\ufe64\ufe65\uff1c\uff1e]{0,80})([>\ufe65\uff1e]?)")
TAG_NAMES = tuple(re.sub(r"\W|_", "", name) for name in TAGS if name != PRIVATE)
"""Ours among them, and those by which a client marks a part of the context."""


def units(text: str) -> int:
    """UTF-16 code units: two for each character beyond the basic plane."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def clean(text: str) -> str:
    """Without terminal codes, control and invisible characters; lines end with a line feed, tabs are blanks."""
    if text.isascii() and text.isprintable():
        return text
    text = LINE_ENDS.sub("\n", ESCAPE.sub("", text).replace("\t", " "))
    return SURROGATE.sub("\ufffd", UNSEEN.sub("", text))


def line(text: str, limit: int = LONGEST) -> str:
    """Clean and on one line, white space as single blanks; cut with a mark when longer than `limit` units."""
    return cut(" ".join(clean(text[: 2 * LONGEST]).split()), limit)


def cut(text: str, limit: int, mark: str = CUT) -> str:
    """At most `limit` units, the mark included; '' when not even that fits. A character is never cut in two."""
    if units(text) <= limit:
        return text
    room = limit - units(mark)
    if room < 0:
        return ""
    kept = text.encode("utf-16-le")[: 2 * room].decode("utf-16-le", "ignore")
    while kept and _goes_on(text, len(kept)):
        kept = kept[:-1]
    return kept.rstrip() + mark


def wrapped(lines: Iterable[str]) -> str:
    """The lines in the one element that context stands in; nothing in them can close it."""
    return "\n".join((OPENING, disarmed("\n".join(lines)), CLOSING))


def disarmed(text: str) -> str:
    """With other signs for the brackets of every tag that means something here, in any spelling. As long as before."""
    return TAG.sub(lambda tag: f"‹{tag[1]}{tag[2] and '›'}" if _means_something(tag[1]) else tag[0], text)


def _means_something(inside: str) -> bool:
    plain = unicodedata.normalize("NFKD", inside).casefold()
    return "".join(character for character in plain if character.isalnum()).startswith(TAG_NAMES)


def _goes_on(text: str, at: int) -> bool:
    """Whether what is seen as one character would be parted at this place."""
    return text[at - 1] == "\u200d" or text[at] == "\u200d" or unicodedata.category(text[at]) in ("Mn", "Me", "Mc")
