"""Tests, builds and linters: what failed, the lines that say why, and what later succeeded."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.models import Observation, ObservationDraft, ObservationType
from workers.compressors.rules.commands import Work, works_of
from workers.compressors.rules.diffs import changes_of
from workers.compressors.rules.edits import TITLE_LIMIT, edited_paths
from workers.compressors.rules.payload import string
from workers.compressors.rules.text import clip, one_line, take
from workers.compressors.rules.turns import ToolUse, Turn

CHECKS = (Work.TEST, Work.BUILD, Work.LINT)
OPEN_FAILURE = "open_failure"
CLOSES = "closes_failure"
_LINES_LIMIT = 420
_LINE_LIMIT = 150
_SCAN_LIMIT = 60_000
_FAILED = re.compile(
    r"""^[ \t]*---\ FAIL | ^FAIL\b | ^FAILED\b | ^E[ ]{2,}\S | ^panic: | ^error(?:\[\w+\])?: | :\ error\b | \[ERROR\]
      | ^[ \t]*[✗✕×][ ] | ^not\ ok\b | ^Traceback[ ] | ERROR\ task\ failed | \[(?:build|setup)\ failed\]
      | ^BUILD\ FAILED
      | \b[1-9]\d*\ (?:failed|failures?|errors?)\b | ^[1-9]\d*\ issues:""",
    re.MULTILINE | re.VERBOSE,
)
_WHY = re.compile(
    r"""^[ \t]*---\ FAIL: | ^FAILED\ \S | ^E[ ]{2,}\S | ^panic:[ ] | ^error(?:\[\w+\])?:[ ] | :\ error\b
      | ^[ \t]*[✗✕×][ ]
      | ^[ \t]*\S+\.\w{1,5}:\d+(?::\d+)?:[ ] | ^not\ ok\b | \w(?:Error|Exception)\b
      | \b(?:expected|want|got|undefined|cannot|mismatch|no\ such|unable|fatal)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_PASSING = re.compile(
    r"""ok\s | PASS\b | ===\ (?:RUN|PAUSE|CONT) | \?\s | [ \t]*---\ PASS | \d{4}[/-]\d\d[/-]\d\d[ ]
      | \[\w+(?::\w+)*\]\ \$[ ]""",
    re.VERBOSE,
)
_TEST_NAME = re.compile(
    r"""---\ FAIL:\ (\S+) | ^FAILED\ (\S+) | ^[ \t]*[✗✕×]\ (.+?)(?:\ \(\d.*)?$ | ^not\ ok\ \d+\ -?\ ?(.+)$""",
    re.MULTILINE | re.VERBOSE,
)
_PACKAGE_LINE = re.compile(r"FAIL\s|FAIL$|exit status|Exit code|ok\s|# |\S+:\d+: : #|\[|\d+ issues?:|\* \w+: \d+$")
_TIMING = re.compile(r" \(\d+(?:\.\d+)?m?s\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A check that failed: `names` of the tests when the output gives them, `lines` that say why."""

    work: Work
    command: str
    names: tuple[str, ...]
    lines: tuple[str, ...]
    use: ToolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    works: tuple[Work, ...]
    use: ToolUse


def checks_of(turn: Turn) -> Iterator[Failure | Pass]:
    """The outcomes of the turn's tests, builds and linters, in order."""
    for use in turn.named("Bash"):
        command = string(use.input, "command", "cmd")
        works = tuple(work for work in works_of(command) if work in CHECKS)
        if not works:
            continue
        output = use.output[:_SCAN_LIMIT]
        if use.error or _FAILED.search(output):
            lines = _why(output)
            if lines:
                yield Failure(work=works[-1], command=command, names=_names(output), lines=lines, use=use)
        else:
            yield Pass(works=works, use=use)


def _names(output: str) -> tuple[str, ...]:
    found = (next(group for group in groups if group) for groups in _TEST_NAME.findall(output))
    names = dict.fromkeys(_TIMING.sub("", name).strip() for name in found)
    # A failing subtest fails its parent too: the leaf says more.
    return tuple(name for name in names if not any(other.startswith(name + "/") for other in names))


def _why(output: str) -> tuple[str, ...]:
    lines = [line for line in output.splitlines() if line.strip() and not _PASSING.match(line)]
    telling = [line for line in lines if _WHY.search(line) and not _PACKAGE_LINE.match(line.strip())]
    said = (_TIMING.sub("", one_line(line).removeprefix("--- ")) for line in telling)
    return take(said, _LINES_LIMIT, line_limit=_LINE_LIMIT)


def outcome_observations(
    turn: Turn, folders: tuple[str, ...], earlier: tuple[Observation, ...]
) -> list[ObservationDraft]:
    """A failure that a later check of the turn answered, as the fix, with the files edited in between; one that is
    still open, as a discovery; and a success that answers a failure stored before."""
    open_failures: list[Failure] = []
    drafts: list[ObservationDraft] = []
    for outcome in checks_of(turn):
        if isinstance(outcome, Failure):
            open_failures.append(outcome)
            continue
        fixed = [failure for failure in open_failures if failure.work in outcome.works]
        open_failures = [failure for failure in open_failures if failure.work not in outcome.works]
        if fixed:
            drafts.append(_fix(fixed, outcome.use, _edited(turn, fixed[0].use, outcome.use, folders)))
        elif not drafts and (before := _open_before(earlier, outcome.works)):
            edited = _edited(turn, turn.uses[0], outcome.use, folders)
            if edited:
                drafts.append(_late_fix(before, outcome.use, edited))
    if open_failures:
        drafts.append(_open(open_failures))
    return drafts


def _edited(turn: Turn, first: ToolUse, last: ToolUse, folders: tuple[str, ...]) -> tuple[str, ...]:
    """Files edited from one tool call to another."""
    since = itertools.dropwhile(lambda use: use is not first, turn.uses)
    return edited_paths(changes_of(itertools.takewhile(lambda use: use is not last, since)), folders)


def _fix(failures: list[Failure], success: ToolUse, edited: tuple[str, ...]) -> ObservationDraft:
    worth = _worst(failures)
    proven = edited and worth.work is not Work.LINT
    return ObservationDraft(
        type=ObservationType.BUGFIX if proven else ObservationType.CHANGE if edited else ObservationType.DISCOVERY,
        title=clip(f"{'Fixed' if edited else 'Passed again'}: {_headline(worth)}", TITLE_LIMIT),
        subtitle=f"{worth.work} failed, then passed",
        facts=take((line for failure in failures for line in failure.lines), _LINES_LIMIT, line_limit=_LINE_LIMIT),
        concepts=(str(worth.work), "problem-solution"),
        files_modified=edited,
        message_ids=_ids(failures, success),
        discovery_tokens=sum(failure.use.tokens for failure in failures) + success.tokens,
    )


def _late_fix(before: Observation, success: ToolUse, edited: tuple[str, ...]) -> ObservationDraft:
    return ObservationDraft(
        type=ObservationType.BUGFIX,
        title=clip(f"Fixed: {before.title}", TITLE_LIMIT),
        subtitle="failed before, passes now",
        facts=before.facts[:2],
        concepts=("problem-solution",),
        files_modified=edited,
        message_ids=(success.message_id,),
        discovery_tokens=success.tokens,
        metadata={CLOSES: before.observation_id},
    )


def _open(failures: list[Failure]) -> ObservationDraft:
    worth = _worst(failures)
    return ObservationDraft(
        type=ObservationType.DISCOVERY,
        title=clip(f"{worth.work.capitalize()} failed: {_headline(worth)}", TITLE_LIMIT),
        subtitle="not passing yet at the end of this turn",
        facts=worth.lines,
        concepts=(str(worth.work), "error"),
        message_ids=_ids(failures),
        discovery_tokens=sum(failure.use.tokens for failure in failures),
        metadata={OPEN_FAILURE: {"work": str(worth.work), "names": list(worth.names)}},
    )


def _open_before(earlier: tuple[Observation, ...], works: tuple[Work, ...]) -> Observation | None:
    """The newest stored failure of this kind that nothing stored since has closed."""
    closed = {observation.metadata.get(CLOSES) for observation in earlier}
    for observation in reversed(earlier):
        failure = observation.metadata.get(OPEN_FAILURE)
        if isinstance(failure, dict) and failure.get("work") in works and observation.observation_id not in closed:
            return observation
    return None


def _worst(failures: list[Failure]) -> Failure:
    """The failure that says most: a test before a build before a linter, then the first."""
    return min(failures, key=lambda failure: CHECKS.index(failure.work))


def _headline(failure: Failure) -> str:
    reason = next((line for line in failure.lines if not line.startswith(("FAIL", "FAILED"))), "")
    if failure.names:
        more = f" and {len(failure.names) - 1} more" if len(failure.names) > 1 else ""
        return f"{failure.names[0]}{more}" + (f": {reason}" if reason else "")
    return reason or failure.lines[0]


def _ids(failures: list[Failure], *others: ToolUse) -> tuple[int, ...]:
    return tuple(dict.fromkeys([failure.use.message_id for failure in failures] + [use.message_id for use in others]))
