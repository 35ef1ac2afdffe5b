"""Files of the data folder: readable by their owner alone, and whole or not there."""

import os
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def write(path: Path, text: str) -> None:
    """Replace the file, so that a reader or a crash never meets half of it."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def make_folder(path: Path) -> Path:
    path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    return path
