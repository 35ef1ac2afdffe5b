"""How much is remembered, in all and by project; read from the tables, kept nowhere."""

from typing import Any

from service.database import Reader

TOTALS = """
SELECT
    (SELECT count(*) FROM observations WHERE :project IS NULL OR project = :project) AS observations,
    (SELECT count(*) FROM session_summaries WHERE :project IS NULL OR project = :project) AS summaries,
    (SELECT count(*) FROM user_prompts WHERE :project IS NULL OR project = :project) AS prompts,
    (SELECT count(*) FROM sessions WHERE (:project IS NULL OR project = :project)
        AND coalesce(last_seen_epoch > forgotten_at_epoch, TRUE)) AS sessions,
    (SELECT coalesce(sum(discovery_tokens), 0) FROM observations WHERE :project IS NULL OR project = :project)
        AS discovery_tokens,
    (SELECT min(created_at_epoch) FROM observations WHERE :project IS NULL OR project = :project) AS first_epoch,
    (SELECT max(created_at_epoch) FROM observations WHERE :project IS NULL OR project = :project) AS last_epoch
"""
TYPES = """
SELECT type, count(*) AS n FROM observations WHERE :project IS NULL OR project = :project GROUP BY type ORDER BY type
"""
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


async def totals(reader: Reader, *, project: str | None) -> dict[str, Any]:
    """Numbers of rows by kind, `types` of observations, `discovery_tokens`, first and last time (None: nothing yet)."""
    row = await reader.one(TOTALS, {"project": project})
    types = await reader.all(TYPES, {"project": project})
    return {**dict(row or {}), "types": {kind["type"]: kind["n"] for kind in types}}


async def by_project(
    reader: Reader, *, project: str | None, limit: int, offset: int
) -> tuple[int, list[dict[str, Any]]]:
    """(total, rows), the project with the newest observation first."""
    params = {"project": project, "limit": limit, "offset": offset}
    return await reader.value(COUNT_PROJECTS, params), [dict(row) for row in await reader.all(BY_PROJECT, params)]
