"""What is in the files that a person names: exports of ours, databases of claude-mem, recordings of clients."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

import orjson
from pydantic import ValidationError

from service.errors import InvalidInput
from service.portability import claude_mem
from service.portability.lines import KINDS, AnyLine, parsed
from service.portability.transcripts import claude_code, codex, gemini
from service.portability.transcripts.recording import COMPRESSED, Record, records

SQLITE_MAGIC = b"SQLite format 3\0"
LONGEST_LINE_BYTES = 16 * 1024 * 1024
LOOKED_AT = 50
"""Records at the head of a file that say what it is."""


class Format(StrEnum):
    JSONL = "jsonl"
    CLAUDE_MEM = "claude-mem"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"


TRANSCRIPTS = {Format.CLAUDE_CODE: claude_code.read, Format.CODEX: codex.read, Format.GEMINI: gemini.read}
"""Formats whose files are recorded sessions; the others hold lines."""


SIGNS: dict[Format, Callable[[Record], bool]] = {
    Format.JSONL: lambda record: record.get("kind") in KINDS,
    Format.CODEX: lambda record: record.get("type") in codex.KINDS and "payload" in record,
    Format.GEMINI: lambda record: "projectHash" in record or record.get("type") == "gemini",
    Format.CLAUDE_CODE: lambda record: (
        "sessionId" in record or "parentUuid" in record or record.get("type") == "summary"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A line that says nothing we can take: where it stands and why."""

    where: str
    reason: str


def format_of(path: Path) -> Format | None:
    """By what is in the file; None when it is none of them. Raises `InvalidInput` of a damaged archive, `OSError`."""
    with path.open("rb") as file:
        if file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC:
            return Format.CLAUDE_MEM if claude_mem.is_one(path) else None
    unusable: list[str] = []
    first = [record for _, record in islice(records(path, unusable), LOOKED_AT)]
    if not first and path.suffix in COMPRESSED and unusable:
        raise InvalidInput(unusable[0], field="paths")
    if not first:
        return Format.JSONL if not path.stat().st_size else None
    return next((form for form, is_it in SIGNS.items() if any(map(is_it, first))), None)


def lines(path: Path, form: Format) -> Iterator[AnyLine | Unusable]:
    """Raises `InvalidInput` when the file is not of this format at all, `OSError`."""
    return _json_lines(path) if form is Format.JSONL else _from_claude_mem(path)


def _json_lines(path: Path) -> Iterator[AnyLine | Unusable]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(LONGEST_LINE_BYTES).removeprefix(BOM_UTF8):
            number += 1
            if raw.strip():
                yield _line(raw, f"{path}:{number}")


def _line(raw: bytes, where: str) -> AnyLine | Unusable:
    try:
        return parsed(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        return Unusable(where=where, reason=f"no JSON: {error}")
    except ValidationError as error:
        return Unusable(where=where, reason=_said(error))


def _from_claude_mem(path: Path) -> Iterator[AnyLine | Unusable]:
    for where, record in claude_mem.records(path):
        try:
            yield parsed(record)
        except ValidationError as error:
            yield Unusable(where=f"{path}, {where}", reason=_said(error))


def _said(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(map(str, problem["loc"]))
    return f"{field}: {problem['msg']}" if field else problem["msg"]


def need_format(path: Path, form: Format | None) -> Format:
    found = form or format_of(path)
    if found is None:
        raise InvalidInput(
            f"{path} is neither an export of Gapless, nor a transcript, nor a database of claude-mem; "
            "name its format with --from. A database of Gapless comes back by `gapless restore`",
            field="paths",
        )
    return found
