"""The list of tools, kept in the data folder by the service: a client asks for it each time it starts, also when no
service runs, and to work it out loads half of Gapless."""

from pathlib import Path
from typing import Any

import orjson

from service.version import VERSION

NAME = "tools"
"""In the folder `run`."""


def written(tools: list[dict[str, Any]]) -> str:
    return orjson.dumps({"version": VERSION, "tools": tools}).decode()


def read(home: Path) -> list[dict[str, Any]] | None:
    """None when there is none of this version."""
    try:
        kept = orjson.loads((home / "run" / NAME).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("version") != VERSION:
        return None
    tools = kept.get("tools")
    return tools if isinstance(tools, list) and tools else None
