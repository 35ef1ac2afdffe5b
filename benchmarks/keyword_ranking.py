"""The keyword ranking that the quality benchmark measures, over observations, summaries and prompts in FTS5."""

import math
import re
import sqlite3
from collections import defaultdict

from service.searching.words import STOP_WORDS

SCHEMA = """
CREATE TABLE sessions (session_id TEXT PRIMARY KEY, started INTEGER);
CREATE TABLE observations (id INTEGER PRIMARY KEY, session_id TEXT, at INTEGER);
CREATE TABLE summaries (id INTEGER PRIMARY KEY, session_id TEXT, at INTEGER);
CREATE TABLE prompts (id INTEGER PRIMARY KEY, session_id TEXT, at INTEGER);
CREATE VIRTUAL TABLE observations_fts USING fts5(
    title, subtitle, narrative, facts, concepts, files_modified, files_read, extra,
    tokenize='porter unicode61');
CREATE VIRTUAL TABLE summaries_fts USING fts5(
    request, investigated, learned, completed, next_steps, notes, files_edited, files_read, extra,
    tokenize='porter unicode61');
CREATE VIRTUAL TABLE prompts_fts USING fts5(
    text, extra,
    tokenize='porter unicode61');
"""
WORD = re.compile(r"\w+")
JOINED = re.compile(r"\w+(?:[./#-]\w+)+")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+")
HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
WEIGHTS = {
    "observations": (3.0, 0.5, 1.0, 1.0, 0.5, 1.0, 0.2, 0.5),
    "summaries": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.2, 0.5),
    "prompts": (1.0, 0.5),
}
CANDIDATES = 300
SESSION_SHARE = 1.0
SESSION_HITS = 10
"""A session's own score is the harmonic sum of its best so many hits."""
FLOOR, FADE_DAYS = 0.8, 60.0
"""Age, counted from the newest candidate, lowers a score by 20 % at most."""
MAX_TERMS = 64


def humps(word: str) -> list[str]:
    """The words inside a compound identifier: `getUserById` and `get_user_by_id` both give get user by id."""
    return [part for piece in word.split("_") for part in HUMP.findall(piece)]


def shadow(text: str) -> str:
    """The words inside the text's compound identifiers, for a column of the index that is not stored text."""
    parts: list[str] = []
    for word in WORD.findall(text):
        pieces = humps(word)
        if len(pieces) > 1:
            parts += pieces
    return " ".join(parts)


def terms_of(query: str) -> list[str]:
    """The query's terms, each a word or a phrase of words joined by single spaces."""
    terms: dict[str, None] = {}
    for joined in JOINED.findall(query):
        words = [word.lower() for word in WORD.findall(joined)]
        terms[" ".join(words)] = None
        if "/" in joined:
            terms[" ".join(words[-2:])] = None
    rest = PATH.sub(" ", query)
    for word in WORD.findall(rest):
        if word.lower() in STOP_WORDS:
            continue
        terms[word.lower()] = None
        pieces = humps(word)
        if len(pieces) > 1:
            terms.update(
                dict.fromkeys(piece.lower() for piece in pieces if piece.lower() not in STOP_WORDS and len(piece) > 1)
            )
    return list(terms)[:MAX_TERMS]


class Index:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def hits(self, query: str, *, before: int | None, without: str | None) -> list[tuple[float, str, str, int]]:
        """Candidates as (bm25, kind, session, time), the best first."""
        match = " OR ".join(f'"{term}"' for term in terms_of(query))
        if not match:
            return []
        found = []
        for kind, weights in WEIGHTS.items():
            sql = f"""SELECT -bm25({kind}_fts, {",".join(map(str, weights))}) AS score, session_id, at
                FROM {kind}_fts JOIN {kind} ON {kind}.id = {kind}_fts.rowid JOIN sessions USING (session_id)
                WHERE {kind}_fts MATCH ? AND (? IS NULL OR started < ?) AND session_id IS NOT ?
                ORDER BY score DESC LIMIT {CANDIDATES}"""
            found += [
                (score, kind, session, at)
                for score, session, at in self.db.execute(sql, (match, before, before, without))
            ]
        return sorted(found, reverse=True)

    def sessions(self, query: str, *, before: int | None = None, without: str | None = None) -> list[str]:
        """Sessions in the order of their first hit."""
        hits = self.hits(query, before=before, without=without)
        newest = max((at for *_, at in hits), default=0)
        scored = sorted(((score * faded(newest - at), session) for score, _, session, at in hits), reverse=True)
        of_session: dict[str, list[float]] = defaultdict(list)
        for score, session in scored:
            of_session[session].append(score)
        share = {
            session: sum(score / place for place, score in enumerate(scores[:SESSION_HITS], 1))
            for session, scores in of_session.items()
        }
        ranked = sorted(((score + SESSION_SHARE * share[session], session) for score, session in scored), reverse=True)
        return list(dict.fromkeys(session for _, session in ranked))


def faded(age_ms: int) -> float:
    return FLOOR + (1 - FLOOR) * math.exp(-age_ms / (FADE_DAYS * 86_400_000))
