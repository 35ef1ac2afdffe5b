"""The filters of a search for one kind of record: exact in SQL, and narrowed inside the text index where it can."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from service.searching.kinds import Source
from service.searching.request import Kind, SearchQuery
from service.searching.words import PART, phrase, plain

UNEXPIRED = "r.id NOT IN (SELECT value FROM json_each(:expired))"
PLATFORM = "EXISTS (SELECT 1 FROM sessions s WHERE s.session_id = r.session_id AND s.platform = :platform)"
CONCEPTS = """
EXISTS (SELECT 1 FROM json_each(r.concepts) c JOIN json_each(:concepts) given ON lower(c.value) = lower(given.value))
"""
FILE = """
EXISTS (SELECT 1 FROM json_each(r.{column}) path JOIN json_each(:suffixes) suffix
        ON substr('/' || path.value, -length(suffix.value)) = suffix.value)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """`where` is SQL over the alias r, '' when nothing is filtered; `narrow` are FTS5 expressions that every match
    fulfils, so that the index does not walk through rows that `where` would refuse; `project` is another, for queries
    that rank nothing."""

    where: str
    params: dict[str, Any]
    narrow: tuple[str, ...]
    project: str | None = None
    in_small_project: bool = False

    def narrowed(self, match: str) -> str:
        return " AND ".join(f"({part})" for part in (*self.narrow, match))

    def within_project(self, match: str) -> str:
        """As `narrowed`, to a project of any size: where nothing is ranked its postings cost little and spare much."""
        given = self.project is not None and self.project not in self.narrow
        return f"({self.project}) AND {self.narrowed(match)}" if given else self.narrowed(match)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """The project that is searched, by name. `narrows`: its rows are few enough that looking them up inside the index
    is cheaper than refusing the others afterwards (bm25 walks all rows of the project then, for every query); `small`:
    so few that they can be ranked among themselves."""

    project: str
    small: bool
    narrows: bool


def conditions(
    source: Source, query: SearchQuery, within: Within | None, expired: Sequence[int] = ()
) -> Conditions | None:
    """None when no record of this kind can fulfil them. `expired` are observations that are as good as gone."""
    is_observation = source.kind is Kind.OBSERVATION
    if ((query.obs_types or query.concepts) and not is_observation) or (query.files and not source.files):
        return None
    suffixes = [_suffix(path) for path in query.files]
    params = {
        "project": within and within.project,
        "session": query.session and plain(query.session),
        "platform": query.platform and plain(query.platform),
        "start": query.start_epoch,
        "end": query.end_epoch,
        "types": orjson.dumps(query.obs_types).decode(),
        "concepts": orjson.dumps([plain(concept) for concept in query.concepts]).decode(),
        "suffixes": orjson.dumps(suffixes).decode(),
        "expired": orjson.dumps(expired).decode(),
    }
    parts = list(_where(source, query, within))
    if expired and is_observation:
        parts.append(UNEXPIRED)
    used = {name: value for name, value in params.items() if any(f":{name}" in part for part in parts)}
    narrow = _narrow(source, query, within, suffixes)
    return Conditions(
        where=" AND ".join(parts),
        params=used,
        narrow=tuple(narrow),
        project=_in_index(within),
        in_small_project=within is not None and within.small,
    )


def _where(source: Source, query: SearchQuery, within: Within | None) -> Iterator[str]:
    if within is not None:
        yield "r.project = :project"
    if query.session is not None:
        yield "r.session_id = :session"
    if query.platform is not None:
        yield PLATFORM
    if query.start_epoch is not None:
        yield "r.created_at_epoch >= :start"
    if query.end_epoch is not None:
        yield "r.created_at_epoch <= :end"
    if query.obs_types:
        yield "r.type IN (SELECT value FROM json_each(:types))"
    if query.concepts:
        yield CONCEPTS
    if query.files:
        yield "(" + " OR ".join(FILE.format(column=column) for column in source.files) + ")"


def _narrow(source: Source, query: SearchQuery, within: Within | None, suffixes: list[str]) -> Iterator[str]:
    in_project = _in_index(within)
    if within is not None and within.narrows and in_project is not None:
        yield in_project
    for columns, wanted in ((source.files, suffixes), (("concepts",), query.concepts)):
        if wanted and all(PART.search(one) for one in wanted):
            yield f"{{{' '.join(columns)}}} : ({' OR '.join(phrase(plain(one)) for one in wanted)})"


def _in_index(within: Within | None) -> str | None:
    """The project as the index has it; None where its name has nothing that the tokenizer takes for a word."""
    return f"project : ^{phrase(within.project)}" if within is not None and PART.search(within.project) else None


def _suffix(path: str) -> str:
    """What a path with a `/` before it must end in: whole components, or an extension given as `.go` or `*.go`."""
    path = plain(path).replace("\\", "/").removeprefix("./")
    if path.startswith(("*", ".")) and "/" not in path:
        return path.lstrip("*")
    return "/" + path.strip("/")
