"""Which tool events say nothing worth compressing: bookkeeping, bare listings, and reading the same thing again."""

import re
from typing import Any

LISTING_TOOLS = frozenset({"LS"})
LISTING_COMMANDS = frozenset({"ls", "pwd", "cd", "clear", "whoami", "date", "true", "echo", "history", "which", "tree"})
QUIET_GIT = frozenset({"status", "branch", "remote", "stash list", "fetch"})
LONGEST_LISTING = 200
"""Characters; a longer command is more than a listing."""
SEPARATORS = re.compile(r"\s*(?:&&|;|\|\||\n)\s*")
REDIRECTS = re.compile(r"[|><`]|\$\(")


def is_bookkeeping(tool_name: str, tool_input: dict[str, Any], skip_tools: frozenset[str]) -> bool:
    """A tool of the skip list, or a shell command made of listings only."""
    if tool_name in skip_tools or tool_name in LISTING_TOOLS:
        return True
    command = tool_input.get("command")
    return tool_name == "Bash" and isinstance(command, str) and _lists_only(command)


def file_read(tool_name: str | None, tool_input: dict[str, Any]) -> str | None:
    """The file that a Read read; None for other tools. Reading it again, whatever the range, is noise."""
    path = tool_input.get("file_path")
    return path if tool_name == "Read" and isinstance(path, str) else None


def _lists_only(command: str) -> bool:
    return (
        len(command) <= LONGEST_LISTING
        and not REDIRECTS.search(command)
        and all(map(_is_listing, SEPARATORS.split(command.strip())))
    )


def _is_listing(part: str) -> bool:
    words = part.split()
    if not words:
        return True
    if words[0] == "git" and len(words) > 1:
        rest = [word for word in words[1:] if not word.startswith("-")]
        return " ".join(rest[:2]) in QUIET_GIT or (len(rest) == 1 and rest[0] in QUIET_GIT)
    return words[0] in LISTING_COMMANDS
