"""What a model's answer is worth: classified, salvaged, cleaned, and turned into drafts.

    valid              observations, a summary, or both
    nothing to record  said by the flag, by an empty list, or in one short sentence: an empty `Compressed`
    malformed          neither a tool call nor JSON to salvage, or hollow observations only: `BadAnswer`
    refusal            `BadAnswer`
    quota notice       one short notice without a tool call: `ProviderPaused`

The words of an answer are judged only when there is nothing to parse, so an observation may speak of limits and quotas.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hooks.privacy import strip_text
from hooks.secrets import redact_text
from service.errors import BadAnswer, ProviderPaused
from service.models import Batch, Compressed, MessageType, ObservationDraft, ObservationType, SummaryDraft, Usage
from workers.salvage import OBSERVATION_KEYS, SUMMARY_KEYS, Found, field_key, find, json_in

_TITLE_CHARS, _SUBTITLE_CHARS, _NARRATIVE_CHARS, _SUMMARY_CHARS = 160, 300, 6000, 3000
_FACT_CHARS, _CONCEPT_CHARS, _PATH_CHARS = 600, 60, 500
_MAX_OBSERVATIONS, _MAX_FACTS, _MAX_CONCEPTS, _MAX_PATHS = 30, 20, 12, 60
_NOTICE_CHARS = 400
"""A quota notice, a refusal or a "nothing" is short; a longer text is an answer in the wrong form."""

_BLANK = frozenset({"", "-", "…", "...", "n/a", "na", "none", "null", "tbd", "todo", "unknown", "untitled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer in no provider's own shape. `tool_input` is None without a tool call; a string of JSON will do."""

    tool_input: object
    text: str
    stop_reason: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an answer was worth. `summary_missing`: one was due and the model did not say that there is nothing."""

    compressed: Compressed
    summary_missing: bool


def read_answer(answer: Answer, batch: Batch, *, strict: bool) -> Reading:
    """The drafts of an answer; raises `BadAnswer` or `ProviderPaused`, each with what the call has spent.

    `discovery_tokens`: input + output tokens of the call, divided equally among the records it made, rounded down.
    Hollow observations are a bad answer at first; given again to the `strict` question they mean nothing to record.
    """
    found = _findings(answer)
    told = [item for item in found.observations if not (isinstance(item, str) and _says_nothing(item))]
    drafts = _collapse(_drafts(told, batch))
    summary = _summary(found.summary, batch, drafts) if batch.wants_summary else None
    if told and not drafts and summary is None and not strict:
        raise _bad(
            answer, "malformed", "The model called the tool but filled in neither a title, a narrative nor a fact"
        )
    share = _tokens(answer.usage) // max(len(drafts) + (summary is not None), 1)
    compressed = Compressed(
        observations=tuple(replace(draft, discovery_tokens=share) for draft in drafts),
        summary=summary and replace(summary, discovery_tokens=share),
        usage=answer.usage,
    )
    said_nothing = not drafts and (found.nothing or bool(found.observations))
    return Reading(compressed=compressed, summary_missing=batch.wants_summary and summary is None and not said_nothing)


def read_summary(answer: Answer, batch: Batch, observations: tuple[ObservationDraft, ...]) -> SummaryDraft | None:
    """The summary that was asked for alone; None when this answer has none either. Raises as `read_answer`."""
    found = _findings(answer)
    summary = _summary(found.summary, batch, observations)
    return summary and replace(summary, discovery_tokens=_tokens(answer.usage))


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


# --- classification -------------------------------------------------------------------------------------------------

_NOTHING = re.compile(
    r"(?:[\w'’,;:]+ ){0,8}(?:nothing|no\b[^.!?\n]{0,40})\b[^.!?\n]{0,40}\b"
    r"(?:worth\w*|noteworthy|notable|of note|significant|memorable|"
    r"to (?:record|note|remember|report|store|save|add|log|summari[sz]e))\b[^\n]{0,80}",
    re.IGNORECASE,
)
_NOTHING_WORDS = frozenset(
    {"nothing", "nothing new", "no observation", "no observations", "skip", "skipped", "[]", "{}"}
)
_REFUSAL = re.compile(
    r"\bI(?:['’]m| am)? (?:can ?not|can['’]t|won['’]t|will not|unable|not able|not comfortable|"
    r"must (?:decline|refuse)|have to (?:decline|refuse)|decline)\b",
    re.IGNORECASE,
)
_SCARCE = re.compile(r"\b(?:limits?|quota|cap|credits?|balance|extra usage|billing|budget)\b", re.IGNORECASE)
_SPENT = re.compile(
    r"\b(?:reached|hit|exceeded|exhausted|depleted|too low|insufficient|ran out|run out|out of|used (?:up|all)|"
    r"no\b.{0,30}\b(?:left|remaining))\b",
    re.IGNORECASE,
)
_THROTTLED = re.compile(r"\b(?:too many requests|rate.?limited|insufficient_quota|payment required)\b", re.IGNORECASE)
_NARRATED = re.compile(
    r"\b(?:I|context|(?:the|this|an?) (?:user|agent|assistant|developer|session|tests?|code|client|app|script|tool)|"
    r"commit\w*|fix(?:ed|es)|add(?:ed|s)|implement(?:ed|s)|chang(?:ed|es)|updat(?:ed|es)|rais(?:ed|es)|handl(?:ed|es)|refactor\w*)\b",
    re.IGNORECASE,
)
"""Words of somebody who tells of work. Mistaking such a text for a notice would pause the provider for nothing."""


def _findings(answer: Answer) -> Found:
    """What can be parsed of the answer; raises when that is nothing."""
    if answer.stop_reason == "refusal":
        raise _bad(answer, "refusal", "The provider stopped the answer as a refusal")
    found = find(answer.tool_input) or find(answer.text)
    if found:
        return found
    prose = " ".join(answer.text.split())
    if answer.tool_input is None and 0 < len(prose) <= _NOTICE_CHARS:
        if _says_nothing(prose):
            return Found(nothing=True)
        if _is_quota_notice(prose):
            raise ProviderPaused(
                f"The provider answered with a notice: {redact_text(prose)}", reason="quota", calls=answer.usage.calls
            )
        if _REFUSAL.search(prose):
            raise _bad(answer, "refusal", "The model declined in words")
    if answer.stop_reason == "max_tokens":
        raise _bad(
            answer, "malformed", "The answer was cut off at the limit of output tokens before a whole observation"
        )
    raise _bad(
        answer, "malformed", f"The model answered without a usable tool call ({len(answer.text)} characters of text)"
    )


def _bad(answer: Answer, kind: str, message: str) -> BadAnswer:
    usage = answer.usage
    return BadAnswer(
        f"{message} (stop reason: {answer.stop_reason or 'none'}).",
        kind=kind,
        calls=usage.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def _says_nothing(prose: str) -> bool:
    return bool(_NOTHING.fullmatch(prose)) or prose.strip(" .!*_`\"'").casefold() in _NOTHING_WORDS | _BLANK


def _is_quota_notice(prose: str) -> bool:
    """A notice names what is spent and that it is spent, in one sentence, and does not tell of somebody else's work."""
    if _NARRATED.search(prose):
        return False
    sentences = re.split(r"(?<=[.!?])\s", prose)
    return any(_THROTTLED.search(part) or (_SCARCE.search(part) and _SPENT.search(part)) for part in sentences)


# --- drafts ---------------------------------------------------------------------------------------------------------

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def _drafts(items: list[Any], batch: Batch) -> Iterator[ObservationDraft]:
    for item in items[:_MAX_OBSERVATIONS]:
        if isinstance(item, dict):
            draft = _draft(_with_unknown_names({field_key(name): value for name, value in item.items()}), batch)
        else:
            draft = _draft({"narrative": item}, batch) if isinstance(item, str) else None
        if draft:
            yield draft


def _with_unknown_names(fields: dict[str, Any]) -> dict[str, Any]:
    """A model that invents field names still wrote something: its texts become the narrative, its lists the facts."""
    unknown = {name: value for name, value in fields.items() if name not in OBSERVATION_KEYS}
    texts = [value for value in unknown.values() if isinstance(value, str) and " " in value.strip()]
    lists = [item for value in unknown.values() if isinstance(value, list) for item in value if isinstance(item, str)]
    return {
        **fields,
        "narrative": fields.get("narrative") or "\n".join(texts),
        "fact": fields.get("fact") or lists,
    }


def _draft(fields: dict[str, Any], batch: Batch) -> ObservationDraft | None:
    """One observation; None when it has neither title nor narrative nor facts, whatever tags it carries."""
    narrative = _clean(fields.get("narrative"), _NARRATIVE_CHARS)
    facts = _texts(fields.get("fact"), _FACT_CHARS, _MAX_FACTS, separators=r"\n")
    title = _clean(fields.get("title"), _TITLE_CHARS) or _first_sentence(narrative or next(iter(facts), ""))
    if not title:
        return None
    raw_type = fields.get("type")
    known_type = next((kind.value for kind in ObservationType if kind.value == _letters(raw_type)), None)
    return ObservationDraft(
        type=known_type or ObservationType.DISCOVERY.value,
        title=" ".join(title.split()),
        message_ids=_message_ids(fields.get("event"), batch),
        subtitle=_clean(fields.get("subtitle"), _SUBTITLE_CHARS),
        narrative=narrative,
        facts=facts,
        concepts=_texts(fields.get("concept"), _CONCEPT_CHARS, _MAX_CONCEPTS, separators=r"[\n,;]"),
        files_read=_texts(fields.get("filesread"), _PATH_CHARS, _MAX_PATHS, separators=r"[\n,]"),
        files_modified=_texts(fields.get("filesmodified"), _PATH_CHARS, _MAX_PATHS, separators=r"[\n,]"),
        metadata={} if known_type else {"raw_type": _clean(raw_type, _CONCEPT_CHARS) or None},
    )


def _message_ids(events: object, batch: Batch) -> tuple[int, ...]:
    """The messages behind event numbers (from 1, as the prompt counts them); all tool events when none is named."""
    numbers = [int(n) for item in _flat(events) for n in re.findall(r"\d{1,6}", str(item))]
    named = sorted({number for number in numbers if 1 <= number <= len(batch.messages)})
    if named:
        return tuple(batch.messages[number - 1].message_id for number in named)
    tools = tuple(m.message_id for m in batch.messages if m.message_type is MessageType.OBSERVATION)
    return tools or tuple(m.message_id for m in batch.messages)


def _summary(value: object, batch: Batch, observations: tuple[ObservationDraft, ...]) -> SummaryDraft | None:
    """A summary with the files of the observations, None when it says nothing; bare prose counts as `completed`."""
    given = next(iter(json_in(value)), {"completed": value}) if isinstance(value, str) else value
    if not isinstance(given, dict):
        return None
    texts = {
        SUMMARY_KEYS.get(field_key(name), ""): _clean(_joined(text), _SUMMARY_CHARS) for name, text in given.items()
    }
    texts.pop("", None)
    if not any(texts.values()):
        return None
    return SummaryDraft(
        message_ids=tuple(m.message_id for m in batch.messages if m.message_type is MessageType.SUMMARY),
        files_read=tuple(dict.fromkeys(path for o in observations for path in o.files_read)),
        files_edited=tuple(dict.fromkeys(path for o in observations for path in o.files_modified)),
        request=texts.get("request", ""),
        investigated=texts.get("investigated", ""),
        learned=texts.get("learned", ""),
        completed=texts.get("completed", ""),
        next_steps=texts.get("next_steps", ""),
        notes=texts.get("notes", ""),
    )


def _collapse(drafts: Iterator[ObservationDraft]) -> tuple[ObservationDraft, ...]:
    """Of drafts that say the same (title and narrative in NFC, casefolded) the first stays, with the events of all."""
    kept: dict[tuple[str, str], ObservationDraft] = {}
    for draft in drafts:
        same = (_normal(draft.title), _normal(draft.narrative))
        first = kept.get(same, draft)
        kept[same] = replace(first, message_ids=tuple(sorted({*first.message_ids, *draft.message_ids})))
    return tuple(kept.values())


# --- texts ----------------------------------------------------------------------------------------------------------


def _clean(value: object, limit: int) -> str:
    """A stored string: no private parts, no secrets, no NUL, no placeholder words, at most `limit` characters."""
    if not isinstance(value, str):
        return ""
    sendable = value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    text = redact_text(strip_text(sendable)[0]).strip()
    if text.casefold().strip(" .") in _BLANK:
        return ""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _texts(value: object, limit: int, count: int, *, separators: str) -> tuple[str, ...]:
    """A list of clean strings, each once, from a list, or from one string with `separators` or bullets."""
    pieces = re.split(separators, value) if isinstance(value, str) else [_joined(item) for item in _flat(value)]
    cleaned = (_clean(_BULLET.sub("", piece), limit) for piece in pieces)
    return tuple(dict.fromkeys(text for text in cleaned if text))[:count]


def _flat(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _joined(value: object) -> str:
    """Text of whatever a model put where a string belongs."""
    if isinstance(value, list | dict):
        children = value.values() if isinstance(value, dict) else value
        return "\n".join(str(child) for child in children if isinstance(child, str | int | float))
    return "" if value is None else str(value)


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0].rstrip(".")
    return sentence if len(sentence) <= _TITLE_CHARS else sentence[: _TITLE_CHARS - 1].rstrip() + "…"


def _letters(value: object) -> str:
    return re.sub(r"[\W\d_]", "", value).casefold() if isinstance(value, str) else ""


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
