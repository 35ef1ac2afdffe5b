"""Starting the service for the first hook of a session, which never waits for it."""

from __future__ import annotations

import os
import time

from hooks import installed

AGAIN_S = 30  # sessions that begin together start one service; one that could not start is tried again after this


def start_service(home: str) -> bool:
    """Start the service in a session of its own, unless a hook has just done so. False where it is not installed."""
    command = installed.command(home)
    if not command:
        return False
    if _is_mine(os.path.join(home, "run", "starting")):
        _spawn([*command, "serve"], home)
    return True


def how_to_install(home: str) -> str:
    """One line for a person who has the plugin and nothing else."""
    from shlex import quote

    folder = os.path.join("~", ".local", "share", "gapless")
    source = quote(installed.root())
    return (
        f"Gapless is not installed yet: this session waits in {os.path.join(home, 'spool')}. To install it (Python "
        f"3.11 or newer): python3 -m venv {folder} && {folder}/bin/pip install {source} && {folder}/bin/gapless up"
    )


def _is_mine(marker: str) -> bool:
    """Whether this hook is the one that starts it: who makes the marker, or finds it old."""
    os.makedirs(os.path.dirname(marker), mode=0o700, exist_ok=True)
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if 0 <= time.time() - os.stat(marker).st_mtime < AGAIN_S:
            return False
        os.utime(marker)
    return True


def _spawn(command: list[str], home: str) -> None:
    """With nothing of the client's: not its terminal, its streams, its process group or its folder."""
    import subprocess

    logs = os.path.join(home, "logs")
    os.makedirs(logs, mode=0o700, exist_ok=True)
    output = os.open(os.path.join(logs, "serve.out"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        subprocess.Popen(
            command,
            cwd=home,
            env={**os.environ, "GAPLESS_HOME": home},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
        )
    finally:
        os.close(output)
