"""The command line that a client's settings run for each event."""

from __future__ import annotations

import os
import shlex
import sys


def hook_command(client: str) -> str:
    """Shell-quoted.

    It names the real interpreter: a version manager's shim costs more than the hook, and a virtual environment's link
    goes away with it.
    """
    interpreter = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "gapless_hook.py")
    return shlex.join([interpreter, "-I", "-S", script, "--client", client])
