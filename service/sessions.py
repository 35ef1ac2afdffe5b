"""Sessions and the prompts in them: opened by any event, closed by their end or by silence."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service import outbox
from service.database import Reader, Row, Tx
from service.fulltext import shadow
from service.models import Prompt, Session

TOUCH = """
UPDATE sessions SET
    started_at_epoch = min(started_at_epoch, :at),
    last_event_at_epoch = max(last_event_at_epoch, :at),
    unsummarised = unsummarised + :news,
    last_seen_epoch = :now
WHERE session_id = :session_id AND status = 'active' AND cwd <> ''
"""
OPEN = """
INSERT INTO sessions (session_id, project, platform, cwd, unsummarised, started_at_epoch, last_event_at_epoch,
    last_seen_epoch)
VALUES (:session_id, :project, :platform, :cwd, :news, :at, :at, :now)
ON CONFLICT (session_id) DO UPDATE SET
    status = CASE WHEN status = 'closed' AND ended_at_epoch >= :at AND NOT :news THEN 'closed' ELSE 'active' END,
    cwd = CASE WHEN cwd = '' THEN excluded.cwd ELSE cwd END,
    started_at_epoch = min(started_at_epoch, :at),
    last_event_at_epoch = max(last_event_at_epoch, :at),
    unsummarised = unsummarised + :news,
    last_seen_epoch = :now
"""
KNOW = """
INSERT INTO sessions (session_id, project, platform, status, started_at_epoch, last_event_at_epoch, last_seen_epoch,
    ended_at_epoch)
VALUES (:session_id, :project, :platform, 'closed', :at, :at, :now, :at)
ON CONFLICT (session_id) DO UPDATE SET
    started_at_epoch = min(started_at_epoch, :at),
    last_event_at_epoch = max(last_event_at_epoch, :at),
    last_seen_epoch = :now,
    ended_at_epoch = max(ended_at_epoch, :at)
WHERE platform = :platform
"""
FORGET = """
UPDATE sessions SET forgotten_at_epoch = :now, cwd = '', unsummarised = 0
WHERE (:project IS NULL OR project = :project) AND (:session IS NULL OR session_id = :session)
  AND (:before IS NULL OR last_event_at_epoch < :before)
  AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.session_id = sessions.session_id)
  AND NOT EXISTS (SELECT 1 FROM session_summaries s WHERE s.session_id = sessions.session_id)
  AND NOT EXISTS (SELECT 1 FROM user_prompts p WHERE p.session_id = sessions.session_id)
"""
FORGET_PROMPTS = """
DELETE FROM user_prompts WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id, session_id, created_at_epoch
"""
KEEP_KEYS = """
INSERT OR IGNORE INTO forgotten (event_key, forgotten_at_epoch)
SELECT event_key, :now FROM user_prompts WHERE id IN (SELECT value FROM json_each(:ids))
"""
KEEP_MOMENTS = """
INSERT OR IGNORE INTO forgotten (event_key, forgotten_at_epoch) SELECT value, :now FROM json_each(:keys)
"""
FORGOTTEN_NEAR = "SELECT EXISTS (SELECT 1 FROM forgotten WHERE event_key BETWEEN :first AND :last)"
GET = "SELECT session_id, project, platform, cwd, started_at_epoch FROM sessions WHERE session_id = :session_id"
PROJECT_OF = "SELECT project FROM sessions WHERE session_id = :session_id"
CLOSE = "UPDATE sessions SET status = 'closed', ended_at_epoch = :at WHERE session_id = :session_id"
IDLE = """
SELECT session_id, project, platform, cwd, started_at_epoch, last_event_at_epoch, unsummarised FROM sessions
WHERE status = 'active' AND last_seen_epoch < :before ORDER BY last_seen_epoch LIMIT :limit
"""

TAKE_NEW = "UPDATE sessions SET unsummarised = 0 WHERE session_id = :session_id AND unsummarised > 0"

NEXT_PROMPT = """
UPDATE sessions SET prompt_count = prompt_count + 1 WHERE session_id = :session_id RETURNING prompt_count
"""
INSERT_PROMPT = """
INSERT INTO user_prompts (event_key, session_id, project, prompt_number, client_prompt_id, text, search_extra,
    created_at_epoch)
VALUES (:event_key, :session_id, :project, :number, :client_prompt_id, :text, :search_extra, :at)
"""
PROMPT_BETWEEN = """
SELECT 1 FROM user_prompts WHERE session_id = :session_id AND created_at_epoch > :after AND created_at_epoch <= :until
LIMIT 1
"""
PROMPTS_BETWEEN = """
SELECT id, session_id, prompt_number, client_prompt_id, text, created_at_epoch FROM user_prompts
WHERE session_id = :session_id AND created_at_epoch <= :until
  AND created_at_epoch >= coalesce(
      (SELECT max(created_at_epoch) FROM user_prompts WHERE session_id = :session_id AND created_at_epoch <= :since),
      :since)
ORDER BY created_at_epoch, id
"""
PROMPTS_BY_IDS = """
SELECT id, session_id, project, prompt_number, text, created_at_epoch FROM user_prompts
WHERE id IN (SELECT value FROM json_each(:ids))
"""

NEWEST = """
SELECT session_id, project, platform, cwd, status, prompt_count, started_at_epoch, last_event_at_epoch, ended_at_epoch
FROM sessions WHERE (:project IS NULL OR project = :project) AND coalesce(last_seen_epoch > forgotten_at_epoch, TRUE)
ORDER BY last_event_at_epoch DESC, id DESC LIMIT :limit OFFSET :offset
"""
COUNT = """
SELECT count(*) FROM sessions
WHERE (:project IS NULL OR project = :project) AND coalesce(last_seen_epoch > forgotten_at_epoch, TRUE)
"""
NEWEST_PROMPTS = """
SELECT id, session_id, project, prompt_number, text, created_at_epoch FROM user_prompts
WHERE :project IS NULL OR project = :project ORDER BY created_at_epoch DESC, id DESC LIMIT :limit OFFSET :offset
"""
COUNT_PROMPTS = "SELECT count(*) FROM user_prompts WHERE :project IS NULL OR project = :project"

OPEN_PRIVATE_TURN = """
INSERT INTO private_turns (session_id, client_prompt_id, from_epoch, until_epoch)
VALUES (:session_id, :client_prompt_id, :at, :until)
"""
NEXT_PROMPT_AFTER = """
SELECT min(at) FROM (
    SELECT created_at_epoch AS at FROM user_prompts WHERE session_id = :session_id AND created_at_epoch > :at
    UNION ALL SELECT from_epoch FROM private_turns WHERE session_id = :session_id AND from_epoch > :at)
"""
DROP_PRIVATE_TURNS = """
DELETE FROM private_turns WHERE rowid IN (
    SELECT private_turns.rowid FROM private_turns JOIN sessions USING (session_id)
    WHERE last_seen_epoch < :before LIMIT :limit)
"""
END_PRIVATE_TURN = """
UPDATE private_turns SET until_epoch = :at
WHERE session_id = :session_id AND from_epoch < :at AND (until_epoch IS NULL OR until_epoch > :at)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Where an event stands: its session, the client's own prompt id if it has one, and its captured time."""

    session_id: str
    client_prompt_id: str | None
    at: int


def touch(tx: Tx, session: Session, *, at: int, is_news: bool, now: int) -> None:
    """Open the session, or reopen and date it. `is_news`: the next summary is about what came; what is none and comes
    late, from before the session's end, leaves it closed."""
    params = {
        "session_id": session.session_id,
        "project": session.project,
        "platform": session.platform,
        "cwd": session.cwd,
        "news": int(is_news),
        "at": at,
        "now": now,
    }
    if not tx.run(TOUCH, params):
        tx.run(OPEN, params)


def know(tx: Tx, session_id: str, *, project: str, platform: str, at: int, now: int) -> None:
    """Make a closed session that no client has told of, or date it; one that a client told of stays as it is."""
    tx.run(KNOW, {"session_id": session_id, "project": project, "platform": platform, "at": at, "now": now})


def forget(tx: Tx, *, project: str | None, session_id: str | None, before: int | None, now: int) -> None:
    """Of these sessions, lists leave out those with no record left, until they have an event again."""
    tx.run(FORGET, {"project": project, "session": session_id, "before": before, "now": now})


def forget_prompts(tx: Tx, ids: Sequence[int], *, now: int) -> int:
    """Delete prompts and what was told of them, and keep their keys and moments; the number that there were."""
    params = {"ids": json.dumps(list(ids)), "now": now}
    tx.run(KEEP_KEYS, params)
    rows = tx.all(FORGET_PROMPTS, params)
    moments = [_moment_key(row["session_id"], row["created_at_epoch"]) for row in rows]
    tx.run(KEEP_MOMENTS, {"keys": json.dumps(moments), "now": now})
    outbox.withdraw(tx, "prompt", [row["id"] for row in rows])
    for row in rows:
        outbox.tell(tx, "prompt", {"id": row["id"], "session_id": row["session_id"], "deleted": True}, now=now)
    return len(rows)


def forgot_a_prompt(reader: Reader, session_id: str, *, since: int, until: int) -> bool:
    """Whether a prompt of that time was forgotten: a recording of it has another key than the hook's event had."""
    params = {"first": _moment_key(session_id, since), "last": _moment_key(session_id, until)}
    return bool(reader.value(FORGOTTEN_NEAR, params))


def _moment_key(session_id: str, at: int) -> str:
    return f"UserPromptSubmit/{session_id}/at-{at:015d}"


def get(tx: Tx, session_id: str) -> Session | None:
    row = tx.one(GET, {"session_id": session_id})
    return None if row is None else from_row(row)


def project_of(tx: Tx, session_id: str) -> str | None:
    name: str | None = tx.value(PROJECT_OF, {"session_id": session_id})
    return name


def close(tx: Tx, session_id: str, *, at: int) -> None:
    tx.run(CLOSE, {"session_id": session_id, "at": at})


def idle(tx: Tx, *, before: int, limit: int) -> list[Row]:
    """Active sessions of which nothing arrived since `before`."""
    return tx.all(IDLE, {"before": before, "limit": limit})


def take_new(tx: Tx, session_id: str) -> bool:
    """Whether there is anything to summarise; it counts as taken then."""
    return tx.run(TAKE_NEW, {"session_id": session_id}) > 0


def has_prompt_between(tx: Tx, session_id: str, *, after: int, until: int) -> bool:
    return tx.one(PROMPT_BETWEEN, {"session_id": session_id, "after": after, "until": until}) is not None


def add_prompt(tx: Tx, turn: Turn, *, event_key: str, project: str, text: str, now: int) -> int:
    """Store a prompt with the next number of its session; its id."""
    number = tx.value(NEXT_PROMPT, {"session_id": turn.session_id})
    prompt_id = tx.insert(
        INSERT_PROMPT,
        {
            "event_key": event_key,
            "session_id": turn.session_id,
            "project": project,
            "number": number,
            "client_prompt_id": turn.client_prompt_id,
            "text": text,
            "search_extra": shadow(text),
            "at": turn.at,
        },
    )
    data = {
        "id": prompt_id,
        "project": project,
        "session_id": turn.session_id,
        "prompt_number": number,
        "text": text[:500],
    }
    outbox.tell(tx, "prompt", data | {"created_at_epoch": turn.at}, now=now)
    return prompt_id


def prompts_between(tx: Tx, session_id: str, *, since: int, until: int) -> tuple[Prompt, ...]:
    """The prompt in force at `since` and those after it up to `until`."""
    rows = tx.all(PROMPTS_BETWEEN, {"session_id": session_id, "since": since, "until": until})
    return tuple(
        Prompt(
            prompt_id=row["id"],
            session_id=row["session_id"],
            prompt_number=row["prompt_number"],
            client_prompt_id=row["client_prompt_id"],
            text=row["text"],
            created_at_epoch=row["created_at_epoch"],
        )
        for row in rows
    )


def prompts_by_ids(reader: Reader, ids: Sequence[int]) -> list[dict[str, Any]]:
    """Full records in no particular order; missing ids are left out."""
    rows = reader.all(PROMPTS_BY_IDS, {"ids": json.dumps(list(ids))})
    return [dict(row) for row in rows]


def newest(reader: Reader, *, project: str | None, limit: int, offset: int) -> tuple[int, list[dict[str, Any]]]:
    """(total, rows), the session with the newest event first."""
    params = {"project": project, "limit": limit, "offset": offset}
    return reader.value(COUNT, params), [dict(row) for row in reader.all(NEWEST, params)]


def newest_prompts(reader: Reader, *, project: str | None, limit: int, offset: int) -> tuple[int, list[dict[str, Any]]]:
    """(total, full records), newest first."""
    params = {"project": project, "limit": limit, "offset": offset}
    return reader.value(COUNT_PROMPTS, params), [dict(row) for row in reader.all(NEWEST_PROMPTS, params)]


def open_private_turn(tx: Tx, turn: Turn) -> int | None:
    """The turn's end (ms) when a later prompt is known already, as when this one came late from the spool."""
    end_private_turn(tx, turn)
    until: int | None = tx.value(NEXT_PROMPT_AFTER, {"session_id": turn.session_id, "at": turn.at})
    tx.run(
        OPEN_PRIVATE_TURN,
        {
            "session_id": turn.session_id,
            "client_prompt_id": turn.client_prompt_id,
            "at": turn.at,
            "until": until,
        },
    )
    return until


def drop_private_turns(tx: Tx, *, before: int, limit: int) -> int:
    """Of sessions of which nothing arrived since `before`; the number of turns. How long ago a turn was captured says
    nothing: its events may come from a spool or a transcript."""
    return tx.run(DROP_PRIVATE_TURNS, {"before": before, "limit": limit})


def end_private_turn(tx: Tx, turn: Turn) -> None:
    tx.run(END_PRIVATE_TURN, {"session_id": turn.session_id, "at": turn.at})


def from_row(row: Row) -> Session:
    return Session(
        session_id=row["session_id"],
        project=row["project"],
        platform=row["platform"],
        cwd=row["cwd"],
        started_at_epoch=row["started_at_epoch"],
    )
