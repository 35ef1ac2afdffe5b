"""Search without FTS5: every row is looked through with LIKE, newest first, and scored by the terms it holds."""

import re
from collections.abc import Sequence

import orjson

from service.database import Reader
from service.searching.conditions import Conditions
from service.searching.kinds import Source
from service.searching.words import Term

ROWS_PER_STATEMENT = 10_000
"""Between statements a deadline can end the scan and keep what it has."""
TITLE_BONUS = 0.01
"""Never outweighs a term: a query has less than a hundred."""
ENDING = re.compile(r"(?<=\w{4})(?:ing|ed|es|s)$", re.IGNORECASE)
"""A little of what the stemmer does: `connections` also finds connection."""

NEWEST_ID = "SELECT max(id) FROM {table}"
SCAN = """
SELECT id, score FROM (
    SELECT r.id AS id, (
        SELECT total(({text}) LIKE term.value ESCAPE '\\') + {bonus} * total(({title}) LIKE term.value ESCAPE '\\')
        FROM json_each(:patterns) term) AS score
    FROM {table} r WHERE r.id > :after AND r.id <= :last{where})
WHERE score > 0
"""


def scan(
    reader: Reader, source: Source, conditions: Conditions, terms: Sequence[Term], scores: dict[int, float]
) -> None:
    """Put the rows that hold a term into `scores`, as far as it gets before it is cancelled."""
    patterns = [_pattern(term.literal) for term in terms if term.required]
    separator = " || char(10) || "
    sql = SCAN.format(
        table=source.table,
        text=separator.join(f"r.{column}" for column in source.texts),
        title=separator.join(f"r.{column}" for column in source.columns["title"]),
        bonus=TITLE_BONUS,
        where=conditions.where and f" AND {conditions.where}",
    )
    params = {**conditions.params, "patterns": orjson.dumps(patterns).decode()}
    last = reader.value(NEWEST_ID.format(table=source.table)) or 0
    while last > 0 and patterns:
        rows = reader.all(sql, {**params, "after": last - ROWS_PER_STATEMENT, "last": last})
        scores.update({row["id"]: row["score"] for row in rows})
        last -= ROWS_PER_STATEMENT


def _pattern(literal: str) -> str:
    return "%" + re.sub(r"([%_\\])", r"\\\1", ENDING.sub("", literal)) + "%"
