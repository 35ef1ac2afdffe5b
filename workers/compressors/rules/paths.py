"""File names as they are stored: relative to the session's folder when they are inside it."""

import posixpath
import re

_WINDOWS = re.compile(r"^[A-Za-z]:\\|\\\\")
_PLANS = re.compile(r"/\.(?:claude|gemini|codex|cursor)/(?:.*/)?plans?/")


def relative(path: str, root: str) -> str:
    """`path` with forward slashes, relative to `root` if it lies inside, else as it came."""
    clean = path.strip()
    if _WINDOWS.search(clean):
        clean, root = clean.replace("\\", "/"), root.replace("\\", "/")
    clean = posixpath.normpath(clean) if clean else ""
    folder = posixpath.normpath(root) if root else ""
    if folder not in {"", "/", "."} and clean.startswith(folder + "/"):
        return clean[len(folder) + 1 :]
    return clean


def is_plan(path: str) -> bool:
    """Whether the file is a client's own plan, kept outside the project."""
    return _PLANS.search(path) is not None
