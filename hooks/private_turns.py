"""Which turns of a session are private, for hooks that must spool: a small file a session, without any text.

Its lines are prompt ids of private turns, `*` for a private prompt that has no id, and `.` for a prompt that is not
private. Without ids a turn lasts until the next prompt.
"""

from __future__ import annotations

import os
import time

KEPT_S = 7 * 86_400  # events of a turn do not come later
NO_ID = "*"
OPEN_AGAIN = "."


def note_prompt(home: str, session_id: str, prompt_id: str, *, private: bool) -> None:
    """Remember what the session's newest prompt is. Raises OSError."""
    path = _path(home, session_id)
    if private:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        _forget_old(os.path.dirname(path))
        _append(path, prompt_id or NO_ID)
    elif os.path.exists(path):
        _append(path, OPEN_AGAIN)


def covers(home: str, session_id: str, prompt_id: str) -> bool:
    """Whether an event belongs to a private turn."""
    try:
        with open(_path(home, session_id), encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
    except OSError:
        return False
    if not prompt_id:
        return lines[-1:] != [OPEN_AGAIN]
    return prompt_id in lines or lines[-1:] == [NO_ID]


def _append(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        os.write(descriptor, (" ".join(line.split()) + "\n").encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def _forget_old(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if time.time() - os.stat(path).st_mtime > KEPT_S:
            os.unlink(path)


def _path(home: str, session_id: str) -> str:
    name = session_id.encode("utf-8", "surrogateescape").hex()[:200]  # nothing that means something in a path
    return os.path.join(home, "run", "private", name)
