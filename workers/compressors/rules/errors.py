"""Failed tool calls that taught something: the line that says why."""

import re
from collections.abc import Iterator

from service.models import ObservationDraft, ObservationType
from workers.compressors.rules.commands import Work, works_of
from workers.compressors.rules.edits import TITLE_LIMIT
from workers.compressors.rules.outcomes import CHECKS
from workers.compressors.rules.payload import string
from workers.compressors.rules.text import clip, one_line, take
from workers.compressors.rules.turns import ToolUse, Turn

_TELLING = re.compile(
    r"""\b(?:error|fatal|failed|failure|cannot|can't|conflict|denied|not\ found|no\ such|unable|invalid|exception|panic
      |rejected|timed?\ ?out)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HOUSEKEEPING = re.compile(
    r"""has\ not\ been\ read\ yet | String\ to\ replace\ not\ found | File\ does\ not\ exist | EISDIR
      | modified\ since\ read | user\ (?:doesn't\ want|rejected|denied) | interrupted\ by\ user | Cancelled:\ parallel
      | exceeds\ maximum\ allowed | was\ blocked | <tool_use_error> | No\ such\ tool""",
    re.IGNORECASE | re.VERBOSE,
)
_EXIT = re.compile(r"^(?:Error: )?Exit code \d+\s*")
_FAILING_TOOLS = ("Bash", "WebFetch")
_LIMIT = 400
_SCAN_LIMIT = 20_000


def error_observations(turn: Turn) -> Iterator[ObservationDraft]:
    """Failed commands outside tests and builds, unless the same command later succeeded in the turn."""
    succeeded = {string(use.input, "command", "url") for use in turn.uses if not use.error}
    for use in turn.uses:
        if use.error and use.tool in _FAILING_TOOLS and string(use.input, "command", "url") not in succeeded:
            draft = _error(use)
            if draft:
                yield draft


def _error(use: ToolUse) -> ObservationDraft | None:
    command = string(use.input, "command", "url")
    works = works_of(command)
    quiet = set(works) <= {Work.TRIVIAL} and "git" not in command
    if quiet or any(work in CHECKS for work in works) or _HOUSEKEEPING.search(use.error):
        return None
    lines = [line for line in _EXIT.sub("", use.error[:_SCAN_LIMIT]).splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    if not telling:
        return None
    what = string(use.input, "description") or one_line(command)
    return ObservationDraft(
        type=ObservationType.DISCOVERY,
        title=clip(f"Failed: {clip(what, 50)}: {one_line(telling[0])}", TITLE_LIMIT),
        facts=take([f"$ {one_line(command)}", *telling], _LIMIT, line_limit=160),
        concepts=("error",),
        message_ids=(use.message_id,),
        discovery_tokens=use.tokens,
    )
