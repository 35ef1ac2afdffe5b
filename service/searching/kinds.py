"""The three kinds of records as a search sees them: their tables, columns and weights, and rows as hits."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from service.database import Row
from service.documents import DocType
from service.searching.request import Kind, SearchHit

TITLE_CHARS = 120
CHARS_PER_TOKEN = 4
"""Of Latin text; an ideograph counts as a token (mission H2)."""
WIDE = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One kind's table. `weights` of bm25, in the order of the index's columns (`fulltext.INDEXED`, then search_extra
    and project); they were tuned with benchmarks/retrieval.py. `columns`: what the names of the query syntax stand for.
    `texts`: what a SQLite without FTS5 looks through, the title first. `files`: the lists of paths, the last of those
    that were changed."""

    kind: Kind
    table: str
    doc_type: DocType
    weights: tuple[float, ...]
    columns: Mapping[str, tuple[str, ...]]
    texts: tuple[str, ...]
    files: tuple[str, ...]
    hit: Callable[[Row, float], SearchHit]

    @property
    def index(self) -> str:
        return f"{self.table}_fts"

    @property
    def changed(self) -> str:
        """The list of paths that the work changed, in SQL over the alias r."""
        return f"r.{self.files[-1]}" if self.files else "'[]'"


def tokens(*texts: str) -> int:
    """Estimate of what the texts cost to read."""
    wide = sum(len(WIDE.findall(text)) for text in texts if not text.isascii())
    return wide + (sum(map(len, texts)) - wide + CHARS_PER_TOKEN - 1) // CHARS_PER_TOKEN


def first_line(text: str, limit: int = TITLE_CHARS) -> str:
    """The first line that says something, white space as single blanks, cut at `limit` characters."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _observation(row: Row, score: float) -> SearchHit:
    lists = [
        " ".join(map(str, orjson.loads(row[name]))) for name in ("facts", "concepts", "files_read", "files_modified")
    ]
    return _hit(
        row,
        score,
        kind=Kind.OBSERVATION,
        type=row["type"],
        title=row["title"],
        subtitle=row["subtitle"],
        tokens=tokens(row["title"], row["subtitle"], row["narrative"], *lists),
    )


def _summary(row: Row, score: float) -> SearchHit:
    texts = [row[name] for name in ("request", "investigated", "learned", "completed", "next_steps", "notes")]
    return _hit(
        row,
        score,
        kind=Kind.SUMMARY,
        type="session_summary",
        title=first_line(row["request"]) or next((first_line(text) for text in texts if text.strip()), ""),
        subtitle=first_line(row["completed"]),
        tokens=tokens(*texts),
    )


def _prompt(row: Row, score: float) -> SearchHit:
    text = row["text"]
    return _hit(row, score, kind=Kind.PROMPT, type="prompt", title=first_line(text), subtitle="", tokens=tokens(text))


def _hit(row: Row, score: float, **fields: Any) -> SearchHit:
    return SearchHit(
        id=row["id"],
        project=row["project"],
        session_id=row["session_id"],
        created_at_epoch=row["created_at_epoch"],
        score=round(score, 4),
        **fields,
    )


SOURCES = {
    source.kind: source
    for source in (
        Source(
            kind=Kind.OBSERVATION,
            table="observations",
            doc_type=DocType.OBSERVATION,
            weights=(1.2, 0.5, 1.0, 1.0, 0.5, 0.2, 1.0, 0.5, 0.0),
            columns={
                "title": ("title",),
                "narrative": ("narrative",),
                "facts": ("facts",),
                "concepts": ("concepts",),
                "files": ("files_read", "files_modified"),
            },
            texts=("title", "subtitle", "narrative", "facts", "concepts", "files_read", "files_modified"),
            files=("files_read", "files_modified"),
            hit=_observation,
        ),
        Source(
            kind=Kind.SUMMARY,
            table="session_summaries",
            doc_type=DocType.SUMMARY,
            weights=(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.2, 0.5, 0.5, 0.0),
            columns={
                "title": ("request", "completed"),
                "narrative": ("investigated", "learned", "completed", "next_steps", "notes"),
                "files": ("files_read", "files_edited"),
            },
            texts=(
                *("request", "completed", "investigated", "learned", "next_steps", "notes"),
                *("files_read", "files_edited"),
            ),
            files=("files_read", "files_edited"),
            hit=_summary,
        ),
        Source(
            kind=Kind.PROMPT,
            table="user_prompts",
            doc_type=DocType.PROMPT,
            weights=(1.0, 0.5, 0.0),
            columns={"title": ("text",), "narrative": ("text",)},
            texts=("text",),
            files=(),
            hit=_prompt,
        ),
    )
}
