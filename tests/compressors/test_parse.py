"""What an answer is worth, whatever shape it comes in."""

import json
from typing import Any

import pytest

from service.errors import BadAnswer, ProviderPaused
from service.models import ObservationDraft, SummaryDraft, Usage
from tests.compressors.batches import make_batch, make_message, make_stop
from workers.parse import Answer, Reading, read_answer, read_summary

FULL = {
    "type": "bugfix",
    "title": "Retry loop ends",
    "subtitle": "The counter ran the wrong way",
    "narrative": "The loop never ended because the counter grew. It now shrinks.",
    "facts": ["MAX_TRIES is 5"],
    "concepts": ["retry"],
    "files_read": ["src/wait.py"],
    "files_modified": ["src/loop.py"],
    "events": [1],
}
SUMMARY = {"request": "Fix the loop", "completed": "It ends", "learned": "", "next_steps": "None"}


def answer(tool_input: object = None, text: str = "", stop_reason: str = "tool_use") -> Answer:
    usage = Usage(calls=1, input_tokens=900, output_tokens=100)
    return Answer(tool_input=tool_input, text=text, stop_reason=stop_reason, usage=usage)


def read(tool_input: object = None, text: str = "", **how: Any) -> Reading:
    batch = make_batch(make_message(11), make_message(12), make_stop(13))
    strict = how.pop("strict", False)
    return read_answer(answer(tool_input, text, **how), batch, strict=strict)


def drafts(tool_input: object = None, text: str = "", **how: Any) -> tuple[ObservationDraft, ...]:
    return read(tool_input, text, **how).compressed.observations


def only(observation: object) -> ObservationDraft:
    (draft,) = drafts({"observations": [observation]})
    return draft


def test_a_full_observation_arrives_as_it_was_said() -> None:
    assert only(FULL) == ObservationDraft(
        type="bugfix",
        title="Retry loop ends",
        message_ids=(11,),
        subtitle="The counter ran the wrong way",
        narrative="The loop never ended because the counter grew. It now shrinks.",
        facts=("MAX_TRIES is 5",),
        concepts=("retry",),
        files_read=("src/wait.py",),
        files_modified=("src/loop.py",),
        discovery_tokens=1000,
    )


@pytest.mark.parametrize(
    "shape",
    [
        {"observations": [FULL]},
        {"observations": FULL},
        {"observation": FULL},
        {"Observations": {"0": FULL}},
        {"observations": json.dumps([FULL])},
        {"observations": json.dumps(FULL)},
        {"input": {"observations": [FULL]}},
        {"arguments": json.dumps({"observations": [FULL]})},
        {"result": {"items": [FULL]}},
        [FULL],
        FULL,
        json.dumps({"observations": [FULL]}),
    ],
    ids=lambda shape: json.dumps(shape)[:40],
)
def test_an_observation_is_found_in_any_wrapping(shape: object) -> None:
    assert [draft.title for draft in drafts(shape)] == ["Retry loop ends"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"observations": [FULL]}),
        f"Here is what I recorded:\n```json\n{json.dumps({'observations': [FULL]}, indent=2)}\n```\nAnything else?",
        f"In {{braces}} and [brackets]: {json.dumps(FULL)}",
        json.dumps([FULL]),
    ],
    ids=["bare", "fenced", "after noise", "list"],
)
def test_json_in_prose_is_salvaged(text: str) -> None:
    assert [draft.title for draft in drafts(text=text, stop_reason="end_turn")] == ["Retry loop ends"]


@pytest.mark.parametrize("cut", range(20, 400, 37))
def test_of_an_answer_cut_at_the_token_limit_the_whole_observations_are_kept(cut: int) -> None:
    whole = json.dumps({"observations": [FULL, FULL | {"title": "Second"}, FULL | {"title": "Third" * 20}]})
    end = whole.index('"Second"') + cut
    kept = [draft.title for draft in drafts(text=whole[:end], stop_reason="max_tokens")]
    assert kept in (["Retry loop ends"], ["Retry loop ends", "Second"])


@pytest.mark.parametrize("tool_input", [{}, None, '{"observations": [{"title": "Half a'])
def test_an_answer_cut_before_its_first_whole_observation_says_so(tool_input: object) -> None:
    with pytest.raises(BadAnswer, match="cut off") as bad:
        read(tool_input, stop_reason="max_tokens")
    assert (bad.value.kind, bad.value.calls, bad.value.input_tokens, bad.value.output_tokens) == (
        "malformed",
        1,
        900,
        100,
    )


@pytest.mark.parametrize(
    "words",
    [
        "Nothing worth recording.",
        "nothing to record",
        "There is nothing in this batch worth noting.",
        "No observations",
        "I found no new information to record here.",
        "NOTHING",
        "None.",
        "This was routine; nothing noteworthy.",
    ],
)
def test_prose_that_says_nothing_is_a_valid_empty_answer(words: str) -> None:
    reading = read(text=words, stop_reason="end_turn")
    assert (reading.compressed.observations, reading.summary_missing) == ((), False)
    assert read({"observations": words}).compressed.observations == ()


@pytest.mark.parametrize(
    "words",
    [
        "You've hit your limit · resets 3pm (UTC)",
        "Claude AI usage limit reached|1760000000",
        "Credit balance is too low",
        "You have reached your specified API usage limits. You will regain access on 2031-01-01 at 00:00 UTC.",
        "Your organization has exceeded its monthly spend limit.",
        "You're out of extra usage. Add more in settings.",
        "5-hour limit reached ∙ resets at 9am",
        "Insufficient credits. Please top up to continue.",
        "You exceeded your current quota, please check your plan and billing details.",
        "No credits remaining on this account.",
        "Too many requests, please try again later.",
    ],
)
def test_a_short_quota_notice_pauses_the_provider(words: str) -> None:
    with pytest.raises(ProviderPaused) as paused:
        read(text=words, stop_reason="end_turn")
    assert (paused.value.reason, paused.value.until_settings_change) == ("quota", False)


@pytest.mark.parametrize(
    "words",
    [
        "The user hit a rate limit in their API client and added a backoff.",
        "I have reached the end of the context limit and can't go on with the whole text.",
        "Fixed the handling of exceeded quotas. The credit limit reached case is now tested.",
        "The session looks at billing code; the balance was too low in the fixture.",
        "All of this is in order. " * 30 + "You've hit your limit.",
    ],
)
def test_prose_that_only_speaks_of_limits_is_malformed_and_pauses_nothing(words: str) -> None:
    with pytest.raises(BadAnswer):
        read(text=words, stop_reason="end_turn")


@pytest.mark.parametrize(
    "narrative",
    ["Raised the context window limit.", "You've hit your usage limit.", "I'm sorry, I can't help with that."],
)
def test_a_valid_observation_is_stored_whatever_its_words(narrative: str) -> None:
    assert only(FULL | {"narrative": narrative}).narrative == narrative


@pytest.mark.parametrize(
    "words",
    ["I'm sorry, but I can't help with that.", "I cannot process this content.", "I’m unable to assist with this."],
)
def test_a_polite_refusal_is_a_refusal(words: str) -> None:
    with pytest.raises(BadAnswer) as bad:
        read(text=words, stop_reason="end_turn")
    assert bad.value.kind == "refusal"


@pytest.mark.parametrize(
    ("tool_input", "text"),
    [
        (None, ""),
        (None, "I looked at the session. It was about a retry loop that did not end."),
        (None, 'The config {"a": 1} and ["b"] were changed.'),
        ({}, ""),
        ({"foo": 1}, ""),
        (17, ""),
        ({"observations": [{"type": "bugfix", "concepts": ["retry"], "title": "", "narrative": " ", "facts": []}]}, ""),
        ({"observations": [{}, None, 3, "", {"title": "Untitled"}]}, ""),
    ],
)
def test_an_answer_without_anything_usable_is_malformed(tool_input: object, text: str) -> None:
    with pytest.raises(BadAnswer) as bad:
        read(tool_input, text)
    assert bad.value.kind == "malformed"


def test_hollow_observations_given_twice_mean_nothing_to_record() -> None:
    hollow = {"observations": [{"type": "change", "concepts": ["x"]}]}
    assert read(hollow, strict=True).compressed.observations == ()


def test_hollow_observations_are_dropped_beside_good_ones() -> None:
    hollow = {"type": "change", "concepts": ["x"], "title": "N/A", "narrative": "none"}
    assert [draft.title for draft in drafts({"observations": [hollow, FULL, {}]})] == ["Retry loop ends"]


def test_an_observation_of_prose_alone_is_kept_with_its_first_sentence_as_title() -> None:
    for shape in ("The loop ended. It had not before.", {"narrative": "The loop ended. It had not before."}):
        draft = only(shape)
        assert (draft.title, draft.narrative) == ("The loop ended", "The loop ended. It had not before.")
    assert only({"facts": ["Port 8080 is taken."]}).title == "Port 8080 is taken"


def test_unknown_field_names_still_carry_what_was_said() -> None:
    draft = only(
        {"type": "feature", "headline": "Users can log in", "body": "A form was added.", "points": ["2 fields"]}
    )
    assert (draft.type, draft.title) == ("feature", "Users can log in")
    assert "A form was added." in draft.narrative
    assert draft.facts == ("2 fields",)


def test_field_names_may_be_spelled_otherwise() -> None:
    draft = only({"Title": "T is set", "filesModified": ["a.py"], "files-read": ["b.py"], "FACT": "one"})
    assert (draft.title, draft.files_modified, draft.files_read, draft.facts) == (
        "T is set",
        ("a.py",),
        ("b.py",),
        ("one",),
    )


@pytest.mark.parametrize("kind", ["bugfix", "Bug-Fix", "BUGFIX", "🔴 bugfix", "bug_fix"])
def test_a_known_type_is_known_in_any_spelling(kind: str) -> None:
    draft = only(FULL | {"type": kind})
    assert (draft.type, draft.metadata) == ("bugfix", {})


@pytest.mark.parametrize("kind", ["security", "", None, 7, ["bugfix"]])
def test_an_unknown_or_missing_type_becomes_discovery_and_keeps_what_was_said(kind: object) -> None:
    draft = only(FULL | {"type": kind})
    assert draft.type == "discovery"
    assert draft.metadata == {"raw_type": "security" if kind == "security" else None}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ("- one\n- two\n\n* three\n4. four", ("one", "two", "three", "four")),
        ("one, with a comma", ("one, with a comma",)),
        (["one", 2, None, {"fact": "three"}, "one", ""], ("one", "2", "three")),
        ({"a": 1}, ("1",)),
        (None, ()),
    ],
)
def test_a_list_is_read_from_whatever_stands_in_its_place(facts: object, expected: tuple[str, ...]) -> None:
    assert only(FULL | {"facts": facts}).facts == expected


@pytest.mark.parametrize(
    ("events", "message_ids"),
    [
        ([1], (11,)),
        ([2, 1, 2], (11, 12)),
        (["event 3"], (13,)),
        ("1, 2", (11, 12)),
        (2, (12,)),
        ([99, 0, -4], (11, 12)),
        ([], (11, 12)),
        (None, (11, 12)),
        ([None, {"a": []}], (11, 12)),
    ],
)
def test_event_numbers_become_message_ids_and_bad_ones_mean_all_tool_events(
    events: object, message_ids: tuple[int, ...]
) -> None:
    assert only(FULL | {"events": events}).message_ids == message_ids


def test_what_is_said_twice_is_kept_once_for_the_events_of_both() -> None:
    again = FULL | {"title": " RETRY  loop ends", "events": [2], "facts": []}
    decomposed, composed = {"title": "Cafe\u0301 opens"}, {"title": "Caf\u00e9 opens"}
    found = drafts({"observations": [FULL, again, decomposed, composed]})
    assert [draft.message_ids for draft in found] == [(11, 12), (11, 12)]
    assert found[0].facts == ("MAX_TRIES is 5",)


def test_texts_lose_private_parts_secrets_and_nul_and_are_bounded() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    draft = only(
        FULL
        | {
            "title": "Nul\0 and <private>mine</private> gone " + "x" * 5_000,
            "narrative": f"The key {key} was used. <private>never closed",
            "facts": [f"uses {key}"] * 3 + [f"fact {n}" for n in range(500)],
            "files_modified": ["p" * 9_000],
            "subtitle": "half \ud800 pair",
        }
    )
    stored = repr(draft)
    assert "mine" not in stored
    assert "never closed" not in stored
    assert key not in stored
    assert "\0" not in draft.title
    draft.subtitle.encode()
    assert len(draft.title) < 300
    assert len(draft.facts) < 50
    assert len(draft.files_modified[0]) < 1_000


def test_a_title_is_one_line() -> None:
    assert only(FULL | {"title": "two\n  lines"}).title == "two lines"


def test_the_summary_of_a_turn_belongs_to_its_stop_and_names_its_files() -> None:
    reading = read({"observations": [FULL], "summary": SUMMARY})
    assert reading.compressed.summary == SummaryDraft(
        message_ids=(13,),
        request="Fix the loop",
        completed="It ends",
        files_read=("src/wait.py",),
        files_edited=("src/loop.py",),
        discovery_tokens=500,
    )
    assert not reading.summary_missing


@pytest.mark.parametrize("summary", [None, {}, "", {"request": "", "notes": "n/a"}, [], 3, {"unknown": "x y"}])
def test_a_summary_that_says_nothing_is_missing(summary: object) -> None:
    reading = read({"observations": [FULL], "summary": summary})
    assert reading.compressed.summary is None
    assert reading.summary_missing


@pytest.mark.parametrize(
    "summary",
    ["The loop ends now.", json.dumps({"completed": "The loop ends now."}), {"Completed": ["The loop ends now."]}],
)
def test_a_summary_in_another_shape_is_salvaged(summary: object) -> None:
    draft = read({"observations": [], "summary": summary}).compressed.summary
    assert draft
    assert draft.completed == "The loop ends now."


def test_a_summary_nobody_asked_for_is_ignored() -> None:
    reading = read_answer(answer({"observations": [FULL], "summary": SUMMARY}), make_batch(), strict=False)
    assert (reading.compressed.summary, reading.summary_missing) == (None, False)


def test_an_empty_list_is_nothing_to_record_but_does_not_excuse_a_missing_summary() -> None:
    assert read({"observations": []}).summary_missing
    assert not read({"observations": [], "nothing_to_record": True}).summary_missing
    assert read_answer(answer({"observations": []}), make_batch(), strict=False).compressed.observations == ()


@pytest.mark.parametrize("tool_input", [SUMMARY, {"summary": SUMMARY}, json.dumps(SUMMARY), {"completed": "It ends"}])
def test_the_summary_asked_for_alone_is_read_from_the_answers_top(tool_input: object) -> None:
    draft = read_summary(answer(tool_input), make_batch(make_stop(5)), ())
    assert draft
    assert (draft.completed, draft.message_ids, draft.discovery_tokens) == ("It ends", (5,), 1000)


@pytest.mark.parametrize("hostile", ['{"a":' * 20_000, "[" * 200_000, "{" * 200_000, '{"title":"x","b":[' * 9_000])
def test_deep_or_endless_json_is_refused_in_bounded_time(hostile: str) -> None:
    with pytest.raises(BadAnswer):
        read(text=hostile)


def test_a_tool_input_nested_without_end_is_refused() -> None:
    nested: dict[str, Any] = {}
    for _ in range(10_000):
        nested = {"a": nested}
    with pytest.raises(BadAnswer):
        read(nested)
