"""Writing settings.toml: one line a setting is replaced, everything else in the file stays as a person wrote it."""

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service import private_files
from service.errors import SettingsError
from service.settings import Configuration, known_name, load, read_file, validated


def change(configuration: Configuration, changes: Mapping[str, Any]) -> set[str]:
    """Write new values by name, None for the default; the upper-case names changed.

    Raises `SettingsError`, and writes nothing, when a name is unknown or a value unusable.
    """
    fields = {known_name(name): value for name, value in changes.items()}
    path = configuration.home / "settings.toml"
    wanted = {name: value for name, value in (read_file(path) | fields).items() if value is not None}
    settings = validated(wanted, dict.fromkeys(wanted, "this change")).model_dump()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for name, value in fields.items():
        text = _with_line(text, name, None if value is None else f"{name.upper()} = {_toml(settings[name])}")
    _check(text, {name: settings[name] for name in wanted}, path)
    private_files.write(path, text)
    return {name.upper() for name in fields}


def read_again(configuration: Configuration) -> Configuration:
    """Every source once more; flags stay as they were given."""
    settings = configuration.settings.model_dump()
    flags = {name: settings[name] for name, source in configuration.sources.items() if source == "flag"}
    return load(home=configuration.home, flags=flags)


def _with_line(text: str, name: str, line: str | None) -> str:
    kept = [old for old in text.splitlines() if not re.match(rf'\s*"?(gapless_)?{name}"?\s*=', old, re.IGNORECASE)]
    return "".join(f"{each}\n" for each in (kept if line is None else [*kept, line]))


def _toml(value: object) -> str:
    if isinstance(value, str):  # a JSON string is a TOML string, but for this character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _check(text: str, wanted: Mapping[str, Any], path: Path) -> None:
    """What was written must read back as meant: a value over several lines, for one, is beyond `_with_line`."""
    with contextlib.suppress(tomllib.TOMLDecodeError, SettingsError):
        read = {known_name(name): value for name, value in tomllib.loads(text).items()}
        if read.keys() == wanted.keys() and validated(read, {}).model_dump(include=set(wanted)) == dict(wanted):
            return
    raise SettingsError(f"{path} is written in a way that can't be changed from here; edit it by hand")
