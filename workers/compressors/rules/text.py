"""Text rules: what a line, a sentence and an essence are. Lengths are in characters."""

import re
from collections.abc import Iterable, Iterator

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]{3,}$")
_LINK = re.compile(r"\[([^\]\n]{1,200})\]\((?:[^()\s]{1,500})\)")
_TICKS = str.maketrans(dict.fromkeys("`✅❌✓✗⚠🎉🤖🔴🟢🟡★\ufe0f"))
_LEAD = re.compile(r"^\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+|#{1,6}\s+|>\s+)*(?:\[[ xX]\]\s+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"'(`\d])|\n+")
_FILLER = re.compile(
    r"""^(?:done|perfect|great|excellent|good|yes|no|exactly|confirmed|correct|found\ it|understood|all\ done|sure
      |ok(?:ay)?|summary|(?:yes,\ )?exactly|(?:very\ )?good\ (?:call|question|catch|point|thinking|idea)s?
      |that'?s\ (?:a\ |an\ )?(?:great|good|excellent|fair|valid)\ (?:call|question|catch|point|idea)
      |(?:yes,\ )?you'?re\ (?:absolutely\ |completely\ )?right(?:\ again)?(?:\ -\ that'?s\ a\ good\ catch)?
      |i\ (?:was\ wrong|see|understand|apologi[sz]e)|this\ is\ (?:very\ )?(?:revealing|interesting|helpful)
      |here'?s\ (?:a|the|my|what)\b.*|based\ on\ my\b.*
      |now\ i\ (?:have|understand|see)\b[^.]*|let\ me\b.*|looking\ at\b[^.]*:
      |i\ (?:now\ )?have\ (?:enough|all|a\ (?:complete|comprehensive|full))\b.*)[.!:,]*$""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_FILLER = 120
_SHORTEST = 2
_SHORTEST_REST = 20
"""Room for less than so many characters is not filled with the head of a line."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")


def one_line(text: str) -> str:
    return " ".join(text.split())


def clip(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` characters, cut at a word with an ellipsis."""
    # Only the head can survive; the rest of a long text need not be normalised.
    line = one_line(text[: limit * 4 + 200])
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip(" ,;:-") + "…"


def plain(line: str) -> str:
    """A line of Markdown without its marks: bullets, headings, emphasis, links, ticks."""
    bare = _LEAD.sub("", line, count=1).replace("**", "").translate(_TICKS)
    return one_line(_LINK.sub(r"\1", bare) if "](" in bare else bare)


def prose_lines(markdown: str) -> Iterator[str]:
    """The lines of a Markdown text that say something: no code blocks, rules or filler; tables as cells."""
    in_code = False
    for raw in markdown.splitlines():
        if _FENCE.match(raw):
            in_code = not in_code
            continue
        if in_code or not raw.strip() or _TABLE_RULE.match(raw):
            continue
        line = plain(raw)
        if line.startswith("|"):
            line = " · ".join(cell.strip() for cell in line.strip("|").split("|") if cell.strip())
        if line and not is_filler(line):
            yield line


def is_filler(line: str) -> bool:
    """Whether a line only opens or closes a message."""
    return len(line) <= _LONGEST_FILLER and _FILLER.match(line) is not None


def sentences(text: str) -> list[str]:
    return [part for raw in _SENTENCE_END.split(text) if (part := raw.strip())]


def first_sentence(text: str, limit: int) -> str:
    """The first sentence of a Markdown text that is not filler, at most `limit` characters."""
    for line in prose_lines(text):
        for sentence in sentences(line):
            if not is_filler(sentence) and _WORD.search(sentence):
                return clip(sentence.rstrip(":"), limit)
    return ""


def take(lines: Iterable[str], limit: int, *, line_limit: int = 240) -> tuple[str, ...]:
    """Lines from the front, without repeats, each at most `line_limit`, together at most `limit` characters."""
    taken: dict[str, None] = {}
    left = limit
    for raw in lines:
        line = clip(raw, min(line_limit, left))
        if len(line) < _SHORTEST or line in taken:
            continue
        taken[line] = None
        left -= len(line)
        if left < _SHORTEST_REST:
            break
    return tuple(taken)


def essence(markdown: str, limit: int) -> str:
    """The head of what a Markdown text says, as one paragraph of at most `limit` characters."""
    return clip(" ".join(_ended(line) for line in take(prose_lines(markdown), limit, line_limit=limit)), limit)


def _ended(line: str) -> str:
    return line if line[-1] in ".!?:;…" else line + "."
