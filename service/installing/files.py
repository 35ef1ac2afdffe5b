"""Settings files of clients: read, compared, and replaced whole, with their mode and behind their links."""

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from service import private_files
from service.errors import InvalidInput
from service.installing.program import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What a file holds and what it shall hold; "" means that there is no file."""

    path: Path
    before: str
    after: str

    @property
    def changes(self) -> bool:
        return self.after != self.before

    def diff(self) -> str:
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        compared = difflib.unified_diff(before, after, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in compared)


def planned(path: Path, change: Change) -> Edit:
    """Raises `InvalidInput` that names the file when it is not what its client writes."""
    before = read(path)
    try:
        return Edit(path=path, before=before, after=change(before))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def apply(edits: Iterable[Edit]) -> list[Path]:
    """Make the changes; the files that were changed."""
    changed = []
    for edit in edits:
        if edit.changes:
            _write(edit)
            changed.append(edit.path)
    return changed


def read(path: Path) -> str:
    """The file's text, "" where there is none. Raises `InvalidInput` when it is no text."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text; correct it first, nothing was changed") from None


def _write(edit: Edit) -> None:
    path = edit.path.resolve()
    if not edit.after:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o7777 if path.exists() else private_files.PRIVATE_FILE
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private_files.PRIVATE_FILE), "wb") as file:
            file.write(edit.after.encode())
            file.flush()
            os.fsync(file.fileno())
        new.chmod(mode)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
