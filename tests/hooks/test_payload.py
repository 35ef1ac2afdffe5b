"""Looking into payloads without a parser, and cutting those that are too large."""

import json

import pytest

from hooks import payload


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"session_id":"s","cwd":"/a b","x":1}', b"/a b"),
        (b' { "cwd" : "/a" }', b"/a"),
        (b'{"effort":{"level":"}"},"list":[1,"["],"cwd":"/a"}', b"/a"),
        (b'{"prompt":"cwd","cwd":"/a"}', None),  # the first place is a value: a parser must tell
        (b'{"tool_input":{"cwd":"/nested"},"cwd":"/a"}', None),
        (b'{"a":"}","b":{"cwd":"/nested"}}', None),
        (b'{"a":"\\"","cwd":"/a"}', None),
        (b'{"cwd":"C:\\\\a"}', None),
        (b'{"cwd":17,"b":"/a"}', None),
        (b'{"cwd":"/unfinished', None),
        (b"", None),
        (b"x" * 5000 + b'"cwd":"/a"', None),
    ],
)
def test_a_field_is_read_without_a_parser_or_not_at_all(raw: bytes, found: bytes | None) -> None:
    assert payload.peek(raw, b"cwd") == found


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"tool_input":{"cwd":"/nested"},"cwd":"/a"}', "/a"),
        ('{"cwd":"/é"}'.encode(), "/é"),
        (b'{"cwd":"/\\u00e9"}', "/é"),
        (b'{"cwd":"C:\\\\a"}', "C:\\a"),
        (b'{"cwd":null}', None),
        (b'{"cwd":["/a"]}', None),
        (b'{"tool_input":{"cwd":"/nested"}}', None),
        (b'[{"cwd":"/a"}]', None),
        (b'{"a":"\\"","cwd":"/cut', None),
        (b"[" * 100_000 + b'"cwd"', None),
    ],
)
def test_the_folder_is_the_top_levels(raw: bytes, found: str | None) -> None:
    assert payload.text_at(raw, "cwd") == found


def test_a_large_payload_keeps_its_ids_and_the_ends_of_its_strings() -> None:
    text = "begin " + "é" * 12_000_000 + " end"
    large = {"session_id": "s", "tool_response": {"a": [text]}, "tool_use_id": "t"}
    cut, fits = payload.fit(json.dumps(large, ensure_ascii=False).encode())
    assert fits
    assert len(cut) <= payload.BODY_MAX
    found = json.loads(cut)
    assert (found["session_id"], found["tool_use_id"]) == ("s", "t")
    shortened = found["tool_response"]["a"][0]
    assert shortened.startswith("begin é")
    assert shortened.endswith("é end")
    assert f"of {len(text)}]" in shortened


def test_a_large_payload_of_many_small_parts_is_cut_as_well() -> None:
    large = {"session_id": "s", "tool_response": {"lines": ["a line\n"] * 2_000_000}, "tool_use_id": "t"}
    cut, fits = payload.fit(json.dumps(large).encode())
    assert fits
    assert len(cut) <= payload.BODY_MAX
    assert json.loads(cut)["tool_use_id"] == "t"


@pytest.mark.parametrize("raw", [b"x" * 17_000_000, b"[" * 17_000_000, b'{"%b":1}' % (b"k" * 17_000_000)])
def test_what_cannot_be_cut_does_not_fit(raw: bytes) -> None:
    cut, fits = payload.fit(raw)
    assert not fits
    assert len(cut) <= payload.BODY_MAX


def test_a_payload_of_ordinary_size_is_not_touched() -> None:
    assert payload.fit(b"not json") == (b"not json", True)
