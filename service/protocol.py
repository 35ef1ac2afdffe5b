"""Machine turns and our own traces: what looks like input but is no one's words."""

import re
from pathlib import PurePath
from typing import Any

CHECK_LIMIT_BYTES = 256 * 1024
"""A longer prompt is not checked: someone pasted it (mission A6)."""
PROTOCOL_BLOCK = re.compile(
    r"\s*<(task-notification|local-command-stdout|local-command-stderr|local-command-caveat|bash-input|bash-stdout|bash-stderr"
    r"|command-message|command-name|command-contents|user-prompt-submit-hook|teammate-message|session-start-hook|tick"
    r"|ide_opened_file|ide_selection)\b[^>]*>"
)
OUR_TOOLS = re.compile(r"mcp__(?:plugin_)?gapless_")
OUR_MARKER = "gapless_internal"


def is_protocol(prompt: str) -> bool:
    """Whether blocks of the client's own protocol fill the whole prompt."""
    if "<" not in prompt or len(prompt.encode("utf-8", "replace")) > CHECK_LIMIT_BYTES:
        return False
    position = 0
    while position < len(prompt) and not prompt[position:].isspace():
        opening = PROTOCOL_BLOCK.match(prompt, position)
        if opening is None:
            return False
        end = prompt.find(f"</{opening[1]}>", opening.end())
        if end < 0:
            return False
        position = end + len(opening[1]) + 3
    return position > 0


def is_ours(payload: dict[str, Any], own_folder: str) -> bool:
    """Whether the event was made by Gapless itself: marked so, inside its data folder, or a call of its own tools."""
    cwd, tool_name = payload.get("cwd"), payload.get("tool_name")
    return (
        payload.get(OUR_MARKER) is True
        or (isinstance(cwd, str) and cwd.startswith(own_folder) and PurePath(cwd).is_relative_to(own_folder))
        or (isinstance(tool_name, str) and OUR_TOOLS.match(tool_name) is not None)
    )
