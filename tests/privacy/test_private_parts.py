"""What `<private>` and the host's own tags hide."""

import json

import pytest

from hooks.privacy import TAGS, may_hold_private, strip_payload, strip_text
from tests.privacy.growth import is_linear


@pytest.mark.parametrize("tag", TAGS)
def test_every_known_tag_is_removed_with_its_content(tag: str) -> None:
    assert strip_text(f"a<{tag}>hidden</{tag}>b") == ("ab", tag == "private")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a<PRIVATE>x</Private>b", "ab"),
        ("a<private reason='x > y' n=1>x</private >b", "ab"),
        ("a< private >x< / private >b", "ab"),
        ("a<private\nlevel=2>x\ny</private>b", "ab"),
        ("a<private/>x</private>b", "ab"),
        (r"a\u003cprivate\u003ex\u003c/private\u003eb", "ab"),
        (r"a<private>x<\/private>b", "ab"),
    ],
)
def test_a_tag_may_be_written_in_any_way(text: str, rest: str) -> None:
    assert strip_text(text) == (rest, True)
    assert may_hold_private(json.dumps(text).encode())


def test_a_nested_tag_is_matched_by_depth() -> None:
    assert strip_text("a<private>1<private>2</private>3</private>b") == ("ab", True)


def test_an_unclosed_private_tag_hides_everything_to_the_end_of_its_string() -> None:
    payload = {"one": "keep <private>pw-1", "two": "stays"}
    assert strip_payload(payload)[0] == {"one": "keep ", "two": "stays"}


def test_an_end_tag_without_a_start_is_removed_alone() -> None:
    assert strip_text("a</private>b") == ("ab", False)


def test_a_reminder_that_mentions_the_tag_does_not_hide_the_words_after_it() -> None:
    assert strip_text("<system-reminder>use <private> tags</system-reminder>fix it") == ("fix it", False)


def test_private_parts_that_cross_a_reminder_stay_hidden() -> None:
    text = "a<system-reminder>b<private>pw</system-reminder>more pw</private>c"
    assert strip_text(text) == ("ac", True)


def test_a_tag_inside_a_private_part_does_not_outlive_it() -> None:
    assert strip_text("<private>a<system-reminder>b</private>keep") == ("keep", True)


def test_halves_that_come_together_are_a_tag_again() -> None:
    assert "pw" not in strip_text("<pri<private>x</private>vate>pw</private>")[0]


@pytest.mark.parametrize(
    "text", ["<privates>x</privates>", "List<String> private x", "a < b", "<private", "<div>x</div>"]
)
def test_what_only_looks_like_a_tag_stays(text: str) -> None:
    assert strip_text(text) == (text, False)


def test_keys_and_deep_values_are_cleaned_without_recursion() -> None:
    payload: object = {"<private>k</private>key": "<private>v</private>"}
    for _ in range(100_000):
        payload = [payload]
    cleaned, private = strip_payload(payload)
    while isinstance(cleaned, list):
        cleaned = cleaned[0]
    assert cleaned == {"key": ""}
    assert not private


@pytest.mark.parametrize(
    ("prompt", "private"),
    [
        ("<private>all of it</private> \n", True),
        ("<private>all of it", True),
        ("<private>a</private> and a question", False),
        ("<system-reminder>only the host</system-reminder>", False),
        ("", False),
    ],
)
def test_a_turn_is_private_only_if_private_parts_were_all_of_its_prompt(prompt: str, private: bool) -> None:
    assert strip_payload({"hook_event_name": "UserPromptSubmit", "prompt": prompt})[1] is private
    assert strip_payload({"hook_event_name": "Stop", "prompt": prompt})[1] is False


@pytest.mark.parametrize("payload", [None, [], 42, "x", {}, {"hook_event_name": "UserPromptSubmit"}, {"prompt": 1}])
def test_any_json_is_a_payload(payload: object) -> None:
    assert strip_payload(payload) == (payload, False)


def test_the_test_on_bytes_sees_through_escapes_and_lets_code_pass() -> None:
    assert may_hold_private(rb'{"a":"\u003cprivate\u003e"}')
    assert may_hold_private(rb'{"a":"\u003Cpriv\u0061te>"}')
    assert may_hold_private(rb'{"a":"<\n \/ system_INSTRUCTION>"}')
    ordinary = b'{"a":"private Map<String, List<T>> m; <div class=\\"private\\">\\u001b[0m <T> privately</div>"}'
    assert not may_hold_private(ordinary)


@pytest.mark.parametrize(
    "hostile", ["<private>", "</private", "<private ", "<", "<pri", "<system-reminder><private></system-reminder>"]
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    assert is_linear(lambda size: strip_text(hostile * (size // len(hostile)) + ">"), least=50_000)
