"""Records put straight into their tables: what the backfill follows, whoever wrote it."""

import json
from collections.abc import Sequence

from service.database import Tx

T0 = 1_700_000_000_000

PROJECT = "INSERT INTO projects (name, created_at_epoch) VALUES (:name, :at) ON CONFLICT DO NOTHING"
SESSION = """
INSERT INTO sessions (session_id, project, platform, started_at_epoch, last_event_at_epoch, last_seen_epoch)
VALUES ('s1', 'shop', 'test', :at, :at, :at) ON CONFLICT DO NOTHING
"""
OBSERVATION = """
INSERT INTO observations (session_id, project, type, title, narrative, facts, content_hash, created_at_epoch,
    stored_at_epoch)
VALUES ('s1', 'shop', 'change', :title, :narrative, :facts, 'x', :at, :at)
"""
EDIT = "UPDATE observations SET title = :title, narrative = :narrative, facts = :facts WHERE id = :id"
SUMMARY = """
INSERT INTO session_summaries (session_id, project, request, completed, created_at_epoch, stored_at_epoch)
VALUES ('s1', 'shop', :request, :completed, :at, :at)
"""
PROMPT = """
INSERT INTO user_prompts (event_key, session_id, project, prompt_number, text, created_at_epoch)
VALUES (:text, 's1', 'shop', 1, :text, :at)
"""


def make_parents(tx: Tx) -> None:
    for name in ("shop", "bank"):
        tx.run(PROJECT, {"name": name, "at": T0})
    tx.run(SESSION, {"at": T0})


def observation(tx: Tx, title: str, narrative: str = "", facts: Sequence[str] = ()) -> int:
    make_parents(tx)
    return tx.insert(OBSERVATION, {"title": title, "narrative": narrative, "facts": json.dumps(list(facts)), "at": T0})


def edit(tx: Tx, observation_id: int, title: str, narrative: str = "", facts: Sequence[str] = ()) -> None:
    tx.run(EDIT, {"id": observation_id, "title": title, "narrative": narrative, "facts": json.dumps(list(facts))})


def move(tx: Tx, observation_id: int, project: str) -> None:
    tx.run("UPDATE observations SET project = :project WHERE id = :id", {"id": observation_id, "project": project})


def delete(tx: Tx, observation_id: int) -> None:
    tx.run("DELETE FROM observations WHERE id = :id", {"id": observation_id})


def summary(tx: Tx, request: str, completed: str = "") -> int:
    make_parents(tx)
    return tx.insert(SUMMARY, {"request": request, "completed": completed, "at": T0})


def prompt(tx: Tx, text: str) -> int:
    make_parents(tx)
    return tx.insert(PROMPT, {"text": text, "at": T0})
