"""Finds observations and a summary in whatever JSON, or text with JSON in it, a model gave; judges nothing."""

import json
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from workers.prompts import SUMMARY_FIELDS

_MAX_NESTING = 4
_MAX_STARTS = 100
"""How many opening braces of a text are tried: bounds the work on a hostile answer."""


@dataclass(slots=True, kw_only=True)
class Found:
    """What an answer holds, before any of it is judged: `listed` tells an empty list from no list at all."""

    observations: list[Any] = field(default_factory=list)
    summary: object = None
    nothing: bool = False
    listed: bool = False

    def __bool__(self) -> bool:
        return self.listed or self.nothing or self.summary is not None

    def absorb(self, other: "Found") -> None:
        self.observations += other.observations
        self.summary = self.summary if self.summary is not None else other.summary
        self.nothing |= other.nothing
        self.listed |= other.listed


OBSERVATION_KEYS = frozenset(
    {"type", "title", "subtitle", "narrative", "fact", "concept", "filesread", "filesmodified", "event"}
)
_OPENING = re.compile(r"[{\[]")
SUMMARY_KEYS = {re.sub(r"[\W_]", "", name).removesuffix("s"): name for name in SUMMARY_FIELDS}


def field_key(name: object) -> str:
    """`files_read`, `filesRead` and `Files-Read` are one name, and so are `fact` and `facts`."""
    return re.sub(r"[\W_]", "", str(name)).casefold().removesuffix("s")


def find(value: object, depth: int = 0) -> Found:
    """Observations and summary wherever they sit: wrapped, listed, alone, or as JSON inside a string."""
    found = Found()
    if depth > _MAX_NESTING:
        return found
    if isinstance(value, str):
        for inner in json_in(value):
            found.absorb(find(inner, depth + 1))
    elif isinstance(value, list):
        if any(isinstance(item, dict) and _tells({field_key(name) for name in item}) for item in value):
            return Found(observations=value, listed=True)
        for item in value:
            found.absorb(find(item, depth + 1) if isinstance(item, dict) else Found())
    elif isinstance(value, dict):
        found = _find_in_object(value, depth)
    return found


def _find_in_object(value: dict[str, Any], depth: int) -> Found:
    fields = {field_key(name): child for name, child in value.items()}
    flag = fields.get("nothingtorecord")
    nothing = flag is True or str(flag).casefold() == "true"
    if "observation" in fields:
        return Found(
            observations=_listed(fields["observation"]), summary=fields.get("summary"), nothing=nothing, listed=True
        )
    if _tells(fields.keys()):
        return Found(observations=[value], listed=True)
    if len(fields.keys() & SUMMARY_KEYS.keys()) > 1 or (fields and fields.keys() <= SUMMARY_KEYS.keys()):
        return Found(summary=value)
    if nothing or (fields.get("summary") and isinstance(fields["summary"], dict | str)):
        return Found(summary=fields.get("summary"), nothing=nothing)
    return next((inner for child in value.values() if (inner := find(child, depth + 1))), Found())


def _tells(keys: AbstractSet[str]) -> bool:
    """Whether an object outside any list of observations is one."""
    return bool(keys & {"title", "narrative", "fact"})


def _listed(value: object) -> list[Any]:
    """A list as it is, one object as a list of one, a string as the JSON it holds or else as one piece of prose."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        numbered = value and all(isinstance(child, dict) for child in value.values())
        return list(value.values()) if numbered else [value]
    if isinstance(value, str) and value.strip():
        inner = [item for part in json_in(value) for item in _listed(part)]
        return inner or [value]
    return []


def json_in(text: str) -> Iterator[Any]:
    """Every whole JSON object or array in `text`, in order: of an answer that was cut, the objects before the cut."""
    decoder = json.JSONDecoder()
    position, starts = 0, 0
    while starts < _MAX_STARTS and (opening := _OPENING.search(text, position)):
        starts += 1
        try:
            value, position = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            position = opening.end()
            continue
        yield value
