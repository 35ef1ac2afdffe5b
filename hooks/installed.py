"""Where Gapless itself is installed, for hooks and launchers that start it: they run on any Python, it does not."""

from __future__ import annotations

import os

RECORD = os.path.join("run", "python")  # in the data folder; written by the service and by `gapless install`


def command(home: str) -> list[str]:
    """The command line of `gapless`, to which arguments can be added; empty where it is not installed.

    The interpreter that last served the data folder, else the one of this checkout, else what PATH has.
    """
    for interpreter in (_read(os.path.join(home, RECORD)), *_beside()):
        if interpreter and os.access(interpreter, os.X_OK):
            return [interpreter, "-I", "-m", "service.cli"]
    for folder in os.get_exec_path():
        program = os.path.join(folder, "gapless")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return [program]
    return []


def root() -> str:
    """The folder that holds this installation's `hooks/`: a checkout, site-packages, or the plugin's own copy."""
    return os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def _beside() -> list[str]:
    return [os.path.join(root(), ".venv", *place) for place in (("bin", "python"), ("Scripts", "python.exe"))]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
