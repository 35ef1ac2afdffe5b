"""Memories that are stated rather than captured: remembered word for word, without a model, and edited afterwards."""

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from hooks import privacy, secrets
from service import observations, projects, sessions
from service.database import Tx
from service.errors import InvalidInput, NotFound
from service.models import Layer, ObservationType
from service.projects import GLOBAL, ProjectRef
from service.shaping import clean_text, shape

TITLE_CHARS = 80
"""Of a title that is made from the text's first line (semantics: Memories)."""
PLATFORM = "api"
"""Of a session that is known only because memories name it."""
EDITABLE = (
    *("title", "subtitle", "narrative", "facts", "concepts", "type", "project", "layer", "tags", "keywords"),
    *("confidence", "expires_at_epoch", "metadata"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What is to be remembered, as it was given. No project means `global`; no layer means L1 there and L2 elsewhere;
    no `created_at_epoch` means now. Times are ms since the epoch."""

    text: str
    title: str | None = None
    project: ProjectRef | None = None
    session_id: str | None = None
    type: ObservationType = ObservationType.DISCOVERY
    layer: Layer | None = None
    tags: Sequence[str] = ()
    keywords: Sequence[str] = ()
    confidence: float = 1.0
    expires_at_epoch: int | None = None
    created_at_epoch: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A memory ready to be written: cleaned, and with the columns that are made from its text."""

    project: ProjectRef
    layer: Layer | None
    row: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """`duplicate`: the project had this text already, and `observation_id` is the one that has it."""

    observation_id: int
    duplicate: bool


def prepare(memories: Sequence[NewMemory], *, now: int) -> list[Prepared]:
    """Take private parts and secrets out of the texts and compute their columns. Not for the event loop.

    Raises `InvalidInput` with the field `text`, or `3.text` when there are several, when nothing is left of a text.
    """
    clean = cleaning([text for memory in memories for text in _texts_of(memory)])
    return [
        _prepared(memory, clean, now=now, where="" if len(memories) == 1 else f"{place}.")
        for place, memory in enumerate(memories)
    ]


def remember(tx: Tx, memory: Prepared, *, now: int) -> Remembered:
    """Store a memory, unless its project has its text already."""
    project = projects.resolve(tx, memory.project, fallback=None, now=now)
    known = observations.say_again(tx, project, memory.row["text_hash"], now=now)
    if known is not None:
        return Remembered(observation_id=known, duplicate=True)
    return Remembered(observation_id=_store(tx, memory, project, now=now), duplicate=False)


def remember_all(tx: Tx, memories: Sequence[Prepared], *, now: int) -> list[int]:
    """Store memories in their order, each of them, the same text again too; their ids."""
    named = {ref: projects.resolve(tx, ref, fallback=None, now=now) for ref in {memory.project for memory in memories}}
    return [_store(tx, memory, named[memory.project], now=now) for memory in memories]


def edit(tx: Tx, observation_id: int, changes: Mapping[str, Any], *, now: int) -> dict[str, Any]:
    """Change columns of EDITABLE (texts are cleaned, `project` is a name or key); the record as it is now.

    Raises `NotFound`, and `InvalidInput` when nothing is to be changed or a text would be empty.
    """
    if not changes:
        raise InvalidInput(f"say what to change: {', '.join(EDITABLE)}")
    record = observations.to_edit(tx, observation_id)
    if record is None:
        raise NotFound(f"there is no observation {observation_id}; search finds those that exist")
    said = record.pop("text_hash")
    record |= _cleaned_changes(changes)
    if "project" in changes:
        ref = ProjectRef(override=record["project"].strip())
        record["project"] = projects.resolve(tx, ref, fallback=None, now=now)
    return observations.update(tx, record, text_hash=said and text_hash(record["narrative"]), now=now)


def text_hash(text: str) -> str:
    """First 16 hex digits of SHA-256 over the text as `content_hash` sees it: NFC, single blanks, casefolded."""
    same = " ".join(unicodedata.normalize("NFC", text).split()).casefold()
    return hashlib.sha256(same.encode()).hexdigest()[:16]


def title_of(text: str) -> str:
    """The first line that says something, cut at 80 characters."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def labels(given: Iterable[str]) -> list[str]:
    """Tags and keywords as they are kept: lower case, single blanks, each once."""
    return list(dict.fromkeys(filter(None, (" ".join(label.split()).lower() for label in given))))


def _store(tx: Tx, memory: Prepared, project: str, *, now: int) -> int:
    layer = memory.layer or (Layer.IDENTITY if project == GLOBAL else Layer.PROJECT)
    row = memory.row | {"project": project, "layer": layer.value}
    if row["session_id"] is not None:
        sessions.know(tx, row["session_id"], project=project, platform=PLATFORM, at=row["at"], now=now)
    return observations.add_remembered(tx, row, now=now)


def _prepared(memory: NewMemory, clean: Callable[[str], str], *, now: int, where: str) -> Prepared:
    text = clean(memory.text)
    if not text.strip():
        raise InvalidInput("the text is empty, or all of it is private", field=f"{where}text")
    title = " ".join(clean(memory.title or "").split()) or title_of(text)
    tags, keywords = labels(map(clean, memory.tags)), labels(map(clean, memory.keywords))
    row = {
        "session_id": memory.session_id and clean_text(memory.session_id),
        "type": memory.type.value,
        "title": title,
        "narrative": text,
        "search_extra": observations.search_extra((title, text), tags, keywords),
        "hash": observations.content_hash(memory.session_id, title, text),
        "text_hash": text_hash(text),
        "tags": _json(tags),
        "keywords": _json(keywords),
        "confidence": memory.confidence,
        "expires_at": memory.expires_at_epoch,
        "metadata": _json(_clean_metadata(memory.metadata)),
        "at": now if memory.created_at_epoch is None else memory.created_at_epoch,
    }
    return Prepared(project=memory.project or ProjectRef(override=GLOBAL), layer=memory.layer, row=row)


def _texts_of(memory: NewMemory) -> list[str]:
    return [memory.text, memory.title or "", *memory.tags, *memory.keywords]


def _cleaned_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes with their texts cleaned."""
    clean = cleaning([text for value in changes.values() for text in _texts(value)])
    cleaned: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "metadata":
            cleaned[name] = _clean_metadata(value)
        elif name in ("tags", "keywords"):
            cleaned[name] = labels(map(clean, value))
        elif isinstance(value, str):
            cleaned[name] = clean(value)
        else:
            cleaned[name] = [clean(text) for text in value] if isinstance(value, list | tuple) else value
    for name in ("title", "project"):
        if not cleaned.get(name, name).strip():
            raise InvalidInput(f"a {name} cannot be empty, nor all of it private", field=name)
    return cleaned


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return list(value) if isinstance(value, list | tuple) else []


def cleaning(texts: Sequence[str]) -> Callable[[str], str]:
    """What takes private parts and secrets out of these texts. They are searched for secrets once, together: there are
    none in nearly all of them."""
    whole = "\n".join(map(_public, texts))
    if secrets.holds_secret(whole):
        return lambda text: secrets.redact_text(_public(text))
    return _public


def _public(text: str) -> str:
    text = clean_text(text)
    return privacy.strip_text(text)[0] if "<" in text or "\\u003" in text else text


def _clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return shape(dict(metadata)).payload if metadata else {}


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
