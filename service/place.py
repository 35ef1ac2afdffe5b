"""Where we are: the data folder, and the project of whoever started this process. Loads nothing, as settings do."""

import os
from collections.abc import Mapping
from pathlib import Path

from service.errors import NotFound


def home_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The data folder: GAPLESS_HOME, else `~/.gapless`."""
    environment = os.environ if environment is None else environment  # noqa: TID251 - says where we are, no setting
    return Path(environment.get("GAPLESS_HOME") or "~/.gapless").expanduser().absolute()


def caller_place(environment: Mapping[str, str] | None = None) -> tuple[str | None, str]:
    """The project that GAPLESS_PROJECT names, if it does, and the folder that the caller works in: the one that its
    client tells (CLAUDE_PROJECT_DIR), else the current one. Raises `NotFound` when that is gone."""
    environment = os.environ if environment is None else environment  # noqa: TID251 - likewise
    try:
        folder = environment.get("CLAUDE_PROJECT_DIR") or os.path.realpath(".")
    except FileNotFoundError:
        raise NotFound("the folder that this was started in is gone; start it in another") from None
    return environment.get("GAPLESS_PROJECT") or None, folder
