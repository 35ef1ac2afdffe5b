"""What was read and searched in a turn: the places and names that its answer rests on."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from service.models import ObservationDraft, ObservationType
from workers.compressors.rules import code
from workers.compressors.rules.edits import TITLE_LIMIT
from workers.compressors.rules.paths import relative
from workers.compressors.rules.payload import record, string
from workers.compressors.rules.text import clip, one_line, plain, take
from workers.compressors.rules.turns import ToolUse, Turn

_FACTS_LIMIT = 700
_NAMES = 4
_FILES = 12
_PATTERN_NOISE = re.compile(r"[\\^$.*+?()\[\]{}|]+")


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What was seen of one file: the names defined in the parts that were read."""

    path: str
    names: dict[str, None] = field(default_factory=dict)


def reading_observations(turn: Turn, root: str, edited: tuple[str, ...]) -> Iterator[ObservationDraft]:
    """One record of the files that were read but not edited, with the names in them, and what was searched for."""
    readings, uses = _readings(turn, root)
    looked_at = [reading for reading in readings if reading.path not in edited]
    patterns = _patterns(turn)
    if not looked_at:
        return
    names = ", ".join(dict.fromkeys(posixpath.basename(reading.path) for reading in looked_at))
    yield ObservationDraft(
        type=ObservationType.DISCOVERY,
        title=clip(f"Read {names}", TITLE_LIMIT),
        facts=take(_facts(looked_at, patterns), _FACTS_LIMIT),
        concepts=("how-it-works",),
        files_read=tuple(reading.path for reading in looked_at[:_FILES]),
        message_ids=tuple(use.message_id for use in uses),
        discovery_tokens=sum(use.tokens for use in uses),
    )


def _readings(turn: Turn, root: str) -> tuple[list[_Reading], list[ToolUse]]:
    readings: dict[str, _Reading] = {}
    uses: list[ToolUse] = []
    for use in turn.named("Read"):
        path = string(use.input, "file_path", "path", "absolute_path")
        if use.error or not path:
            continue
        uses.append(use)
        reading = readings.setdefault(path, _Reading(path=relative(path, root)))
        content = string(record(record(use.response).get("file")), "content")
        lines = content.splitlines()
        found = (plain(h) for h in code.headings(lines)) if code.is_prose(path) else code.definitions(lines)
        reading.names.update(dict.fromkeys(found))
    return list(readings.values()), uses


def _patterns(turn: Turn) -> list[str]:
    searched = (string(use.input, "pattern", "query") for use in turn.named("Grep"))
    return [text for pattern in searched if len(text := one_line(_PATTERN_NOISE.sub(" ", pattern))) > 2]


def _facts(readings: Iterable[_Reading], patterns: list[str]) -> Iterator[str]:
    if patterns:
        yield clip("searched for " + ", ".join(dict.fromkeys(patterns)), 240)
    for reading in readings:
        if reading.names:
            yield clip(f"{posixpath.basename(reading.path)}: {', '.join(list(reading.names)[:_NAMES])}", 240)
