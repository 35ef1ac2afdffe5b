"""Observations and summaries: stored once, replaced by a replay, read whole."""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from service import outbox
from service.database import Reader, Row, Tx
from service.fulltext import shadow
from service.models import Batch, Message, Observation, ObservationDraft, SummaryDraft

OBSERVATION_LISTS = (
    *("facts", "concepts", "files_read", "files_modified", "tags", "keywords"),
    *("source_message_ids", "metadata"),
)
SUMMARY_LISTS = ("files_read", "files_edited", "source_message_ids")

SAME_CONTENT = """
SELECT id, source_message_ids FROM observations
WHERE content_hash = :hash AND created_at_epoch BETWEEN :at - :window AND :at + :window
ORDER BY created_at_epoch DESC, id DESC LIMIT 1
"""
REPEAT = """
UPDATE observations SET repeats = repeats + 1, created_at_epoch = max(created_at_epoch, :at),
    source_message_ids = :sources
WHERE id = :id
"""
INSERT = """
INSERT INTO observations (session_id, project, type, title, subtitle, narrative, facts, concepts, files_read,
    files_modified, search_extra, prompt_number, discovery_tokens, content_hash, source_message_ids, metadata,
    created_at_epoch, stored_at_epoch)
VALUES (:session_id, :project, :type, :title, :subtitle, :narrative, :facts, :concepts, :files_read, :files_modified,
    :search_extra, :prompt_number, :discovery_tokens, :hash, :sources, :metadata, :at, :now)
"""
INSERT_REMEMBERED = """
INSERT INTO observations (session_id, project, type, title, narrative, search_extra, content_hash, text_hash, layer,
    tags, keywords, confidence, expires_at_epoch, metadata, created_at_epoch, stored_at_epoch)
VALUES (:session_id, :project, :type, :title, :narrative, :search_extra, :hash, :text_hash, :layer,
    :tags, :keywords, :confidence, :expires_at, :metadata, :at, :now)
"""
SAME_TEXT = """
SELECT id FROM observations
WHERE project = :project AND text_hash = :text_hash AND (expires_at_epoch IS NULL OR expires_at_epoch > :now)
ORDER BY id LIMIT 1
"""
SAID_AGAIN = "UPDATE observations SET repeats = repeats + 1 WHERE id = :id"
UPDATE = """
UPDATE observations SET project = :project, type = :type, title = :title, subtitle = :subtitle,
    narrative = :narrative, facts = :facts, concepts = :concepts, layer = :layer, tags = :tags, keywords = :keywords,
    confidence = :confidence, expires_at_epoch = :expires_at_epoch, metadata = :metadata,
    search_extra = :search_extra, content_hash = :content_hash, text_hash = :text_hash
WHERE id = :id
"""
SAID = {
    "observations": "'observation/' || content_hash || '/' || created_at_epoch",
    "session_summaries": "'summary/' || session_id || '/' || created_at_epoch",
}
"""What a record says, as a key of `forgotten`: an import does not bring it back once it was removed or changed."""
KEEP_OUT = """
INSERT OR IGNORE INTO forgotten (event_key, forgotten_at_epoch)
SELECT {said}, :now FROM {table} WHERE id IN (SELECT value FROM json_each(:ids))
"""
REMOVE = "DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id, session_id"
INSERT_SUMMARY = """
INSERT INTO session_summaries (session_id, project, request, investigated, learned, completed, next_steps, files_read,
    files_edited, notes, search_extra, prompt_number, discovery_tokens, source_message_ids, created_at_epoch,
    stored_at_epoch)
VALUES (:session_id, :project, :request, :investigated, :learned, :completed, :next_steps, :files_read,
    :files_edited, :notes, :search_extra, :prompt_number, :discovery_tokens, :sources, :at, :now)
"""
MADE_BY = """
DELETE FROM {table} WHERE session_id = :session_id AND EXISTS (
    SELECT 1 FROM json_each(source_message_ids) WHERE value IN (SELECT value FROM json_each(:messages)))
RETURNING id
"""
REPLACED_OBSERVATIONS = MADE_BY.format(table="observations")
REPLACED_SUMMARIES = MADE_BY.format(table="session_summaries")
EARLIER = """
SELECT id, session_id, project, type, title, subtitle, narrative, facts, concepts, files_read, files_modified, metadata,
    created_at_epoch
FROM observations WHERE session_id = :session_id ORDER BY id DESC LIMIT :limit
"""

FULL = """
SELECT id, session_id, project, type, title, subtitle, narrative, facts, concepts, files_read, files_modified,
    layer, tags, keywords, confidence, expires_at_epoch, prompt_number, discovery_tokens, content_hash, repeats,
    source_message_ids, metadata, created_at_epoch
FROM observations
"""
BY_IDS = FULL + "WHERE id IN (SELECT value FROM json_each(:ids)) AND (:project IS NULL OR project = :project)"
EXPIRED = "SELECT id FROM observations WHERE expires_at_epoch <= :now"
UNEXPIRED = f"WHERE (:project IS NULL OR project = :project) AND id NOT IN ({EXPIRED})"
NEWEST = FULL + UNEXPIRED + " ORDER BY created_at_epoch DESC, id DESC LIMIT :limit OFFSET :offset"
COUNT = "SELECT count(*) FROM observations " + UNEXPIRED
EXPIRED_SOME = EXPIRED + " LIMIT :limit"
TO_EDIT = FULL.replace("SELECT id", "SELECT text_hash, id") + "WHERE id = :id"
FULL_SUMMARY = """
SELECT id, session_id, project, request, investigated, learned, completed, next_steps, files_read, files_edited, notes,
    prompt_number, discovery_tokens, source_message_ids, created_at_epoch
FROM session_summaries
"""
SUMMARIES_BY_IDS = FULL_SUMMARY + "WHERE id IN (SELECT value FROM json_each(:ids))"
SUMMARIES = (
    FULL_SUMMARY
    + "WHERE :project IS NULL OR project = :project ORDER BY created_at_epoch DESC, id DESC LIMIT :limit OFFSET :offset"
)
COUNT_SUMMARIES = "SELECT count(*) FROM session_summaries WHERE :project IS NULL OR project = :project"


def content_hash(session_id: str | None, title: str, narrative: str) -> str:
    """First 16 hex digits of SHA-256 over session, title and narrative joined by NUL; each NFC, white space runs as
    one space, trimmed, casefolded (semantics: Dedupe)."""
    parts = (session_id or "", title, narrative)
    joined = "\0".join(" ".join(unicodedata.normalize("NFC", part).split()).casefold() for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def store(tx: Tx, batch: Batch, draft: ObservationDraft, *, window_ms: float, now: int) -> int | None:
    """Insert the draft, or count a repeat; the new row's id, None for a repeat.

    A repeat is the same content hash within `window_ms` of a row that has it, before or after: late events come too.
    """
    at = max(m.captured_at_epoch for m in _sources(batch, draft.message_ids))
    hashed = content_hash(batch.session.session_id, draft.title, draft.narrative)
    same = tx.one(SAME_CONTENT, {"hash": hashed, "at": at, "window": window_ms})
    if same is not None:
        sources = sorted({*orjson.loads(same["source_message_ids"]), *draft.message_ids})
        tx.run(REPEAT, {"id": same["id"], "at": at, "sources": _json(sources)})
        return None
    row = {
        "session_id": batch.session.session_id,
        "project": _sources(batch, draft.message_ids)[-1].project,
        "type": draft.type,
        "title": draft.title,
        "subtitle": draft.subtitle,
        "narrative": draft.narrative,
        "facts": _lines(draft.facts),
        "concepts": _lines(draft.concepts),
        "files_read": _lines(draft.files_read),
        "files_modified": _lines(draft.files_modified),
        "search_extra": shadow(draft.title, draft.subtitle, draft.narrative, *draft.facts, *draft.concepts),
        "prompt_number": _prompt_number(batch, at),
        "discovery_tokens": draft.discovery_tokens,
        "hash": hashed,
        "sources": _json(sorted(draft.message_ids)),
        "metadata": _json(draft.metadata),
        "at": at,
        "now": now,
    }
    observation_id = tx.insert(INSERT, row)
    data = {key: row[key] for key in ("project", "session_id", "type", "title", "subtitle")}
    outbox.tell(tx, "observation", {"id": observation_id, **data, "created_at_epoch": at}, now=now)
    return observation_id


def store_summary(tx: Tx, batch: Batch, draft: SummaryDraft, *, now: int) -> int:
    sources = _sources(batch, draft.message_ids)
    at = max(m.captured_at_epoch for m in sources)
    texts = {
        name: getattr(draft, name)
        for name in ("request", "investigated", "learned", "completed", "next_steps", "notes")
    }
    row = {
        **texts,
        "session_id": batch.session.session_id,
        "project": sources[-1].project,
        "files_read": _lines(draft.files_read),
        "files_edited": _lines(draft.files_edited),
        "search_extra": shadow(*texts.values()),
        "prompt_number": _prompt_number(batch, at),
        "discovery_tokens": draft.discovery_tokens,
        "sources": _json(sorted(draft.message_ids)),
        "at": at,
        "now": now,
    }
    summary_id = tx.insert(INSERT_SUMMARY, row)
    data = {key: row[key] for key in ("project", "session_id", "request", "completed", "next_steps")}
    outbox.tell(tx, "summary", {"id": summary_id, **data, "created_at_epoch": at}, now=now)
    return summary_id


def replace(tx: Tx, session_id: str, messages: Iterable[Message], *, now: int) -> int:
    """Remove what replayed messages made before; the number of rows."""
    replayed = [m.message_id for m in messages if m.replayed]
    if not replayed:
        return 0
    params = {"session_id": session_id, "messages": _json(replayed)}
    gone = 0
    for event, sql in (("observation", REPLACED_OBSERVATIONS), ("summary", REPLACED_SUMMARIES)):
        for row in tx.all(sql, params):
            outbox.tell(tx, event, {"id": row["id"], "session_id": session_id, "deleted": True}, now=now)
            gone += 1
    return gone


def earlier(tx: Tx, session_id: str, *, limit: int) -> tuple[Observation, ...]:
    """The newest observations of a session, oldest first."""
    rows = tx.all(EARLIER, {"session_id": session_id, "limit": limit})
    return tuple(_observation(row) for row in reversed(rows))


def add_remembered(tx: Tx, row: dict[str, Any], *, now: int) -> int:
    """Insert the columns that INSERT_REMEMBERED names, and tell of them; the new id."""
    observation_id = tx.insert(INSERT_REMEMBERED, {**row, "now": now})
    data = {key: row[key] for key in ("project", "session_id", "type", "title")}
    told = {"id": observation_id, **data, "subtitle": "", "created_at_epoch": row["at"]}
    outbox.tell(tx, "observation", told, now=now)
    return observation_id


def say_again(tx: Tx, project: str, text_hash: str, *, now: int) -> int | None:
    """Count that a text was remembered once more; the id that has it, None when the project does not have it."""
    found: int | None = tx.value(SAME_TEXT, {"project": project, "text_hash": text_hash, "now": now})
    if found is not None:
        tx.run(SAID_AGAIN, {"id": found})
    return found


def to_edit(tx: Tx, observation_id: int) -> dict[str, Any] | None:
    """The full record and its `text_hash`."""
    row = tx.one(TO_EDIT, {"id": observation_id})
    return None if row is None else _record(row, OBSERVATION_LISTS)


def update(tx: Tx, record: dict[str, Any], *, text_hash: str | None, now: int) -> dict[str, Any]:
    """Write a record that was read by `to_edit` back, with the columns that are made from its texts; what it is now."""
    texts = [record["title"], record["subtitle"], record["narrative"], *record["facts"], *record["concepts"]]
    row = record | {name: _lines(record[name]) for name in ("facts", "concepts", "tags", "keywords")}
    row |= {"metadata": _json(record["metadata"]), "text_hash": text_hash}
    row["search_extra"] = search_extra(texts, record["tags"], record["keywords"])
    row["content_hash"] = content_hash(record["session_id"], record["title"], record["narrative"])
    _keep_out(tx, "observations", [record["id"]], now)
    tx.run(UPDATE, row)
    data = {key: record[key] for key in ("id", "project", "session_id", "type", "title", "subtitle")}
    outbox.tell(tx, "observation", data | {"created_at_epoch": record["created_at_epoch"], "edited": True}, now=now)
    return {**record, "content_hash": row["content_hash"]}


def search_extra(texts: Iterable[str], *labels: Iterable[str]) -> str:
    """The shadow column: words hidden in the texts, and the labels, which stand in no indexed column."""
    said = [label for some in labels for label in some]
    return " ".join(filter(None, (*said, shadow(*texts, *said))))


def remove(tx: Tx, ids: Sequence[int], *, now: int) -> int:
    """Delete observations and what was told of them; the number that there were."""
    return _removed(tx, "observation", "observations", ids, now)


def remove_summaries(tx: Tx, ids: Sequence[int], *, now: int) -> int:
    """Delete summaries and what was told of them; the number that there were."""
    return _removed(tx, "summary", "session_summaries", ids, now)


def expired(tx: Tx, *, limit: int, now: int) -> list[int]:
    """Observations whose time has passed."""
    return [row["id"] for row in tx.all(EXPIRED_SOME, {"now": now, "limit": limit})]


def by_ids(reader: Reader, ids: Sequence[int], *, project: str | None = None) -> list[dict[str, Any]]:
    """Full records in no particular order; missing ids are left out."""
    rows = reader.all(BY_IDS, {"ids": _json(ids), "project": project})
    return [_record(row, OBSERVATION_LISTS) for row in rows]


def summaries_by_ids(reader: Reader, ids: Sequence[int]) -> list[dict[str, Any]]:
    """Full records in no particular order; missing ids are left out."""
    rows = reader.all(SUMMARIES_BY_IDS, {"ids": _json(ids)})
    return [_record(row, SUMMARY_LISTS) for row in rows]


def newest(
    reader: Reader, *, project: str | None, limit: int, offset: int, now: int
) -> tuple[int, list[dict[str, Any]]]:
    """(total, full records), newest first, without those that have expired."""
    params = {"project": project, "limit": limit, "offset": offset, "now": now}
    rows = reader.all(NEWEST, params)
    return reader.value(COUNT, params), [_record(row, OBSERVATION_LISTS) for row in rows]


def newest_summaries(
    reader: Reader, *, project: str | None, limit: int, offset: int
) -> tuple[int, list[dict[str, Any]]]:
    """(total, full records), newest first."""
    params = {"project": project, "limit": limit, "offset": offset}
    rows = reader.all(SUMMARIES, params)
    return reader.value(COUNT_SUMMARIES, params), [_record(row, SUMMARY_LISTS) for row in rows]


def _keep_out(tx: Tx, table: str, ids: Sequence[int], now: int) -> None:
    tx.run(KEEP_OUT.format(table=table, said=SAID[table]), {"ids": _json(ids), "now": now})


def _removed(tx: Tx, event: str, table: str, ids: Sequence[int], now: int) -> int:
    _keep_out(tx, table, ids, now)
    rows = tx.all(REMOVE.format(table=table), {"ids": _json(ids)})
    outbox.withdraw(tx, event, [row["id"] for row in rows])
    for row in rows:
        outbox.tell(tx, event, {"id": row["id"], "session_id": row["session_id"], "deleted": True}, now=now)
    return len(rows)


def _sources(batch: Batch, message_ids: Sequence[int]) -> list[Message]:
    return [m for m in batch.messages if m.message_id in message_ids] or list(batch.messages)


def _prompt_number(batch: Batch, at: int) -> int | None:
    numbers = [prompt.prompt_number for prompt in batch.prompts if prompt.created_at_epoch <= at]
    return numbers[-1] if numbers else None


def _lines(items: Sequence[str]) -> str:
    """A JSON array of one-line strings: an escaped newline would be a word to the text index."""
    return _json([" ".join(item.split()) for item in items])


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _record(row: Row, json_columns: Sequence[str]) -> dict[str, Any]:
    record = dict(row)
    for column in json_columns:
        record[column] = orjson.loads(record[column])
    return record


def _observation(row: Row) -> Observation:
    record = _record(row, ("facts", "concepts", "files_read", "files_modified", "metadata"))
    record["observation_id"] = record.pop("id")
    for column in ("facts", "concepts", "files_read", "files_modified"):
        record[column] = tuple(record[column])
    return Observation(**record)
