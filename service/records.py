"""Records by the ids that people and agents write: 12 is an observation, S12 a summary, P12 a prompt."""

from collections.abc import Sequence
from typing import Any

from service import observations, sessions
from service.database import Reader
from service.errors import InvalidInput
from service.searching.request import Kind
from service.searching.table import PREFIXES

ID_DIGITS = 18
READERS = {
    Kind.OBSERVATION: observations.by_ids,
    Kind.SUMMARY: observations.summaries_by_ids,
    Kind.PROMPT: sessions.prompts_by_ids,
}
RecordId = tuple[Kind, int]


def parsed(text: str) -> RecordId:
    """Raises `InvalidInput`."""
    given = text.strip().upper()
    for kind, prefix in PREFIXES.items():
        digits = given.removeprefix(prefix)
        if digits.isascii() and digits.isdigit() and len(digits) <= ID_DIGITS:
            return kind, int(digits)
    raise InvalidInput(f"{text[:40]!r} is no id; ids are as 12, S12 or P12", field="ids")


def spelled(record_id: RecordId) -> int | str:
    """As it is written in lists of ids: 12, "S12", "P12"."""
    kind, number = record_id
    return f"{PREFIXES[kind]}{number}" if PREFIXES[kind] else number


def whole(reader: Reader, wanted: Sequence[RecordId], *, project: str | None = None) -> dict[RecordId, dict[str, Any]]:
    """Full records with their `kind`, in the order asked for; those that don't exist, or not in the project (its
    name), are left out."""
    found: dict[RecordId, dict[str, Any]] = {}
    for kind, read in READERS.items():
        if ids := [number for each, number in wanted if each is kind]:
            rows = [row for row in read(reader, ids) if project in (None, row["project"])]
            found |= {(kind, row["id"]): {"kind": kind, **row} for row in rows}
    return {each: found[each] for each in dict.fromkeys(wanted) if each in found}
