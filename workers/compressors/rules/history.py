"""Commits, pull requests, new dependencies and moved files: what shell commands say was done."""

import re
from collections.abc import Callable, Iterator

from service.models import ObservationDraft, ObservationType
from workers.compressors.rules.commands import (
    Work,
    commit_words,
    committed,
    pull_request_words,
    works_of,
)
from workers.compressors.rules.edits import TITLE_LIMIT
from workers.compressors.rules.payload import string
from workers.compressors.rules.text import clip, essence, one_line, prose_lines, take
from workers.compressors.rules.turns import ToolUse, Turn

COMMIT = "commit"
_BODY_LIMIT = 700
_SENTENCES_AS_TEXT = 3
"""A commit's body of more lines is a list: facts instead of a narrative."""
_WRAP = re.compile(r"\n[ \t]*(?=[a-z(`])")
"""Where a sentence goes on in the next line."""
_TYPE_BY_VERB = (
    (
        ObservationType.BUGFIX,
        re.compile(r"(?:fix(?:e[sd])?|bug|hotfix|correct|prevent|resolve|repair|revert)\b", re.IGNORECASE),
    ),
    (
        ObservationType.REFACTOR,
        re.compile(
            r"(?:refactor|rename|move|extract|simplif|clean|dedup|consolidat|inline|reorgani[sz]|split|restructur)",
            re.IGNORECASE,
        ),
    ),
    (
        ObservationType.FEATURE,
        re.compile(r"(?:feat|add|implement|introduce|support|allow|create|new)\b", re.IGNORECASE),
    ),
)
_ADDED_PACKAGES = re.compile(
    r"(?:go\s+get|pip3?\s+install|uv\s+add|poetry\s+add|pdm\s+add|cargo\s+(?:add|install)|npm\s+(?:install|i|add)|pnpm\s+(?:install|i|add)|yarn\s+add"
    r"|bun\s+add|gem\s+install|bundle\s+add|brew\s+install|composer\s+add|dotnet\s+add(?:\s+\S+)?\s+package|deno\s+add|uv\s+pip\s+install)\s+([^&|;\n>]+)"
)
_MOVED = re.compile(r"(?:^|&&|;|\n)\s*(?:git\s+)?mv\s+(?:-\S+\s+)*(\S+)\s+(\S+)")


def type_by_subject(subject: str) -> ObservationType:
    """The kind of change that a commit's subject names with its verb."""
    verb = re.sub(r"^[\w/-]+(?:\([^)]*\))?!?:\s*", "", subject)
    for kind, pattern in _TYPE_BY_VERB:
        if pattern.match(subject) or pattern.match(verb):
            return kind
    return ObservationType.CHANGE


def history_observations(turn: Turn, edited: tuple[str, ...]) -> Iterator[ObservationDraft]:
    for use in turn.named("Bash"):
        command = string(use.input, "command", "cmd")
        drafts = (_observation(work, use, command, edited) for work in works_of(command))
        yield from (draft for draft in drafts if draft)


def _observation(work: Work, use: ToolUse, command: str, edited: tuple[str, ...]) -> ObservationDraft | None:
    # A command line may fail in its push after its commit was made: git's own word decides.
    if work is Work.COMMIT and (committed(use.output) or not use.error):
        return _commit(use, command, edited)
    rule = None if use.error else _RULES.get(work)
    return rule(use, command) if rule else None


def _commit(use: ToolUse, command: str, edited: tuple[str, ...]) -> ObservationDraft | None:
    words = commit_words(command, use.output)
    if words is None:
        return None
    text = _WRAP.sub(" ", words.body)
    body = tuple(prose_lines(text))
    bullets = len(body) > _SENTENCES_AS_TEXT
    return ObservationDraft(
        type=type_by_subject(words.title),
        title=clip(words.title, TITLE_LIMIT),
        subtitle=f"commit {committed(use.output)}".rstrip(),
        narrative="" if bullets else essence(text, _BODY_LIMIT),
        facts=take(body, _BODY_LIMIT, line_limit=300) if bullets else (),
        concepts=(COMMIT,),
        files_modified=tuple(path for path in edited if _names_file(command, path)) or edited,
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


def _names_file(command: str, path: str) -> bool:
    return path in command or path.rsplit("/", 1)[-1] in command


def _pull_request(use: ToolUse, command: str) -> ObservationDraft | None:
    words = pull_request_words(command)
    if words is None:
        return None
    address = next((line for line in reversed(use.output.splitlines()) if "://" in line), "")
    return ObservationDraft(
        type=type_by_subject(words.title),
        title=clip(f"Opened: {words.title}", TITLE_LIMIT),
        subtitle=clip(address, 120),
        facts=take(prose_lines(words.body), _BODY_LIMIT, line_limit=300),
        concepts=("pull-request",),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


def _dependency(use: ToolUse, command: str) -> ObservationDraft | None:
    found = _ADDED_PACKAGES.search(command)
    names = [word for word in found[1].split() if word[:1] not in "-.\"'$/\\2"] if found else []
    if not names:
        return None
    return ObservationDraft(
        type=ObservationType.CHANGE,
        title=clip(f"Dependency added: {', '.join(names[:5])}", TITLE_LIMIT),
        facts=(clip(one_line(found[0]) if found else "", 200),),
        concepts=("dependencies",),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


def _move(use: ToolUse, command: str) -> ObservationDraft | None:
    pairs = _MOVED.findall(command)
    if not pairs:
        return None
    return ObservationDraft(
        type=ObservationType.REFACTOR,
        title=clip(f"Moved {pairs[0][0]} to {pairs[0][1]}", TITLE_LIMIT),
        facts=take((f"{old} is now {new}" for old, new in pairs[1:]), _BODY_LIMIT),
        concepts=("rename",),
        files_modified=tuple(new for _, new in pairs),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )


_RULES: dict[Work, Callable[[ToolUse, str], ObservationDraft | None]] = {
    Work.PULL_REQUEST: _pull_request,
    Work.DEPENDENCY: _dependency,
    Work.MOVE: _move,
}
