"""A short Claude Code session about an invented project, and playing it through the real hooks."""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from hooks.command import hook_command

PROJECT = "boathouse"
QUESTION = "why could a slot be booked twice"
"""A search that the session answers."""
FOLDER_MARK = "{cwd}"
HOOK_WITHIN_S = 10.0


class HookFailed(Exception):
    """A hook did not exit 0, which it always should."""


def payloads(cwd: Path) -> Iterator[bytes]:
    """The session's hook payloads in order, as they would come from a repository in `cwd`."""
    folder = json.dumps(str(cwd))[1:-1]
    for line in files(__name__).joinpath("session.jsonl").read_text(encoding="utf-8").splitlines():
        yield line.replace(FOLDER_MARK, folder).encode()


def play(cwd: Path, environment: Mapping[str, str]) -> int:
    """Hand every payload to a hook process of its own, as the client does; the number of them. Raises `HookFailed`.

    `environment` says with GAPLESS_HOME which installation the hooks belong to. The repository in `cwd` is made.
    """
    make_repository(cwd)
    command = shlex.split(hook_command("claude-code"))
    played = 0
    for payload in payloads(cwd):
        hook = subprocess.run(
            command, input=payload, env=environment, cwd=cwd, capture_output=True, timeout=HOOK_WITHIN_S, check=False
        )
        if hook.returncode or hook.stderr:
            raise HookFailed(hook.stderr.decode(errors="replace") or f"a hook ended with {hook.returncode}")
        played += 1
    return played


def make_repository(folder: Path) -> None:
    """As much of one as tells a hook which project it is in."""
    git = folder / ".git"
    git.mkdir(parents=True, exist_ok=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
