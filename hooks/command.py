"""The command line that a client's settings run for each event."""

from __future__ import annotations

import os
import shlex
import sys


def hook_command(client: str) -> str:
    """Shell-quoted."""
    return shlex.join(hook_arguments(client))


def hook_arguments(client: str, *, home: str = "", start_service: bool = False) -> list[str]:
    """`home` names a data folder that is not the usual one; with `start_service` sessions start the service.

    It names the real interpreter: a version manager's shim costs more than the hook, and a virtual environment's link
    goes away with it.
    """
    interpreter = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "gapless_hook.py")
    arguments = [interpreter, "-I", "-S", script, "--client", client]
    if home:
        arguments += ["--home", home]
    return [*arguments, "--start-service"] if start_service else arguments
