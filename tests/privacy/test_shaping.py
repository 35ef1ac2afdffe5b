"""What of a payload reaches the store."""

import time
from typing import Any

import pytest

from service.errors import InvalidInput
from service.shaping import LARGEST_PAYLOAD_BYTES, check_limits, clean_text, shape

BASE64 = "aB3d" * 500


def stored(payload: dict[str, Any]) -> dict[str, Any]:
    return shape(payload).payload


def test_the_original_file_of_an_edit_is_dropped_and_the_edit_stays() -> None:
    payload = {
        "tool_input": {"originalFile": "asked for"},
        "tool_response": {"originalFile": "whole", "newString": "x", "inner": [{"originalFile": "whole", "n": 1}]},
    }
    assert stored(payload) == {
        "tool_input": {"originalFile": "asked for"},
        "tool_response": {"newString": "x", "inner": [{"n": 1}]},
    }


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}},
        {"type": "image", "source": {"type": "base64", "data": BASE64}},
        {"type": "image", "data": BASE64, "mimeType": "image/png"},
        {"type": "image", "file": {"base64": BASE64, "type": "image/png"}},
        {"image_url": {"url": f"data:image/png;base64,{BASE64}"}},
    ],
)
def test_an_image_is_replaced_by_a_note_and_the_words_beside_it_stay(block: dict[str, Any]) -> None:
    shaped = shape({"tool_response": [block, {"type": "text", "text": "login page shows 500"}]})
    assert BASE64.encode() not in shaped.encoded
    assert b"[image removed, 2000 characters]" in shaped.encoded
    assert b"login page shows 500" in shaped.encoded


def test_a_long_run_of_base64_is_removed_from_the_middle_of_a_text() -> None:
    assert stored({"stdout": f"before {BASE64}== after"}) == {
        "stdout": "before [binary removed, 2002 characters] after"
    }


def test_a_ruler_is_no_binary() -> None:
    assert stored({"stdout": "-" * 2000}) == {"stdout": "-" * 2000}


def test_a_long_string_keeps_head_and_tail_and_tells_its_length() -> None:
    text = stored({"stdout": "start" + " x" * 50_000 + "end"})["stdout"]
    assert text.startswith("start")
    assert text.endswith("end")
    assert "…[68008 characters cut of 100008]…" in text
    assert stored({"stdout": "y" * 32_000})["stdout"] == "y" * 32_000


def test_a_secret_at_the_cut_is_redacted_first() -> None:
    text = "w " * 7_995 + "password=Zx9!fakefakefakefake " + "v " * 20_000
    assert "Zx9!" not in stored({"stdout": text})["stdout"]


@pytest.mark.parametrize(
    "payload",
    [{"l": ["y" * 30_000] * 50}, {"l": [str(n) for n in range(200_000)]}, {str(n): n for n in range(100_000)}],
)
def test_a_payload_of_any_shape_fits(payload: dict[str, Any]) -> None:
    shaped = shape({"session_id": "s" * 36, **payload})
    assert len(shaped.encoded) <= LARGEST_PAYLOAD_BYTES
    assert shaped.payload["session_id"] == "s" * 36
    assert " cut of " in shaped.encoded.decode()


def test_a_payload_that_is_cut_twice_tells_its_first_length() -> None:
    text = stored({"l": ["y" * 1_000_000 + f"{n}" for n in range(3)] + ["short"] * 60_000})
    assert " characters cut of 1000001]…" in text["l"][0]
    assert " items cut of 60003]…" in text["l"][-1]


@pytest.mark.parametrize("hostile", ["password=", "//a:b@", "token = foo\n", "curl ", "<div> "])
def test_a_hostile_payload_of_sixteen_megabytes_is_bounded(hostile: str) -> None:
    started = time.process_time()
    shaped = shape({"tool_response": {"stdout": hostile * (16_000_000 // len(hostile))}})
    assert len(shaped.encoded) <= LARGEST_PAYLOAD_BYTES
    assert time.process_time() - started < 10


def test_secrets_and_private_parts_are_removed_in_one_go() -> None:
    payload = {"tool_input": {"command": "PGPASSWORD=Zx9!fake psql <private>x</private>", "password": "hunter2"}}
    expected = {"command": "PGPASSWORD=[secret:password] psql ", "password": "[secret:password]"}
    assert stored(payload) == {"tool_input": expected}


def test_the_name_of_a_field_is_enough_to_redact_it() -> None:
    assert stored({"tool_input": {"password": "swordfish"}}) == {"tool_input": {"password": "[secret:password]"}}


def test_a_secret_in_a_key_is_redacted() -> None:
    assert stored({"AKIAIOSFODNN7EXAMPLE": 1}) == {"[secret:aws-key]": 1}


@pytest.mark.parametrize(
    ("payload", "private"),
    [
        ({"hook_event_name": "UserPromptSubmit", "prompt": "<private>x</private>"}, True),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "<private>x</private>y"}, False),
        ({"hook_event_name": "UserPromptSubmit", "private": True}, True),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "<system-reminder>x</system-reminder>"}, False),
    ],
)
def test_a_private_turn_is_told(payload: dict[str, Any], private: bool) -> None:
    assert shape(payload).private is private


def test_lone_surrogates_become_replacement_characters_and_nul_stays() -> None:
    assert stored({"a": "x\ud800\0", "\udfff": 1}) == {"a": "x\ufffd\0", "\ufffd": 1}
    assert clean_text("x\ud800\0y") == "x\ufffdy"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2**64, -(2**63) - 1, 10**400])
def test_numbers_that_json_readers_disagree_on_are_refused(value: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_limits({"a": [value]})
    assert refused.value.status == 400


def test_a_hundred_levels_are_accepted_and_one_more_is_not() -> None:
    def nested(levels: int) -> object:
        value: object = []
        for _ in range(levels - 1):
            value = [value]
        return value

    check_limits(nested(100))
    with pytest.raises(InvalidInput):
        check_limits(nested(101))


def test_the_given_payload_is_left_alone() -> None:
    payload = {"tool_response": {"originalFile": "x", "l": ["password=Zx9!fake"]}}
    shape(payload)
    assert payload == {"tool_response": {"originalFile": "x", "l": ["password=Zx9!fake"]}}
