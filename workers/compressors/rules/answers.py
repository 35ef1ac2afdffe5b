"""What the agent said when it stopped: answers to questions, and decisions stated in words."""

import re
from collections.abc import Iterator

from service.models import ObservationDraft, ObservationType
from workers.compressors.rules.diffs import EDIT_TOOLS
from workers.compressors.rules.edits import TITLE_LIMIT
from workers.compressors.rules.text import clip, first_sentence, prose_lines, sentences, take
from workers.compressors.rules.turns import Turn

ANSWER_LENGTH = 600
"""Characters from which a message that closes a turn without edits is an answer worth a record of its own; the summary
then keeps only its head."""
_ANSWER_LIMIT = 3000
_DECISIONS_LIMIT = 500
_DECISION = re.compile(
    r"""\b(?:decided\ (?:to|on|not|against)|chose\b|opted\ (?:for|to|not)|went\ with|settled\ on|agreed\ (?:on|to|that)
      |(?:design|the)\ decision)\b""",
    re.IGNORECASE | re.VERBOSE,
)


def is_answer(turn: Turn) -> bool:
    return len(turn.last_message) >= ANSWER_LENGTH and not any(use.tool in EDIT_TOOLS for use in turn.uses)


def answer_observations(turn: Turn) -> Iterator[ObservationDraft]:
    said = next((said for said in reversed(turn.closings) if said.text.strip()), None)
    if said is None:
        return
    lines = list(prose_lines(said.text))
    decisions = [sentence for line in lines for sentence in sentences(line) if _DECISION.search(sentence)]
    if is_answer(turn):
        title = first_sentence(said.text, TITLE_LIMIT)
        body = [line for line in lines if clip(line, TITLE_LIMIT).rstrip(":") != title]
        kind, facts, limit = ObservationType.DISCOVERY, body, _ANSWER_LIMIT
    elif decisions:
        title, kind, facts, limit = (
            clip(decisions[0], TITLE_LIMIT),
            ObservationType.DECISION,
            decisions,
            _DECISIONS_LIMIT,
        )
    else:
        return
    if title:
        yield ObservationDraft(
            type=kind,
            title=title,
            facts=take(facts, limit, line_limit=320),
            concepts=("decision",) if decisions else ("how-it-works",),
            message_ids=(said.message_id,),
            discovery_tokens=said.tokens + sum(use.tokens for use in turn.uses),
        )
