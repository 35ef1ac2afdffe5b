"""How much is remembered, in all and by project; read from the tables, kept nowhere."""

from typing import Any

from service.database import Reader

BY_TYPE = """
SELECT type, count(*) AS n, sum(discovery_tokens) AS discovery_tokens, min(created_at_epoch) AS first_epoch,
    max(created_at_epoch) AS last_epoch
FROM observations{where} GROUP BY type ORDER BY type
"""
OTHERS = """
SELECT (SELECT count(*) FROM session_summaries{where}) AS summaries,
    (SELECT count(*) FROM user_prompts{where}) AS prompts,
    (SELECT sum(coalesce(last_seen_epoch > forgotten_at_epoch, TRUE)) FROM sessions{where}) AS sessions
"""
IN_PROJECT = " WHERE project = :project"
BY_PROJECT = """
SELECT p.name AS project,
    (SELECT count(*) FROM observations o WHERE o.project = p.name) AS observations,
    (SELECT count(*) FROM session_summaries s WHERE s.project = p.name) AS summaries,
    (SELECT count(*) FROM user_prompts u WHERE u.project = p.name) AS prompts,
    (SELECT count(*) FROM sessions s WHERE s.project = p.name
        AND coalesce(s.last_seen_epoch > s.forgotten_at_epoch, TRUE)) AS sessions,
    (SELECT max(created_at_epoch) FROM observations o WHERE o.project = p.name) AS last_epoch
FROM projects p WHERE :project IS NULL OR p.name = :project
ORDER BY last_epoch IS NULL, last_epoch DESC, p.name LIMIT :limit OFFSET :offset
"""
COUNT_PROJECTS = "SELECT count(*) FROM projects WHERE :project IS NULL OR name = :project"


def totals(reader: Reader, *, project: str | None) -> dict[str, Any]:
    """Numbers of rows by kind, `types` of observations, `discovery_tokens`, first and last time (None: nothing yet)."""
    where, params = (IN_PROJECT, {"project": project}) if project is not None else ("", {})
    others = reader.one(OTHERS.format(where=where), params)
    types = reader.all(BY_TYPE.format(where=where), params)
    assert others is not None  # it counts
    return {
        "observations": sum(kind["n"] for kind in types),
        **dict(others),
        "sessions": others["sessions"] or 0,
        "discovery_tokens": sum(kind["discovery_tokens"] for kind in types),
        "first_epoch": min((kind["first_epoch"] for kind in types), default=None),
        "last_epoch": max((kind["last_epoch"] for kind in types), default=None),
        "types": {kind["type"]: kind["n"] for kind in types},
    }


def by_project(reader: Reader, *, project: str | None, limit: int, offset: int) -> tuple[int, list[dict[str, Any]]]:
    """(total, rows), the project with the newest observation first."""
    params = {"project": project, "limit": limit, "offset": offset}
    return reader.value(COUNT_PROJECTS, params), [dict(row) for row in reader.all(BY_PROJECT, params)]
