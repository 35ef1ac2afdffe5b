"""Changing values inside a JSON text and leaving every other byte of it: order, layout, numbers as they are written,
comments.

What was made on the way to a value goes with it again; what was there stays. A container that was there and empty is
known by a blank at the end of the line before its first entry, which means nothing to anybody else.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from service.errors import InvalidInput

SPACE = re.compile(r"[ \t\n\r\ufeff]*")
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|//[^\r\n]*|/\*(?s:.*?)\*/')
WAS_EMPTY = re.compile(r"(\s*) \r?\n[ \t]*")
"""What stands before the first entry of a container that was there and held no more than the group."""
DEFAULT_INDENT = "  "
Path = tuple[str | int, ...]
"""Names of members and positions of items, from the top down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value and where it stands. `children`: of an object by name (the last of equal names), of an array by number;
    each with the place where its own entry begins, the name included."""

    value: Any
    start: int
    end: int
    children: dict[str | int, tuple[int, "Node"]]


def parse(text: str) -> Any:
    """The value of a settings file; {} for an empty one. Raises `InvalidInput` in words."""
    return _tree(text).value


def refuse_comments(text: str) -> None:
    """Raises `InvalidInput` when there are any: for clients that don't read them."""
    if _blanked(text) != text:
        raise InvalidInput("it is not valid JSON (it has comments); correct it first, nothing was changed")


def put(text: str, path: Path, value: Any) -> str:
    """The text with this value at the path: in place of what is there, else as the last member of its object. Objects
    on the way are made. Raises `InvalidInput` when something on the way is no object."""
    tree = _tree(text)
    node, depth = _descend(tree, path)
    if depth == len(path):
        return text[: node.start] + _written(text, value, _indent_at(text, node)) + text[node.end :]
    for name in reversed(path[depth + 1 :]):
        value = {name: value}
    return _add(text, node, path[depth], value)


def keep(text: str, path: Path, value: Any) -> str:
    """As `put`, but the text itself when the value is there already, however it is laid out."""
    node, depth = _descend(_tree(text), path)
    return text if depth == len(path) and node.value == value else put(text, path, value)


def append(text: str, path: Path, item: Any) -> str:
    """The text with one more item at the end of the array at the path, which is made if it is not there."""
    node, depth = _descend(_tree(text), (*path, -1))
    if depth < len(path):
        return put(text, path, [item])
    return _add(text, node, len(node.children), item)


def remove(text: str, path: Path) -> str:
    """The text without the member or item at the path, and without the containers that were made for it, the whole
    object too."""
    node = tree = _tree(text)
    while path:
        node, depth = _descend(tree, path[:-1])
        if depth < len(path) - 1 or path[-1] not in node.children:
            return text
        if len(node.children) > 1:
            return _cut(text, node, path[-1])
        if (left := _emptied(text, node)) is not None:
            return left
        path = path[:-1]
    before, after = text[: node.start], text[node.end :]
    return f"{before}{{}}{after}" if (before + after).strip() else before


def _tree(text: str) -> Node:
    if not text.strip():
        return Node(value={}, start=0, end=len(text), children={})
    try:
        blanked = _blanked(text)
        node = _read(blanked, _skip(blanked, 0))
    except (json.JSONDecodeError, RecursionError, StopIteration) as error:
        raise InvalidInput(f"it is not valid JSON ({error}); correct it first, nothing was changed") from None
    if blanked[node.end :].strip():
        raise InvalidInput("it is not valid JSON (more follows after its end); correct it first, nothing was changed")
    if not isinstance(node.value, dict):
        raise InvalidInput("it holds no JSON object at the top; correct it first, nothing was changed")
    return node


def _blanked(text: str) -> str:
    """With white space in the place of comments."""
    return STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"\S", " ", found[0]), text)


def _read(text: str, start: int) -> Node:
    """Containers are walked, so that their parts have places; the standard decoder reads what is in them."""
    if text[start : start + 1] not in ("{", "["):
        value, end = json.JSONDecoder().raw_decode(text, start)
        return Node(value=value, start=start, end=end, children={})
    is_object = text[start] == "{"
    children: dict[str | int, tuple[int, Node]] = {}
    at = _skip(text, start + 1)
    closing = "}" if is_object else "]"
    while text[at : at + 1] != closing:
        if children:
            at = _skip(text, _expect(text, at, ","))
        entry, name = at, len(children)
        if is_object:
            _expect(text, at, '"')
            name, at = json.decoder.scanstring(text, at + 1)  # type: ignore[attr-defined]
            at = _skip(text, _expect(text, _skip(text, at), ":"))
        node = _read(text, at)
        children[name] = (entry, node)
        at = _skip(text, node.end)
    values = {name: node.value for name, (_, node) in children.items()}
    return Node(value=values if is_object else list(values.values()), start=start, end=at + 1, children=children)


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise json.JSONDecodeError(f"Expecting {sign!r}", text, at)
    return at + 1


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def _descend(tree: Node, path: Path) -> tuple[Node, int]:
    """The deepest node on the path that is there, and how many steps lead to it."""
    node = tree
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict if isinstance(name, str) else list):
            where = ".".join(map(str, path[:depth]))
            raise InvalidInput(
                f"`{where}` in it is not what the client documents; correct it first, nothing was changed"
            )
        if name not in node.children:
            return node, depth
        node = node.children[name][1]
    return node, len(path)


def _add(text: str, node: Node, name: str | int, value: Any) -> str:
    label = f"{json.dumps(name, ensure_ascii=False)}: " if isinstance(name, str) else ""
    if not text[node.start : node.end].strip():  # an empty file
        return f"{text}{{\n{DEFAULT_INDENT}{label}{_written('', value, DEFAULT_INDENT)}\n}}\n"
    inside = text[node.start + 1 : node.end - 1].rstrip()
    end = node.start + 1 + len(inside)
    newline = "\r\n" if "\r\n" in text else "\n"
    inner = _indent_inside(text, node)
    entry = inner + label + _written(text, value, inner)
    if not node.children and not inside:
        return f"{text[: node.end - 1]} {newline}{entry}{newline}{_indent_at(text, node)}{text[node.end - 1 :]}"
    last, comma = max(((child.end, ",") for _, child in node.children.values()), default=(end, ""))
    if "\n" not in text[node.start : node.end]:
        entry, newline = label + json.dumps(value, ensure_ascii=False), " "
    return f"{text[:last]}{comma}{text[last:end]}{newline}{entry}{text[end:]}"


def _cut(text: str, node: Node, name: str | int) -> str:
    """One entry of several, with the comma and the white space that belong to it."""
    entries = sorted((entry, child.end) for entry, child in node.children.values())
    entry, child = node.children[name]
    position = entries.index((entry, child.end))
    is_last = position + 1 == len(entries)
    before = entries[position - 1][1] if is_last else child.end
    comma = _blanked(text).index(",", before)
    if is_last:
        comments = text[before:comma] + text[comma + 1 : entry].rstrip()
        return text[:before] + _ended(comments, text[child.end :])
    comments = text[before:comma].strip()
    return text[:entry] + _ended(comments, text[_skip(text, comma + 1) :])


def _emptied(text: str, node: Node) -> str | None:
    """Without the container's only entry; None when nothing else speaks for the container."""
    [(entry, child)] = node.children.values()
    before, after = text[node.start + 1 : entry], text[child.end : node.end - 1]
    if (before + after).strip():
        return text[: node.start + 1] + _ended(before.rstrip(), text[child.end :])
    was_empty = WAS_EMPTY.fullmatch(before)
    return text[: node.start + 1] + was_empty[1] + text[node.end - 1 :] if was_empty else None


def _ended(comments: str, rest: str) -> str:
    """Both, with a line break between them where a comment needs one."""
    needs_one = "//" in comments.rpartition("\n")[2] and rest.partition("\n")[0].strip()
    return f"{comments}\n{rest}" if needs_one else comments + rest


def _written(text: str, value: Any, indent: str) -> str:
    """Laid out as the file is, for a place whose line begins with `indent`."""
    written = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return written.replace("\n", ("\r\n" if "\r\n" in text else "\n") + indent)


def _unit(text: str) -> str:
    found = re.search(r"\{\s*?\n([ \t]+)", text)
    return found[1] if found else DEFAULT_INDENT


def _indent_at(text: str, node: Node) -> str:
    """The white space that begins the node's line."""
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    return _leading_space(line)


def _indent_inside(text: str, node: Node) -> str:
    for entry, _ in node.children.values():
        before = text[node.start : entry]
        if "\n" in before:
            return _leading_space(before.rpartition("\n")[2])
    return _indent_at(text, node) + _unit(text)


def _leading_space(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
