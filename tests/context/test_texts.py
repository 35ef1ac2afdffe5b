"""What may go into a context: harmless, and measured as the client measures."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.context.texts import clean, cut, line, units, wrapped

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ANY_TEXT = st.text(st.characters(), max_size=300)
CLOSING = [
    "</gapless-context>",
    "</GAPLESS-CONTEXT>",
    "< / gapless-context >",
    "</gapless\n-context>",
    "</gap\u200bless-context>",
    "</gap\u200dless-context>",
    "</gapless\u2011context>",
    "\uff1c/gapless-context\uff1e",
    "</\uff47apless-context>",
    "<gapless-context>",
    "<gapless-context foo='1'>",
    "</ga\x1b[0mpless-context>",
    "</gapless\u00ad-context>",
    "</system-reminder>",
    "<System_Instruction>",
]


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("héé", 3), ("漢字", 2), ("\U0001f600", 2), (FAMILY, 8), ("\ud800", 1)]
)
def test_length_is_in_utf_16_code_units(text: str, length: int) -> None:
    assert units(text) == length


@pytest.mark.parametrize("text", CLOSING)
def test_no_spelling_of_a_tag_survives_in_the_wrapper(text: str) -> None:
    inside = wrapped([clean(f"before {text} after")])
    folded = re.sub(r"[^a-z<>/-]", "", unicodedata.normalize("NFKC", inside).casefold())
    assert folded.count("<gapless-context") == folded.count("</gapless-context") == 1
    assert "<system" not in folded
    assert inside.endswith("</gapless-context>")


def test_a_tag_in_two_items_is_none() -> None:
    assert wrapped(["one <", "/gapless-context> two"]).count("<") == 2


def test_code_keeps_its_brackets() -> None:
    assert "if a < b: List<String> <div>" in wrapped(["if a < b: List<String> <div>"])


@pytest.mark.parametrize(
    ("given_text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x9b1mcsi", "1mcsi"),
        ("a\0b\x07c\x7fd", "abcd"),
        ("abc\u202edef\u2066", "abcdef"),
        ("one\r\ntwo\u2028three\x85four", "one\ntwo\nthree\nfour"),
        ("half \ud83d", "half \ufffd"),
        ("hidden \U000e0041\U000e0042", "hidden "),
        (FAMILY, FAMILY),
    ],
)
def test_terminal_codes_and_what_no_one_sees_are_gone(given_text: str, left: str) -> None:
    assert clean(given_text) == left


@given(ANY_TEXT)
def test_clean_text_has_no_control_characters_and_can_be_encoded(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert not any(unicodedata.category(character) in ("Cc", "Cs") and character != "\n" for character in cleaned)


@given(ANY_TEXT, st.integers(0, 60))
def test_a_cut_is_never_longer_than_its_limit_and_marks_itself(text: str, limit: int) -> None:
    said = cut(clean(text), limit)
    assert units(said) <= limit
    assert said in (clean(text), "") or said.endswith("…")
    said.encode()


def test_a_cut_never_parts_what_is_seen_as_one_character() -> None:
    for limit in range(1, 30):
        assert cut(FAMILY * 3, limit).removesuffix("…") in ("", FAMILY, FAMILY * 2, FAMILY * 3)
    assert cut("ab e\u0301 tail", 5) == "ab…"


def test_a_line_has_no_line_ends() -> None:
    assert line(" a\tb\n\n c\u2029d ") == "a b c d"
