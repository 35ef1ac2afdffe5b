"""Edits as observations: one a file and turn, with the names and sentences that changed."""

import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from service.models import ObservationDraft, ObservationType
from workers.compressors.rules import code
from workers.compressors.rules.diffs import CONFLICT_START, FileChange
from workers.compressors.rules.paths import relative
from workers.compressors.rules.text import clip, one_line, plain, take

TITLE_LIMIT = 100
_NARRATIVE_LIMIT = 700
_FACT_LIMIT = 130
_FACTS_LIMIT = 1200
_BARE_LIMIT = 230
"""For the first lines of a change that defines and says nothing."""
_IDENTIFIERS = 20
_NAMES_IN_TITLE = 3
_WORDS_OF_PROSE = 4
_CONCEPT_BY_PATH = (
    ("test", "tests"),
    (".github/", "ci"),
    ("docs/", "docs"),
    (".md", "docs"),
    ("go.mod", "dependencies"),
    ("package.json", "dependencies"),
    ("requirements", "dependencies"),
    ("cargo.toml", "dependencies"),
    ("pyproject.toml", "dependencies"),
    (".toml", "configuration"),
    (".yml", "configuration"),
    (".yaml", "configuration"),
    ("settings", "configuration"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delta:
    """A file's net change: its lines, and the names defined only in the new, only in the old, or in both."""

    added: list[str]
    removed: list[str]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    touched: tuple[str, ...]


def edit_observation(
    change: FileChange, folders: tuple[str, ...], *, mended: Collection[str], kind: ObservationType | None
) -> ObservationDraft:
    """What one turn changed in one file. `mended` are the paths whose edits made a failing test pass; `kind` is what
    the turn's commits call its edits."""
    path = relative(change.path, folders)
    delta = _delta(change)
    return ObservationDraft(
        type=_type_of(change, delta, mended=path in mended, kind=kind),
        title=_title(change, path, delta),
        subtitle=f"+{len(delta.added)} -{len(delta.removed)} lines",
        narrative=_narrative(delta.added, path),
        facts=_facts(delta, path),
        concepts=_concepts_of(path),
        files_modified=(path,),
        message_ids=tuple(change.message_ids),
        discovery_tokens=change.tokens,
    )


def edited_paths(changes: Iterable[FileChange], folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(relative(change.path, folders) for change in changes)


def _delta(change: FileChange) -> _Delta:
    added, removed = change.net()
    came, went = code.definitions(added), code.definitions(removed)
    kept = tuple(name for name in came if name in went)
    return _Delta(
        added=added,
        removed=removed,
        new=tuple(name for name in came if name not in kept),
        gone=tuple(name for name in went if name not in kept),
        touched=kept or code.definitions(change.context),
    )


def _type_of(change: FileChange, delta: _Delta, *, mended: bool, kind: ObservationType | None) -> ObservationType:
    if mended and not change.created:
        return ObservationType.BUGFIX
    if kind:
        return kind
    if change.created or (delta.new and not delta.gone):
        return ObservationType.FEATURE
    if delta.new and len(delta.new) == len(delta.gone):
        return ObservationType.REFACTOR
    return ObservationType.CHANGE


def _title(change: FileChange, path: str, delta: _Delta) -> str:
    name = posixpath.basename(path)
    if change.deleted:
        return clip(f"Delete {path}", TITLE_LIMIT)
    if change.created:
        return clip(f"New {name}: {_some(delta.new)}" if delta.new else f"New file {path}", TITLE_LIMIT)
    parts = [
        *(["resolve merge conflict"] if any(map(CONFLICT_START.match, change.removed)) else []),
        *([f"add {_some(delta.new)}"] if delta.new else []),
        *([f"remove {_some(delta.gone)}"] if delta.gone else []),
    ]
    if not parts and delta.touched:
        parts = [f"change {_some(delta.touched)}"]
    if not parts:
        parts = [next(_telling(delta.added, path), "remove lines" if delta.removed else "no lasting change")]
    return clip(f"{name}: {'; '.join(parts)}", TITLE_LIMIT)


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES_IN_TITLE
    return ", ".join(names[:_NAMES_IN_TITLE]) + (f" and {more} more" if more > 0 else "")


def _telling(added: list[str], path: str) -> Iterator[str]:
    """Lines fit for a title: a heading of a text; of code a comment, a message, else a line with a word in it."""
    if code.is_prose(path):
        yield from map(plain, code.headings(added))
    else:
        yield from code.comments(added, path)
        yield from code.messages(added)
    yield from (text for line in added if any(map(str.isalpha, text := plain(line))))


def _narrative(added: list[str], path: str) -> str:
    """The sentences that the change brought: of a text itself, of code its comments."""
    prose = map(plain, added) if code.is_prose(path) else code.comments(added, path)
    sentences = (text for text in prose if text.count(" ") + 1 >= _WORDS_OF_PROSE)
    return " ".join(take(sentences, _NARRATIVE_LIMIT, line_limit=_NARRATIVE_LIMIT))


def _facts(delta: _Delta, path: str) -> tuple[str, ...]:
    """Headings of a text; of code the signatures, what the program says, and the names of the project it uses."""
    if code.is_prose(path):
        return take(map(plain, code.headings(delta.added)), _FACTS_LIMIT, line_limit=_FACT_LIMIT)
    said = take(_statements(delta.added), _FACTS_LIMIT, line_limit=_FACT_LIMIT)
    if not said:
        bare = (one_line(line) for line in delta.added or delta.removed if not code.is_comment(line, path))
        said = take(bare, _BARE_LIMIT, line_limit=_FACT_LIMIT)
    shown = " ".join(said)
    names = [name for name in dict.fromkeys(code.identifiers(delta.added)) if name not in shown][:_IDENTIFIERS]
    return (*said, f"uses {', '.join(names)}") if names else said


def _statements(added: list[str]) -> Iterator[str]:
    yield from code.signatures(added)
    yield from code.messages(added)


def _concepts_of(path: str) -> tuple[str, ...]:
    """What kind of file it is, and the folder it lives in."""
    folder = posixpath.basename(posixpath.dirname(path)).lower()
    kinds = [concept for mark, concept in _CONCEPT_BY_PATH if mark in path.lower()]
    return tuple(dict.fromkeys([*kinds[:2], *([folder] if folder and not folder.startswith(".") else [])]))
