"""What one pass over a payload's JSON rules out: never what the detector would find."""

import json

import orjson
import pytest

from hooks import privacy, secrets
from hooks.secret_kinds import WORDS
from service import marks
from tests.privacy.test_secrets import PEM

ESCAPED = '"\\' + "".join(map(chr, range(32)))


def looked(payload: object) -> marks.Marks:
    return marks.look(orjson.dumps(payload))


def test_no_mark_holds_a_character_that_json_escapes() -> None:
    told = [mark for finder in secrets.FINDERS for mark in finder[0]]
    assert not [mark for mark in [*told, *privacy.TAGS] if any(sign in mark for sign in ESCAPED)]
    assert all(word in told for word in WORDS)


def test_ordinary_work_holds_nothing() -> None:
    payload = {
        "tool_input": {"command": "git log --author=me | head", "description": "Read the keyboard map <b>now</b>"},
        "tool_response": {"stdout": "17 tests passed, author: me; private def total", "interrupted": False},
    }
    assert looked(payload) == marks.Marks(finders=(), unclean=False)


@pytest.mark.parametrize(
    "text",
    [
        "PGPASSWORD=Zx9!fake psql",
        "id AKIAIOSFODNN7EXAMPLE here",
        "use glpat-abcdefghijklmnopqrstuvwxyz x",
        "postgres://app:hunter2@db/x",
        "Authorization: Basic dXNlcjpwYXNz",
        "ext_token=Zx9!fakefake\n",
        "\next_token=Zx9!fakefake",
        "\bypass=Zx9!fakefake",
        "é_token=Zx9!fakefake",
        "tokené = Zx9!fakefake, password: hunter2",
        PEM,
    ],
)
def test_the_finders_named_find_what_all_of_them_find(text: str) -> None:
    assert secrets.holds_secret(text)
    assert secrets.holds_secret(text, looked({"tool_input": {"command": text}}).finders)


@pytest.mark.parametrize(
    "payload",
    [
        {"prompt": "say <private>x</private>"},
        {"prompt": "say <PRIVATE >x"},
        {"prompt": "say \\u003cprivate\\u003ex"},
        {"prompt": "say < / system-reminder>"},
        {"tool_response": [{"type": "image", "data": "aB3d"}]},
        {"tool_response": {"mimeType": "x/y", "blob": "aB3d"}},
        {"url": "data:text/plain;base64,aB3daB3daB3daB3d"},
        {"tool_response": {"inner": {"originalFile": "x"}}},
        {"stdout": "before " + "aB3d" * 375},
    ],
)
def test_what_is_to_be_cleaned_is_told(payload: dict[str, object]) -> None:
    assert looked(payload).unclean


def test_a_mark_that_cleaning_brings_together_is_looked_for() -> None:
    assert looked({"prompt": "pass<private>x</private>word=Zx9!fake"}) == marks.EVERYTHING


def test_a_payload_of_the_largest_size_is_looked_through_in_one_pass() -> None:
    encoded = json.dumps({"stdout": "x y " * 4_000_000}).encode()
    assert not marks.look(encoded).finders
