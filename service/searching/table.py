"""A search answer as a compact table for people and agents: about twenty tokens of frame, then a line a hit."""

import re

from service.clock import iso
from service.searching.request import Kind, SearchAnswer, SearchHit

PREFIXES = {Kind.OBSERVATION: "", Kind.SUMMARY: "S", Kind.PROMPT: "P"}
"""Of ids wherever the kind is not said beside them (semantics: Search)."""
UNSAFE = re.compile(r"[|\x00-\x1f\x7f-\x9f\s]+")


def markdown(answer: SearchAnswer) -> str:
    """Columns: id (`12`, `S12`, `P7`), time in UTC, type, title, tokens of the full record."""
    shown = f"{len(answer.results)} of {answer.total} ({answer.mode})"
    lines = [shown if answer.degraded is None else f"{shown}; degraded: {answer.degraded}"]
    if answer.results:
        lines += ["", "| id | time | type | title | ~tokens |", "|---|---|---|---|---|", *map(_line, answer.results)]
    return "\n".join(lines) + "\n"


def _line(hit: SearchHit) -> str:
    when = iso(hit.created_at_epoch)[:16].replace("T", " ")
    title = UNSAFE.sub(" ", hit.title).strip()
    return f"| {PREFIXES[hit.kind]}{hit.id} | {when} | {hit.type} | {title} | ~{hit.tokens} |"
