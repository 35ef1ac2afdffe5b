"""Settings of clients that read JSON as the standard has it, and would reject a file with comments."""

from pathlib import Path

from service.installing import json_text
from service.installing.program import Change, SettingsFile


def settings_file(path: Path, *, install: Change, uninstall: Change) -> SettingsFile:
    return SettingsFile(path=path, install=_refusing_comments(install), uninstall=_refusing_comments(uninstall))


def _refusing_comments(change: Change) -> Change:
    def changed(text: str) -> str:
        json_text.refuse_comments(text)
        return change(text)

    return changed
