"""The summary of a turn: the agent's own last message, sorted by what its parts say."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from service.models import SummaryDraft
from workers.compressors.rules.answers import is_answer
from workers.compressors.rules.diffs import EDIT_TOOLS, changes_of
from workers.compressors.rules.edits import edited_paths
from workers.compressors.rules.paths import relative
from workers.compressors.rules.payload import string
from workers.compressors.rules.text import clip, one_line, plain, prose_lines, sentences, take
from workers.compressors.rules.turns import Turn

_REQUEST_LIMIT = 200
_FIELD_LIMIT = {"completed": 1300, "learned": 1300, "next_steps": 400, "investigated": 500}
_LINE_LIMIT = 320
_FILES_READ = 12
_ANSWER_HEAD_LIMIT = 600
_SEARCHES_LIMIT = 240
_PATTERN_MARKS = re.compile(r"[\\^$.*+?()\[\]{}|]+")
_SHORTEST_PATTERN = 3
_PROMPTS = 4
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+\S|\*\*[^*]+\*\*:?\s*$)")
_ANNOUNCEMENT = re.compile(r"^\s{0,3}\S[^.!?\n]{0,80}:\s*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s")
_SECTION_BY_HEADING = (
    ("next_steps", r"next|remaining|to\ ?do|follow[- ]?up|recommend|open\ question|left\ to"),
    (
        "learned",
        r"cause|why|finding|learn|insight|problem|issue|analysis|explanation|key|how|concern|observation",
    ),
    ("completed", r"change|fix|done|complet|implement|added|updated|result|test|modified|created|summary|what\ i"),
    ("investigated", r"investigat|explor|review|looked|check"),
)
"""Which field a heading opens: the first whose words it holds."""
_SECTION_BY_OPENING = (
    (
        "next_steps",
        r"""(?:want\ me\ to|would\ you\ like|should\ i|shall\ i|do\ you\ want|let\ me\ know|next(?:\ step)?s?\b
          |remaining|you(?:'ll|\ will)\ (?:need|want)\ to|ready\ (?:to|for)\b|to\ do:)""",
    ),
    (
        "investigated",
        r"i(?:'ve|\ have)?\ (?:looked|reviewed|analy[sz]ed|explored|checked|searched|investigated|examined)\b",
    ),
)
"""Which field a sentence belongs to by its first words, whatever its section."""
_HEADING_RULES, _OPENING_RULES = (
    tuple((field, re.compile(pattern, re.IGNORECASE | re.VERBOSE)) for field, pattern in rules)
    for rules in (_SECTION_BY_HEADING, _SECTION_BY_OPENING)
)
_LEARNED = re.compile(
    r"""\b(?:root\ cause|because|the\ (?:issue|problem|bug|reason|cause)\ (?:is|was)|turns\ out|note\ that|the\ fix\ was
      |this\ means|was\ caused\ by)\b""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    completed: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    investigated: tuple[str, ...] = ()


def sections_of(message: str, *, worked: bool) -> Sections:
    """A last message sorted into the fields of a summary. `worked`: the turn changed something, so what has no cue
    tells what was done; otherwise it tells what was learned."""
    default = "completed" if worked else "learned"
    found: dict[str, list[str]] = {name: [] for name in _FIELD_LIMIT}
    section = default
    announced = ""
    for raw in _blocks(message):
        if _HEADING.match(raw):
            section, announced = _opened_by(raw) or default, ""
            continue
        if _ANNOUNCEMENT.match(raw) and not _ITEM.match(raw):
            announced = _opened_by(raw)
            if announced:
                continue
        elif announced and raw.strip() and not _ITEM.match(raw) and not raw.startswith("  "):
            announced = ""
        for line in prose_lines(raw):
            for name, text in _sorted_sentences(line, announced or section):
                found[name].append(text)
    return Sections(**{name: tuple(lines) for name, lines in found.items()})


def _opened_by(raw: str) -> str:
    """The field that a heading, or a line that announces a list, opens; empty when it says nothing of the kind."""
    return next((field for field, rule in _HEADING_RULES if rule.search(plain(raw))), "")


def _blocks(message: str) -> list[str]:
    """Lines of the message without code blocks and the lines that only announce one."""
    kept: list[str] = []
    in_code = False
    for raw in message.splitlines():
        if raw.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
            while in_code and kept and (not kept[-1].strip() or kept[-1].rstrip().endswith(":")):
                kept.pop()
        elif not in_code:
            kept.append(raw)
    return kept


def _sorted_sentences(line: str, section: str) -> Iterable[tuple[str, str]]:
    run: list[str] = []
    for sentence in sentences(line):
        name = next((field for field, rule in _OPENING_RULES if rule.match(sentence)), None)
        name = name or ("learned" if _LEARNED.search(sentence) else section)
        if name == section:
            run.append(sentence)
            continue
        yield name, sentence
    if run:
        yield section, " ".join(run)


def summary_of(turns: list[Turn], folders: tuple[str, ...]) -> SummaryDraft | None:
    """One summary of all turns that end here; nothing when nobody said or did anything."""
    parts = [_sections(turn) for turn in turns]
    fields = {name: _field(parts, name, limit) for name, limit in _FIELD_LIMIT.items()}
    edited = tuple(dict.fromkeys(chain.from_iterable(edited_paths(changes_of(turn.uses), folders) for turn in turns)))
    if not any(fields.values()) and not edited:
        return None
    fields["investigated"] = "\n".join(filter(None, (fields["investigated"], _searches(turns))))
    closings = [said for turn in turns for said in turn.closings]
    return SummaryDraft(
        request=_request(turns),
        files_read=_files_read(turns, folders)[:_FILES_READ],
        files_edited=edited,
        message_ids=tuple(said.message_id for said in closings),
        discovery_tokens=sum(said.tokens for said in closings) + sum(use.tokens for turn in turns for use in turn.uses),
        **fields,
    )


def _sections(turn: Turn) -> Sections:
    """A turn's last message by fields; of an answer that has a record of its own, the head and what comes next."""
    found = sections_of(turn.last_message, worked=any(use.tool in EDIT_TOOLS for use in turn.uses))
    if not is_answer(turn):
        return found
    return Sections(learned=take(found.learned or found.completed, _ANSWER_HEAD_LIMIT), next_steps=found.next_steps)


def _searches(turns: list[Turn]) -> str:
    asked = (string(use.input, "pattern", "query") for turn in turns for use in turn.named("Grep"))
    patterns = (one_line(_PATTERN_MARKS.sub(" ", pattern)) for pattern in asked)
    known = list(dict.fromkeys(pattern for pattern in patterns if len(pattern) >= _SHORTEST_PATTERN))
    return clip("searched for " + ", ".join(known), _SEARCHES_LIMIT) if known else ""


def _field(parts: list[Sections], name: str, limit: int) -> str:
    lines = chain.from_iterable(getattr(part, name) for part in parts)
    return "\n".join(take(lines, limit, line_limit=_LINE_LIMIT))


def _request(turns: list[Turn]) -> str:
    prompts = [turn.prompt.text for turn in turns if turn.prompt]
    share = max(60, _REQUEST_LIMIT // max(1, len(prompts)))
    return " / ".join(text for prompt in prompts[:_PROMPTS] if (text := clip(_opening(prompt), share)))


def _opening(prompt: str) -> str:
    """The first sentence or two of a prompt; what ends with a colon goes on."""
    first = sentences(one_line(prompt[:1000]))
    cut = next((place for place, text in enumerate(first[1:], 2) if not text.endswith(":")), len(first))
    return " ".join(first[:cut])


def _files_read(turns: list[Turn], folders: tuple[str, ...]) -> tuple[str, ...]:
    paths = (
        string(use.input, "file_path", "path", "absolute_path")
        for turn in turns
        for use in turn.named("Read")
        if not use.error
    )
    return tuple(dict.fromkeys(relative(path, folders) for path in paths if path))
