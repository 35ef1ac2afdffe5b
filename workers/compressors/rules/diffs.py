"""What an editing tool call changed: for each file, the lines added and removed."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from workers.compressors.rules.payload import items, record, string
from workers.compressors.rules.turns import ToolUse

EDIT_TOOLS = ("Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch")
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")
CONFLICT_START = re.compile(r"^<{7}(?: |$)")
_CONFLICT_MARK = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)")
_LINE_LENGTH = 400
"""Characters kept of a line; longer ones are data, not code."""
_PATCH_MOVE = re.compile(r"^\*\*\* Move to: (.+)$")


@dataclass(slots=True, kw_only=True)
class FileChange:
    """All edits of one file in one turn; `path` as the client gave it. `context` are unchanged lines around them."""

    path: str
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    context: list[str] = field(default_factory=list)
    created: bool = False
    deleted: bool = False
    message_ids: list[int] = field(default_factory=list)
    tokens: int = 0

    def net(self) -> tuple[list[str], list[str]]:
        """Added and removed lines without those that only moved or were edited twice; blank lines and the marks of
        merge conflicts never count."""
        gone, came = Counter(map(str.strip, self.removed)), Counter(map(str.strip, self.added))
        both = gone & came
        return list(_without(self.added, both)), list(_without(self.removed, both))


def _without(lines: Iterable[str], spent: Counter[str]) -> Iterator[str]:
    left = Counter(spent)
    for line in lines:
        key = line.strip()
        if left[key] > 0:
            left[key] -= 1
        elif key and not _CONFLICT_MARK.match(line):
            yield line


def changes_of(uses: Iterable[ToolUse]) -> list[FileChange]:
    """The changes of successful edits, one record a file, in the order of the first edit."""
    changes: dict[str, FileChange] = {}
    for use in uses:
        if use.tool not in EDIT_TOOLS or use.error:
            continue
        for part in _parts(use):
            change = changes.setdefault(part.path, FileChange(path=part.path))
            change.added += part.added
            change.removed += part.removed
            change.context += part.context
            change.created |= part.created
            change.deleted = part.deleted
            change.tokens += use.tokens
            if use.message_id not in change.message_ids:
                change.message_ids.append(use.message_id)
    return list(changes.values())


def _parts(use: ToolUse) -> Iterable[FileChange]:
    if use.tool == "apply_patch":
        return _patch_parts(string(use.input, "input", "patch"))
    response = record(use.response)
    path = string(use.input, "file_path", "notebook_path", "path", "filePath", "absolute_path") or string(
        response, "filePath"
    )
    if not path:
        return ()
    change = FileChange(path=path)
    hunks = [record(hunk) for hunk in items(response.get("structuredPatch"))]
    if hunks:
        for hunk in hunks:
            _add_hunk(change, [line for line in items(hunk.get("lines")) if isinstance(line, str)])
    else:
        change.created = use.tool == "Write" and response.get("type", "create") == "create"
        for old, new in _replacements(use):
            _add_replacement(change, old.splitlines(), new.splitlines())
    return (change,)


def _replacements(use: ToolUse) -> Iterator[tuple[str, str]]:
    for edit in [use.input, *(record(item) for item in items(use.input.get("edits")))]:
        old = string(edit, "old_string", "oldString", "old_str")
        new = string(edit, "new_string", "newString", "new_str", "new_source", "content", "file_text")
        if old or new:
            yield old, new


def _add_hunk(change: FileChange, lines: Iterable[str]) -> None:
    for line in lines:
        mark, text = line[:1], line[1 : _LINE_LENGTH + 1]
        if mark == "+":
            change.added.append(text)
        elif mark == "-":
            change.removed.append(text)
        else:
            change.context.append(text)


def _add_replacement(change: FileChange, old: list[str], new: list[str]) -> None:
    """Without a patch, what both texts share counts as context, whatever its place."""
    shared = Counter(old) & Counter(new)
    change.context += shared
    for lines, into in ((new, change.added), (old, change.removed)):
        left = Counter(shared)
        for line in lines:
            if left[line] > 0:
                left[line] -= 1
            else:
                into.append(line[:_LINE_LENGTH])


def _patch_parts(patch: str) -> list[FileChange]:
    parts: list[FileChange] = []
    for line in patch.splitlines():
        if header := _PATCH_FILE.match(line):
            verb, path = header.groups()
            parts.append(FileChange(path=path.strip(), created=verb == "Add", deleted=verb == "Delete"))
        elif parts and (moved := _PATCH_MOVE.match(line)):
            parts.append(FileChange(path=moved.group(1).strip(), created=True))
        elif parts and not line.startswith("@@"):
            _add_hunk(parts[-1], [line])
    return parts
