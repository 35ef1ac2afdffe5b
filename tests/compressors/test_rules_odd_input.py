"""Whatever a payload holds, the rules answer and do not raise; what they say was in their input."""

import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.models import MessageType
from tests.compressors.batches import make_message, make_prompt
from tests.compressors.rules_turns import rules

TOOLS = ("Bash", "Edit", "Write", "MultiEdit", "apply_patch", "Read", "Grep", "Task", "WebFetch", "ExitPlanMode")
OTHERS = ("AskUserQuestion", "mcp__tracker__get_issue", "?", "")
TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["git commit -m x", "go test ./...", "--- FAIL: T", "a.go:1: expected", "# H\n- b", "<<EOF\n", "```"]
    ),
)
FIELDS = (
    *("command", "file_path", "content", "old_string", "new_string", "edits", "structuredPatch"),
    *("lines", "plan", "questions", "answers", "title", "stdout", "agentId"),
    *("url", "prompt", "input", "type", "filePath", "results", "last_assistant_message"),
    *("error", "tool_input", "tool_response", "cwd", "agent_id"),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)),
    max_leaves=12,
)
EVENTS = ("PostToolUse", "PostToolUseFailure", "SubagentStop", "Stop", "PreCompact", "SessionEnd")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    event=st.sampled_from(EVENTS),
    tool=st.sampled_from((*TOOLS, *OTHERS)),
    payload=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
    prompt=st.text(max_size=30),
)
def test_any_payload_gives_well_formed_drafts(event: str, tool: str, payload: dict[str, Any], prompt: str) -> None:
    kind = MessageType.OBSERVATION if event.startswith(("Post", "Sub")) else MessageType.SUMMARY
    message = make_message(7, hook_event=event, tool_name=tool, message_type=kind, payload=payload)
    made = rules(message, prompts=(make_prompt(prompt),))
    for draft in made.observations:
        assert draft.title
        assert len(draft.title) <= 100
        assert draft.message_ids == (7,)
        assert draft.discovery_tokens >= 0
    assert made.summary is None or made.summary.message_ids == (7,)


def test_a_huge_line_and_a_huge_run_of_blanks_cost_no_more_than_their_length() -> None:
    blank, long = "\n" * 200_000, "x y " * 200_000
    for text in (blank, " " * 400_000, long, "a = '" + long):
        made = rules(
            make_message(1, payload={"tool_input": {"command": "go test"}, "tool_response": {"stdout": text}}),
            make_message(2, tool_name="Write", payload={"tool_input": {"file_path": "/repo/a.go", "content": text}}),
            make_message(
                3, hook_event="Stop", message_type=MessageType.SUMMARY, payload={"last_assistant_message": text}
            ),
        )
        assert sum(len(fact) for draft in made.observations for fact in draft.facts) < 10_000


def test_every_word_of_an_answer_comes_from_its_input() -> None:
    words = "Moved the parser into its own file because the tests could not reach it."
    made = rules(
        make_message(
            1, tool_name="Write", payload={"tool_input": {"file_path": "/repo/parser.py", "content": "def parse():"}}
        ),
        make_message(2, hook_event="Stop", message_type=MessageType.SUMMARY, payload={"last_assistant_message": words}),
    )
    assert made.summary is not None
    told = f"{made.summary.completed} {made.summary.learned} {made.summary.next_steps}"
    assert set(re.findall(r"\w+", told)) <= set(re.findall(r"\w+", words))
