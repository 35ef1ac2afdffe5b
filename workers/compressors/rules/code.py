"""What lines of source code say: names they define, prose in their comments, messages in their strings."""

import re
from collections.abc import Iterable, Iterator

_DEFINITION = re.compile(
    r"""^\s*(?:export\s+|default\s+|public\s+|private\s+|protected\s+|internal\s+|static\s+|abstract\s+|final\s+
            |async\s+|pub(?:\([a-z]+\))?\s+|unsafe\s+|const\s+(?=fn)|override\s+|open\s+|data\s+|sealed\s+)*
    (?:
        func\s+(?:\([^)]*\)\s*)?(?P<go>[A-Za-z_]\w*)\s*[(\[]
      | (?:def|fn|fun|function\*?|sub|proc)\s+(?P<func>[A-Za-z_][\w.?!]*)
      | (?:class|struct|enum|trait|interface|module|protocol|record|namespace|object)\s+(?P<type>[A-Za-z_][\w.:]*)
      | type\s+(?P<alias>[A-Za-z_]\w*)\b
      | (?:const|let|var|val)\s+(?P<value>[A-Za-z_]\w*)\s*(?::[^=]+)?=
      | CREATE\s+(?:UNIQUE\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<sql>[\w."]+)
    )""",
    re.VERBOSE,
)
_HEADING = re.compile(r"^#{1,4}\s+(?P<heading>\S.*)$")
_COMMENT = re.compile(r"^\s*(?://+!?|#+(?!!)|--|\*(?!/)|/\*+|;;+|<!--)\s*(?P<text>.*?)\s*(?:\*/|-->)?$")
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.){12,200})\"|'((?:[^'\\\n]|\\.){12,200})'|`([^`\n]{12,200})`")
_IDENTIFIER = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?\b")
_COMPOUND = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[a-z0-9]_[a-z0-9]|[A-Z][A-Z0-9]*_[A-Z0-9]")
_DIRECTIVE = re.compile(r"^(?:nolint|noqa|eslint|type:|go:|pragma|prettier|ts-|@ts|[-=*_#]{3,}$)")
_SPACES_OF_A_SENTENCE = 2
_PROSE_SUFFIXES = (".md", ".mdx", ".rst", ".txt", ".adoc")
_HASH_LANGUAGES = (
    ".py",
    ".sh",
    ".bash",
    ".zsh",
    ".rb",
    ".toml",
    ".yml",
    ".yaml",
    ".pl",
    ".r",
    ".tf",
    ".mk",
    ".cfg",
    ".ini",
)


def is_prose(path: str) -> bool:
    return path.lower().endswith(_PROSE_SUFFIXES)


def definitions(lines: Iterable[str]) -> tuple[str, ...]:
    """Names defined by the lines: functions, types, tests, tables; constants only where nothing is indented."""
    names: dict[str, None] = {}
    for line in lines:
        found = _DEFINITION.match(line)
        if found is None or not found.lastgroup:
            continue
        if found.lastgroup == "value" and (line[:1].isspace() or not _COMPOUND.search(found["value"])):
            continue
        names[found[found.lastgroup].strip('"')] = None
    return tuple(names)


def signatures(lines: Iterable[str]) -> Iterator[str]:
    """The lines that define functions, types and tables, without what opens their bodies."""
    for line in lines:
        found = _DEFINITION.match(line)
        if found and found.lastgroup != "value":
            yield line.strip().rstrip("{:(= ").strip()


def headings(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if found := _HEADING.match(line):
            yield found["heading"]


def is_comment(line: str, path: str) -> bool:
    found = _COMMENT.match(line)
    return found is not None and (_comments_by_hash(path) or not line.lstrip().startswith("#"))


def comments(lines: Iterable[str], path: str) -> Iterator[str]:
    """The prose of comments, without directives to tools; runs of comment lines are one text."""
    run: list[str] = []
    by_hash = _comments_by_hash(path)
    for line in lines:
        found = _COMMENT.match(line)
        text = found["text"] if found and (by_hash or not line.lstrip().startswith("#")) else ""
        if text and not _DIRECTIVE.match(text):
            run.append(text)
        elif run:
            yield " ".join(run)
            run = []
    if run:
        yield " ".join(run)


def _comments_by_hash(path: str) -> bool:
    return path.lower().endswith(_HASH_LANGUAGES) or "." not in path.rsplit("/", 1)[-1]


def messages(lines: Iterable[str]) -> Iterator[str]:
    """String literals that read like sentences: what the program says."""
    for line in lines:
        for found in _STRING.finditer(line):
            text = found[1] or found[2] or found[3]
            if text.count(" ") >= _SPACES_OF_A_SENTENCE and text[:1].isalpha():
                yield text


def identifiers(lines: Iterable[str]) -> Iterator[str]:
    """Compound identifiers (camelCase, snake_case), which name things of the project rather than of the language."""
    for line in lines:
        for found in _IDENTIFIER.finditer(line):
            if _COMPOUND.search(found[0]):
                yield found[0]
