"""Shell commands: what kind of work each one is, and what git and package commands say about themselves."""

import re
from dataclasses import dataclass
from enum import StrEnum

from workers.compressors.rules.text import one_line


class Work(StrEnum):
    TEST = "test"
    BUILD = "build"
    LINT = "lint"
    COMMIT = "commit"
    PULL_REQUEST = "pull_request"
    DEPENDENCY = "dependency"
    MOVE = "move"
    TRIVIAL = "trivial"
    OTHER = "other"


_RUNNER = r"""(?:(?:mise|task|just|make|npm|pnpm|yarn|bun|poe|nox|tox|hatch|uv|poetry|pipenv|rye|npx|bunx)
    (?:\s+run|\s+exec|\s+-\S+)*\s+)"""
_KINDS = tuple(
    (work, re.compile(pattern, re.VERBOSE))
    for work, pattern in (
        (Work.COMMIT, r"git\s+(?:-\S+\s+\S+\s+)*commit\b"),
        (Work.PULL_REQUEST, r"(?:gh|glab)\s+(?:pr|mr|issue)\s+create\b"),
        (
            Work.DEPENDENCY,
            r"""go\s+get\s | (?:uv\s+|python3?\s+-m\s+)?pip3?\s+install\s+[^-.]
              | (?:npm|pnpm)\s+(?:install|i|add)\s+[^-\s]
              | (?:uv|poetry|pdm|cargo|yarn|bun|deno|dotnet|composer|bundle)\s+add\s
              | (?:gem|brew|cargo)\s+install\s""",
        ),
        (
            Work.TEST,
            r"""(?:go|cargo|dotnet|swift|deno)\s+test\b | cargo\s+nextest\b | (?:python3?\s+-m\s+)?(?:pytest|unittest)\b
              | (?:npx\s+)?(?:jest|vitest|mocha|playwright|cypress)\b | (?:rspec|phpunit|ctest|bats)\b
              | (?:mvn|gradle|\./gradlew)\s.*\btest | """
            + _RUNNER
            + r"\S*test\S*",
        ),
        (
            Work.LINT,
            r"""(?:golangci-lint|ruff|flake8|pylint|mypy|pyright|eslint|shellcheck|staticcheck|rubocop)\b
              | go\s+vet\b | cargo\s+clippy\b | """
            + _RUNNER
            + r"\S*(?:lint|check|typecheck)\S*",
        ),
        (
            Work.BUILD,
            r"""go\s+(?:build|install|generate)\b | cargo\s+(?:build|check)\b | (?:tsc|cmake)\b | make\s*$
              | (?:mvn|gradle|\./gradlew)\s | (?:docker|dotnet)\s+build\b | """
            + _RUNNER
            + r"\S*build\S*",
        ),
        (Work.MOVE, r"(?:git\s+)?mv\s"),
        (
            Work.TRIVIAL,
            r"""(?:ls|ll|pwd|cd|cat|head|tail|wc|echo|printf|grep|rg|find|fd|which|type|file|stat|tree|awk|sort|uniq|cut|tr|jq
              |date|sleep|true|false|test|\[|export|set|source|env|ps|xxd|du|df|diff|mkdir|touch|chmod|gofmt|sed\s+-n
              |git\s+(?:status|log|diff|show|branch|fetch|add|push|pull|stash|checkout|switch|rev-parse|ls-files|ls-tree
                |remote|config|blame|reflog|worktree|cat-file|merge-base|for-each-ref)
              |gh\s+(?:pr|issue|run|repo|api)(?:\s+(?:view|list|checks|diff|status|checkout|watch))?
              |go\s+(?:doc|list|env|version|fmt))\b | """
            + _RUNNER
            + r"\S*(?:fmt|format)\S*",
        ),
    )
)
"""The first pattern that a part of a command begins with says what kind of work it is."""
_LONGEST = 20_000
"""Characters of a command that are looked at."""
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n[ \t]*\1\b", re.DOTALL)
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'", re.DOTALL)
_SEPARATOR = re.compile(r"&&|\|\||[;\n|]|\$\(|\\\n")
_PREFIX = re.compile(r"^(?:\s*(?:[A-Za-z_]\w*=\S*|sudo|time|command|exec|nohup|timeout\s+\S+|then|do|if|!|\()\s+)*")
_MESSAGE = re.compile(
    r"(?:^|\s)(?:-[a-zA-Z]*m|--message|--title|-t)(?:\s+|=)(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s\"'$-]\S*))",
    re.DOTALL,
)
_BODY = re.compile(r"\s(?:--body|-b)(?:\s+|=)(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')", re.DOTALL)
_TRAILER = re.compile(r"^(?:[A-Z]\w*(?:-\w+)+: |🤖|\W*Generated (?:with|by)\b)")
_COMMITTED = re.compile(
    r"^\[(?P<branch>[^\]\n]+?) (?:\([\w-]+\) )?(?P<sha>[0-9a-f]{6,40})\] (?P<subject>.*)$", re.MULTILINE
)
_UNESCAPE = re.compile(r"\\([\"`$\\])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A title and the text below it: of a commit or a pull request."""

    title: str
    body: str = ""


def works_of(command: str) -> tuple[Work, ...]:
    """What a command line does, each kind once, in the order of its parts."""
    bare = _QUOTED.sub('""', _HEREDOC.sub("", command[:_LONGEST]))
    kinds: dict[Work, None] = {}
    for part in _SEPARATOR.split(bare):
        words = _PREFIX.sub("", part, count=1).strip(" ()")
        if words:
            kinds[next((work for work, pattern in _KINDS if pattern.match(words)), Work.OTHER)] = None
    return tuple(kinds)


def commit_words(command: str, output: str) -> Words | None:
    """The message of a commit that was made: from the command, else the subject that git printed."""
    made = _COMMITTED.search(output)
    words = _quoted_words(command)
    if words is None and made:
        words = Words(title=made["subject"].strip())
    return words


def committed(output: str) -> str:
    """`branch sha` of the commit that git reports, or nothing."""
    made = _COMMITTED.search(output)
    return f"{made['branch']} {made['sha'][:10]}" if made else ""


def pull_request_words(command: str) -> Words | None:
    titles = _values(_MESSAGE, command)
    if not titles:
        return None
    document = _HEREDOC.search(command)
    bodies = [document[2]] if document else _values(_BODY, command)
    return Words(title=one_line(titles[0]), body=_without_trailers("\n".join(bodies)))


def _quoted_words(command: str) -> Words | None:
    own = command[max(command.find("commit"), 0) : _LONGEST]
    document = _HEREDOC.search(own)
    text = document[2] if document else "\n\n".join(_values(_MESSAGE, own))
    text = _without_trailers(text)
    title, _, body = text.partition("\n")
    return Words(title=one_line(title), body=body.strip()) if title.strip() else None


def _values(pattern: re.Pattern[str], command: str) -> list[str]:
    return [
        _UNESCAPE.sub(r"\1", value)
        for found in pattern.finditer(command)
        if (value := next((group for group in found.groups() if group), "")) and not value.startswith("$(")
    ]


def _without_trailers(text: str) -> str:
    return "\n".join(line for line in text.strip().splitlines() if not _TRAILER.match(line.strip())).strip()
