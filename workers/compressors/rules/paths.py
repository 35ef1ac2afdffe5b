"""File names as they are stored: relative to a folder of the session when they are inside one."""

import posixpath
import re

_WINDOWS = re.compile(r"^[A-Za-z]:\\|\\\\")


def folders_of(*candidates: str) -> tuple[str, ...]:
    """The folders that a session worked in, the outermost first, so that names do not depend on a `cd`."""
    clean = {posixpath.normpath(_slashes(folder)) for folder in candidates if folder.strip()}
    return tuple(sorted(clean - {"/", "."}, key=lambda folder: (len(folder), folder)))


def relative(path: str, folders: tuple[str, ...]) -> str:
    """`path` with forward slashes, relative to the first of `folders` (see `folders_of`) that holds it, else whole."""
    if not path.strip():
        return ""
    clean = posixpath.normpath(_slashes(path.strip()))
    folder = next((folder for folder in folders if clean.startswith(folder + "/")), "")
    return clean[len(folder) :].lstrip("/") if folder else clean


def _slashes(path: str) -> str:
    return path.replace("\\", "/") if _WINDOWS.search(path) else path
