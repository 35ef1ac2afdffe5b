"""Edits as observations: one a file and turn, with the names and sentences that changed."""

import posixpath
from collections.abc import Collection, Iterable, Iterator

from service.models import ObservationDraft, ObservationType
from workers.compressors.rules import code
from workers.compressors.rules.diffs import FileChange
from workers.compressors.rules.paths import relative
from workers.compressors.rules.text import clip, one_line, plain, take

TITLE_LIMIT = 100
_NARRATIVE_LIMIT = 400
_FACT_LIMIT = 130
_FACTS_LIMIT = 700
_IDENTIFIERS = 10
_CONCEPT_BY_PATH = (
    ("test", "tests"),
    (".github/", "ci"),
    ("docs/", "docs"),
    (".md", "docs"),
    ("go.mod", "dependencies"),
    ("package.json", "dependencies"),
    ("pyproject.toml", "dependencies"),
    (".toml", "configuration"),
    (".yml", "configuration"),
    (".yaml", "configuration"),
    ("settings", "configuration"),
)


def edit_observation(
    change: FileChange, root: str, *, mended: Collection[str], kind: ObservationType | None
) -> ObservationDraft | None:
    """What one turn changed in one file. `mended` are the paths whose edits made a failing test pass; `kind` is what
    the turn's commit calls its edits."""
    added, removed = change.net()
    if not (added or removed or change.created or change.deleted):
        return None
    path = relative(change.path, root)
    defined, dropped = code.definitions(added), code.definitions(removed)
    kept = set(defined) & set(dropped)
    new = tuple(name for name in defined if name not in kept)
    gone = tuple(name for name in dropped if name not in kept)
    touched = tuple(kept) or code.definitions(change.context)
    return ObservationDraft(
        type=_type_of(change, new, gone, mended=path in mended, kind=kind),
        title=_title(change, path, new, gone, touched, added),
        subtitle=f"+{len(added)} -{len(removed)} lines",
        narrative=_narrative(added, path),
        facts=_facts(added, removed, gone, path),
        concepts=concepts_of(path),
        files_modified=(path,),
        message_ids=tuple(change.message_ids),
        discovery_tokens=change.tokens,
    )


def _type_of(
    change: FileChange, new: tuple[str, ...], gone: tuple[str, ...], *, mended: bool, kind: ObservationType | None
) -> ObservationType:
    if mended and not change.created:
        return ObservationType.BUGFIX
    if kind:
        return kind
    if change.created or (new and not gone):
        return ObservationType.FEATURE
    if new and gone and abs(len(new) - len(gone)) <= 1:
        return ObservationType.REFACTOR
    return ObservationType.CHANGE


def _title(
    change: FileChange,
    path: str,
    new: tuple[str, ...],
    gone: tuple[str, ...],
    touched: tuple[str, ...],
    added: list[str],
) -> str:
    name = posixpath.basename(path)
    if change.deleted:
        return clip(f"Delete {path}", TITLE_LIMIT)
    if change.created:
        return clip(f"New {name}: {', '.join(new[:4])}" if new else f"New file {path}", TITLE_LIMIT)
    parts = []
    if any(line.startswith("<<<<<<<") for line in change.removed):
        parts.append("resolve merge conflict")
    if new:
        parts.append("add " + _some(new))
    if gone:
        parts.append("remove " + _some(gone))
    if not parts and touched:
        parts.append("change " + _some(touched))
    if not parts and (head := next(_headings_or_lines(added, path), "")):
        parts.append(head)
    return clip(f"{name}: {'; '.join(parts) or 'remove lines'}", TITLE_LIMIT)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _headings_or_lines(added: list[str], path: str) -> Iterator[str]:
    if code.is_prose(path):
        yield from (plain(heading) for heading in code.headings(added))
    yield from (plain(line) for line in added)


def _narrative(added: list[str], path: str) -> str:
    prose = map(plain, added) if code.is_prose(path) else code.comments(added, path)
    return " ".join(
        take((text for text in prose if text.count(" ") >= 3), _NARRATIVE_LIMIT, line_limit=_NARRATIVE_LIMIT)
    )


def _facts(added: list[str], removed: list[str], gone: tuple[str, ...], path: str) -> tuple[str, ...]:
    if code.is_prose(path):
        return take((plain(heading) for heading in code.headings(added)), _FACTS_LIMIT, line_limit=_FACT_LIMIT)
    said = take(_statements(added), _FACTS_LIMIT, line_limit=_FACT_LIMIT)
    if not said:
        said = take(map(one_line, added or removed), _FACTS_LIMIT // 3, line_limit=_FACT_LIMIT)
    shown = " ".join(said)
    names = [name for name in dict.fromkeys(code.identifiers(added)) if name not in shown][:_IDENTIFIERS]
    return said + ((f"uses {', '.join(names)}",) if names else ())


def _statements(added: list[str]) -> Iterator[str]:
    yield from code.signatures(added)
    yield from code.messages(added)


def concepts_of(path: str) -> tuple[str, ...]:
    """What kind of file it is, and the folder it lives in."""
    folder = posixpath.basename(posixpath.dirname(path)).lower()
    kinds = [concept for mark, concept in _CONCEPT_BY_PATH if mark in path.lower()]
    return tuple(dict.fromkeys([*kinds[:2], *([folder] if folder and not folder.startswith(".") else [])]))


def edited_paths(changes: Iterable[FileChange], root: str) -> tuple[str, ...]:
    return tuple(relative(change.path, root) for change in changes)
