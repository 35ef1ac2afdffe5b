"""What a payload can hold at all, told by one pass over its JSON: most hold nothing that must be removed."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ahocorasick_rs import BytesAhoCorasick, Implementation

from hooks import privacy, secrets
from hooks.secret_kinds import WORDS
from hooks.secret_names import can_be_assigned

if TYPE_CHECKING:
    from hooks.secret_places import Finder

LONG_RUN = 1000
"""Base64 characters in a row that are no text."""

_WINDOW = re.compile(rb"[A-Za-z0-9+/_-]{500}")  # a long run covers at least one window that starts at a multiple of 500
_BULKY = ('"originalFile"', '"image', '"base64"', '"mimeType"', ";base64,")  # files and binaries, where JSON names them
_IS_BULKY, _IS_TAG = -2, -1  # beside the places in `secrets.FINDERS`
_MEANINGS = (
    *((mark, place) for place, (marks, _) in enumerate(secrets.FINDERS) for mark in marks),
    *((mark, _IS_BULKY) for mark in _BULKY),
    *((tag, _IS_TAG) for tag in privacy.TAGS),
)
_WORDS = tuple(mark if mark in WORDS else None for mark, _ in _MEANINGS)
_SPELLINGS = tuple(None if mark == mark.lower() else mark.encode() for mark, _ in _MEANINGS)  # those with capitals
_MARKS = BytesAhoCorasick([mark.lower().encode() for mark, _ in _MEANINGS], implementation=Implementation.DFA)
_LOOK_BACK = 17  # characters before a word that tell whether it is a name's


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """`finders`: those that may find a secret. `unclean`: private parts, binaries or whole files may be there."""

    finders: "tuple[Finder, ...]"
    unclean: bool


EVERYTHING = Marks(finders=secrets.FINDERS, unclean=True)


def look(encoded: bytes) -> Marks:
    """The marks of a payload's JSON as orjson writes it: no mark holds a character that it escapes, so what one of the
    strings holds stands in the bytes."""
    found = _found(encoded)
    if (
        _IS_BULKY in found
        or (_IS_TAG in found and privacy.may_hold_private(encoded))
        or any(_WINDOW.match(encoded, at) for at in range(0, len(encoded) - LONG_RUN + 1, LONG_RUN // 2))
    ):
        return EVERYTHING  # what cleaning brings together may be a secret
    return Marks(finders=tuple(secrets.FINDERS[place] for place in sorted(found) if place >= 0), unclean=False)


def _found(encoded: bytes) -> set[int]:
    """What is meant by the marks that are there."""
    found: set[int] = set()
    lowered = encoded.lower()
    low = ""
    for number, start, end in _MARKS.find_matches_as_indexes(lowered, overlapping=True):
        place, spelling, word = _MEANINGS[number][1], _SPELLINGS[number], _WORDS[number]
        if place in found or (spelling is not None and spelling != encoded[start:end]):
            continue
        if word is not None:
            low = low or lowered.decode("latin-1")
            escaped = "\\" in low[max(0, start - _LOOK_BACK) : start]  # its letters would count as the name's
            if not escaped and not can_be_assigned(low, start, word):
                continue
        found.add(place)
    return found
