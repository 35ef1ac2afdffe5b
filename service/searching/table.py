"""A search answer as a compact table for people and agents: about twenty tokens of frame, then a line a hit."""

import re
from collections.abc import Iterable

from service.clock import local_minute
from service.searching.request import Kind, SearchAnswer, SearchHit

PREFIXES = {Kind.OBSERVATION: "", Kind.SUMMARY: "S", Kind.PROMPT: "P"}
"""Of ids wherever the kind is not said beside them (semantics: Search)."""
UNSAFE = re.compile(r"[|\x00-\x1f\x7f-\x9f\s]+")


def markdown(answer: SearchAnswer) -> str:
    """What was found and how, and the hits as a table."""
    shown = f"{len(answer.results)} of {answer.total} ({answer.mode})"
    head = shown if answer.degraded is None else f"{shown}; degraded: {answer.degraded}"
    return "\n".join([head, *table(map(line, answer.results))]) + "\n"


def table(lines: Iterable[str]) -> list[str]:
    """The lines under their head; nothing when there are none."""
    rows = list(lines)
    return ["", "| id | time | type | title | ~tokens |", "|---|---|---|---|---|", *rows] if rows else []


def line(hit: SearchHit, *, mark: str = "") -> str:
    """Id (`12`, `S12`, `P7`) with a mark before it, local time, type, title (and how many say the same), tokens of the
    full record."""
    title = UNSAFE.sub(" ", hit.title).strip() + (f" (+{hit.similar} alike)" if hit.similar else "")
    when = local_minute(hit.created_at_epoch)
    return f"| {mark}{PREFIXES[hit.kind]}{hit.id} | {when} | {hit.type} | {title} | ~{hit.tokens} |"
