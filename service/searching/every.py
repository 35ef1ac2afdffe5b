"""All records that hold every word of a query, not ranked and not cut: what is forgotten by a query."""

from service.database import Reader
from service.searching.conditions import Within, conditions
from service.searching.kinds import SOURCES, Source
from service.searching.request import Kind, SearchQuery
from service.searching.syntax import outside_project, parse
from service.searching.words import plain, terms

IDS = "SELECT {index}.rowid AS id FROM {index} CROSS JOIN {table} r ON r.id = {index}.rowid WHERE {index} MATCH :match"


def every(reader: Reader, query: SearchQuery) -> dict[Kind, list[int]]:
    """Ids by kind, within the query's filters; its limit, offset and order have no say. `project` is a name.

    Unlike a search it never relaxes: a record must hold all the words that count, or fulfil the FTS5 expression. Needs
    the text index.
    """
    return {kind: _of_kind(reader, SOURCES[kind], query) for kind in query.kinds}


def _of_kind(reader: Reader, source: Source, query: SearchQuery) -> list[int]:
    match = _match(plain(query.query), source)
    within = None if query.project is None else Within(project=query.project, small=False, narrows=False)
    limits = conditions(source, query, within)
    if match is None or limits is None:
        return []
    where = f" AND {limits.where}" if limits.where else ""
    sql = IDS.format(index=source.index, table=source.table) + where
    # a project's name stands in every row of it, in a column that is no text
    return [row["id"] for row in reader.all(sql, {**limits.params, "match": outside_project(match)})]


def _match(text: str, source: Source) -> str | None:
    syntax = parse(text, source.columns)
    if syntax is not None:
        return syntax.match
    return " AND ".join(term.match for term in terms(text) if term.required) or None
