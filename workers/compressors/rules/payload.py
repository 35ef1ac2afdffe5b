"""Reading hook payloads whose fields may be missing or of any type: every reader answers, none raises."""

from typing import Any

_TEXT_KEYS = ("stdout", "stderr", "content", "text", "output", "result", "error", "message")
_DEPTH = 8


def record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def string(source: dict[str, Any], *names: str) -> str:
    """The first of the named fields that holds a non-empty string."""
    for name in names:
        value = source.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def text_of(value: Any, depth: int = 0) -> str:
    """The readable text of a tool's response, whatever its shape: a string, content blocks, or a record of streams."""
    if isinstance(value, str):
        return value
    if depth >= _DEPTH:
        return ""
    if isinstance(value, list):
        return "\n".join(part for item in value if (part := text_of(item, depth + 1)))
    if isinstance(value, dict):
        return "\n".join(part for key in _TEXT_KEYS if (part := text_of(value.get(key), depth + 1)))
    return ""


def size_of(value: Any, depth: int = 0) -> int:
    """Characters of text inside a value; numbers and punctuation are left out."""
    if isinstance(value, str):
        return len(value)
    if depth >= _DEPTH:
        return 0
    if isinstance(value, list):
        return sum(size_of(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return sum(size_of(item, depth + 1) for item in value.values())
    return 0
