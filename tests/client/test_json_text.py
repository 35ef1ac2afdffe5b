"""Changing a settings file changes what was meant and not one byte more."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidInput
from service.installing import json_text

LAYOUTS = (
    '{"a": 1}',
    '{"a":1,"list":["x"]}',
    "{}",
    "",
    "  \n",
    "{\n}",
    '{\n\t"a": {\n\t\t"list": [ ]\n\t}\n}',
    '{\r\n    "a": 1.50,\r\n    "list": [\r\n        1e3\r\n    ]\r\n}\r\n',
    '{"a": "quote \\" and \\u00e9 é 🦀", "deep": {"b": [{"c": [1, {"d": null}]}]}}',
    '\ufeff{"a": true}',
    '{\n  // mine\n  "a": 1, /* two\n  lines */\n  "b": "// no comment" // theirs, too\n  // the end\n}\n// after\n',
    "// before\n{ /* nothing, yet */ }",
    "{\n  // nothing, yet\n}\n",
    '{"a": {}, "b" /* " */ : [] /* , */ }',
)
VALUE = {"command": 'python "x" é', "args": ["-I", "a b"], "timeout": 10}
documents = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=12,
    ),
    max_size=4,
)
layouts: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}, {"ensure_ascii": False, "indent": 4}]
)


@pytest.mark.parametrize("text", LAYOUTS)
@pytest.mark.parametrize("path", [("new",), ("new", "deeper", "still")])
def test_what_is_put_in_can_be_taken_out_again_to_the_byte(text: str, path: tuple[str, ...]) -> None:
    changed = json_text.put(text, path, VALUE)
    found = json_text.parse(changed)
    for name in path:
        found = found[name]
    assert found == VALUE
    again = json_text.remove(changed, path)
    assert again == text


@given(documents, layouts)
def test_any_document_keeps_everything_else(document: dict[str, Any], layout: dict[str, Any]) -> None:
    text = json.dumps(document, **layout)
    changed = json_text.append(text, ("hooks of ours", "Stop"), VALUE)
    assert json.loads(changed) == {**document, "hooks of ours": {"Stop": [VALUE]}}
    again = json_text.remove(changed, ("hooks of ours", "Stop", 0))
    assert json.loads(again) == document
    assert again == text


@given(documents, layouts)
def test_a_member_is_replaced_or_removed_where_it_stands(document: dict[str, Any], layout: dict[str, Any]) -> None:
    text = json.dumps({**document, "ours": [1], "last": {}}, **layout)
    assert list(json.loads(json_text.put(text, ("ours",), VALUE)).items()) == [
        (name, VALUE if name == "ours" else value) for name, value in json.loads(text).items()
    ]
    removed = json.loads(text)
    del removed["ours"]
    assert json.loads(json_text.remove(text, ("ours",))) == removed


def test_items_go_to_the_end_and_come_out_from_anywhere() -> None:
    text = '{\n  "list": [\n    {"a": 1},\n    {"b": 2}\n  ]\n}\n'
    longer = json_text.append(text, ("list",), {"c": 3})
    assert json.loads(longer)["list"] == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert longer.startswith(text[: text.index('{"b": 2}') + 8])
    assert json_text.remove(longer, ("list", 2)) == text
    for position in range(3):
        left = [item for number, item in enumerate(json.loads(longer)["list"]) if number != position]
        assert json.loads(json_text.remove(longer, ("list", position)))["list"] == left


def test_keeping_a_value_leaves_its_layout() -> None:
    text = '{"a":{"b":[1,2]}}'
    assert json_text.keep(text, ("a",), {"b": [1, 2]}) == text
    assert json.loads(json_text.keep(text, ("a",), {"b": []})) == {"a": {"b": []}}


@pytest.mark.parametrize(
    "text", ['{"a": 1', "// comment", "/* open {}", '{"a": 1,}', "[]", '"a"', "{} {}", "nul", '{"a" 1}', "[" * 9999]
)
def test_what_is_no_settings_file_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidInput, match="correct it first, nothing was changed"):
        json_text.put(text, ("a",), 1)


def test_a_path_through_something_else_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="`hooks` in it is not what the client documents"):
        json_text.append('{"hooks": []}', ("hooks", "Stop"), {})


@pytest.mark.parametrize(
    "container", ["{}", "{ }", "{\n  }", "{\r\n}", "{ \n \n}", "{ // nothing \n}", "{ /* nothing */ }"]
)
def test_a_container_that_was_there_stays_and_keeps_its_layout(container: str) -> None:
    text = f'{{\n  "hooks": {container}\n}}\n'
    changed = json_text.append(json_text.append(text, ("hooks", "Stop"), VALUE), ("hooks", "Start"), VALUE)
    assert json_text.parse(changed) == {"hooks": {"Stop": [VALUE], "Start": [VALUE]}}
    assert json_text.remove(json_text.remove(changed, ("hooks", "Stop")), ("hooks", "Start")) == text


def test_what_is_put_in_stands_after_the_comments_on_what_is_there() -> None:
    assert json_text.put('{\n  "a": 1 // mine\n}', ("b",), 2) == '{\n  "a": 1, // mine\n  "b": 2\n}'
    assert json_text.put('{"a": 1 /* mine */}', ("b",), 2) == '{"a": 1, /* mine */ "b": 2}'


@pytest.mark.parametrize("name", ["a", "b", "c"])
@pytest.mark.parametrize(
    "text",
    [
        '{\n  // of a, one\n  "a": 1, // and\n  // of b\n  "b": 2 /* , */, // of c\n  "c": 3 // end\n}',
        '{ // one\n  "a": 1, /* " */ "b": 2, // two\n  "c": 3}',
        '{"a": 1 // one\n , "b": 2 // two\n , "c": 3}',
    ],
)
def test_comments_stay_whatever_is_taken_out(text: str, name: str) -> None:
    left = json_text.remove(text, (name,))
    assert json_text.parse(left) == {other: value for other, value in json_text.parse(text).items() if other != name}
    assert left.count("//") == text.count("//")


def test_a_file_that_holds_nothing_but_comments_beside_ours_keeps_them() -> None:
    made = json_text.put("", ("hooks", "Stop"), [VALUE])
    assert json_text.remove(f"// mine\n{made}", ("hooks", "Stop")) == "// mine\n{}\n"
    noted = made.replace('"hooks": {', '"hooks": { // mine')
    assert json_text.remove(noted, ("hooks", "Stop")) == '{\n  "hooks": { // mine\n  }\n}\n'
