"""What of a record is embedded: the documents of observations, summaries and prompts, with their ids and texts."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from service.database import Reader, Row
from service.watermarks import Change

FACTS = 8
"""At most, of one record (semantics: Vectors)."""
CLIP_CHARS = 2_000
"""More than the embedder reads: 256 tokens are about 1,000 characters of English, and every ideograph is one."""
SUMMARY_FIELDS = {
    "request": 400,
    "completed": 600,
    "learned": 400,
    "investigated": 300,
    "next_steps": 200,
    "notes": 200,
}
"""Characters of each, so that none crowds the others out of what the embedder reads; what says most comes first."""

OBSERVATIONS = """
SELECT id, project, type, substr(title, 1, :clip) AS title, substr(narrative, 1, :clip) AS narrative, facts,
    created_at_epoch
FROM observations WHERE id IN (SELECT value FROM json_each(:ids))
"""
SUMMARIES = """
SELECT id, project, 'session_summary' AS type, substr(request, 1, :clip) AS request,
    substr(investigated, 1, :clip) AS investigated, substr(learned, 1, :clip) AS learned,
    substr(completed, 1, :clip) AS completed, substr(next_steps, 1, :clip) AS next_steps,
    substr(notes, 1, :clip) AS notes, created_at_epoch
FROM session_summaries WHERE id IN (SELECT value FROM json_each(:ids))
"""
PROMPTS = """
SELECT id, project, 'prompt' AS type, substr(text, 1, :clip) AS text, created_at_epoch
FROM user_prompts WHERE id IN (SELECT value FROM json_each(:ids))
"""


class DocType(StrEnum):
    OBSERVATION = "observation"
    SUMMARY = "session_summary"
    PROMPT = "user_prompt"


QUERIES = {DocType.OBSERVATION: OBSERVATIONS, DocType.SUMMARY: SUMMARIES, DocType.PROMPT: PROMPTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The text of one document. `part` is narrative, fact_0, …; or text, where the record has only one."""

    change: Change
    part: str
    project: str
    type: str
    created_at_epoch: int
    text: str

    @property
    def doc_id(self) -> str:
        return doc_id(self.change.doc_type, self.change.record_id, self.part)

    @property
    def text_hash(self) -> str:
        return text_hash(self.text)


def text_hash(text: str) -> str:
    """First 32 hex digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def doc_id(doc_type: str, record_id: int, part: str) -> str:
    """A document's name in the index: obs_7_narrative, obs_7_fact_0, summary_7, prompt_7."""
    if doc_type == DocType.OBSERVATION:
        return f"obs_{record_id}_{part}"
    return f"summary_{record_id}" if doc_type == DocType.SUMMARY else f"prompt_{record_id}"


def possible_ids(doc_type: str, record_id: int) -> list[str]:
    """The name of every document that a record may ever have had."""
    parts = ["narrative", *(f"fact_{i}" for i in range(FACTS))] if doc_type == DocType.OBSERVATION else ["text"]
    return [doc_id(doc_type, record_id, part) for part in parts]


def passages(reader: Reader, changes: Iterable[Change]) -> dict[Change, list[Passage]]:
    """The passages of each changed record that is still there; none where it says nothing."""
    wanted: dict[str, dict[int, Change]] = defaultdict(dict)
    for change in changes:
        wanted[change.doc_type][change.record_id] = change
    found: dict[Change, list[Passage]] = {}
    for doc_type, by_id in wanted.items():
        rows = reader.all(QUERIES[DocType(doc_type)], {"ids": json.dumps(list(by_id)), "clip": CLIP_CHARS})
        found |= {by_id[row["id"]]: list(_passages(by_id[row["id"]], row)) for row in rows}
    return found


def _passages(change: Change, row: Row) -> Iterator[Passage]:
    for part, text in _texts(change.doc_type, row):
        if text.strip():
            yield Passage(
                change=change,
                part=part,
                project=row["project"],
                type=row["type"],
                created_at_epoch=row["created_at_epoch"],
                text=text[:CLIP_CHARS],
            )


def _texts(doc_type: str, row: Row) -> Iterator[tuple[str, str]]:
    if doc_type == DocType.OBSERVATION:
        title, narrative = row["title"], row["narrative"]
        begins = narrative.startswith(title.removesuffix("…"))  # as the title of a remembered text does
        yield "narrative", narrative if begins else "\n".join(filter(None, (title, narrative)))
        facts: list[Any] = json.loads(row["facts"])
        yield from ((f"fact_{i}", str(fact)) for i, fact in enumerate(facts[:FACTS]))
    elif doc_type == DocType.SUMMARY:
        yield "text", "\n".join(row[field][:most] for field, most in SUMMARY_FIELDS.items() if row[field])
    else:
        yield "text", row["text"]
