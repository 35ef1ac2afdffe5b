"""What the rules make of a turn: outcomes, decisions, answers, reports, summaries."""

import json

import pytest

from service.models import Observation
from tests.compressors.batches import make_batch, make_message, make_prompt, make_stop
from tests.compressors.rules_turns import bash, edit, failed, report, rules, tool
from workers.compressors.rules import RulesCompressor
from workers.compressors.rules.text import first_sentence

FAILING = "--- FAIL: TestLogin (0.02s)\n    login_test.go:31: expected 200, got 401\nFAIL\nFAIL\texample.org/app\t0.1s"
LONG_ANSWER = "The cache is keyed by path alone, so two tenants share an entry.\n" + "\n".join(
    f"- Lookup number {n} goes through it" for n in range(30)
)


async def test_the_same_batch_gives_the_same_answer() -> None:
    batch = make_batch(edit(1, "/repo/a.go", "x := 1", "x := loadTotal()"), make_stop(2, "Changed the total."))
    compressor = RulesCompressor()
    assert await compressor.compress(batch, strict=False) == await compressor.compress(batch, strict=True)
    await compressor.close()


def test_a_test_that_failed_and_then_passed_is_a_bugfix_that_names_the_file_edited_in_between() -> None:
    made = rules(
        edit(1, "/repo/other.go", "a()", "b()"),
        failed(2, "go test ./...", f"Exit code 1\n{FAILING}"),
        edit(3, "/repo/login.go", "return 401", "return status"),
        bash(4, "go test ./...", "ok  \texample.org/app\t0.2s"),
    )
    fix = next(draft for draft in made.observations if draft.title.startswith("Fixed"))
    assert fix.type == "bugfix"
    assert "TestLogin" in fix.title
    assert any("expected 200, got 401" in fact for fact in fix.facts)
    assert fix.files_modified == ("login.go",)
    assert fix.message_ids == (2, 4)
    types = {draft.files_modified: draft.type for draft in made.observations if draft is not fix}
    assert types == {("other.go",): "change", ("login.go",): "bugfix"}


def test_a_failure_that_is_answered_in_its_turn_is_not_told_twice() -> None:
    made = rules(failed(1, "go test ./...", FAILING), bash(2, "go test ./...", "ok  \tapp\t0.2s"))
    assert len(made.observations) == 1


def test_a_failure_hidden_by_a_pipe_counts_by_its_output() -> None:
    made = rules(bash(1, "go test ./... 2>&1 | tail -5", FAILING))
    (draft,) = made.observations
    assert draft.type == "discovery"
    assert draft.metadata["open_failure"] == {"work": "test", "names": ["TestLogin"]}


def test_a_passing_run_that_prints_zero_failures_is_no_failure() -> None:
    assert rules(bash(1, "pytest -q", "12 passed, 0 failed in 1.2s")).observations == ()


def test_a_success_closes_a_failure_stored_by_an_earlier_batch_once() -> None:
    before = Observation(
        observation_id=41,
        session_id="s-1",
        project="demo",
        type="discovery",
        title="Test failed: TestLogin",
        subtitle="",
        narrative="",
        facts=("login_test.go:31: expected 200, got 401",),
        concepts=(),
        files_read=(),
        files_modified=(),
        created_at_epoch=1,
        metadata={"open_failure": {"work": "test", "names": ["TestLogin"]}},
    )
    messages = (edit(1, "/repo/login.go", "401", "200"), bash(2, "go test ./...", "ok  \tapp\t0.2s"))
    fixes = [draft for draft in rules(*messages, earlier=(before,)).observations if draft.title.startswith("Fixed")]
    assert [draft.metadata for draft in fixes] == [{"closes_failure": 41}]
    assert not [draft for draft in rules(*messages).observations if draft.title.startswith("Fixed")]


def test_a_failed_command_keeps_the_line_that_says_why() -> None:
    (draft,) = rules(
        failed(1, "git merge main", "Exit code 1\nAuto-merging a.go\nCONFLICT (content): a.go")
    ).observations
    assert "CONFLICT (content): a.go" in draft.facts


def test_trivial_failures_and_commands_leave_nothing() -> None:
    made = rules(
        bash(1, "ls -la", "a\nb"),
        bash(2, "git status", "clean"),
        failed(3, "", "File has not been read yet. Read it first before writing to it.", tool="Edit"),
        failed(4, "grep foo bar.txt", "Exit code 1"),
    )
    assert made.observations == ()
    assert made.summary is None


def test_a_plan_is_a_decision() -> None:
    plan = "# Cache tokens\n\n- Keep them for an hour\n- Drop them at logout"
    (draft,) = rules(tool(1, "ExitPlanMode", {"plan": plan}, {"plan": plan})).observations
    assert (draft.type, draft.title) == ("decision", "Plan: Cache tokens")
    assert draft.facts == ("Keep them for an hour", "Drop them at logout")


def test_the_user_s_choice_is_a_decision_with_its_question() -> None:
    options = [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL", "description": "a server"}]
    asked = {"questions": [{"question": "Which store?", "options": options}]}
    (draft,) = rules(tool(1, "AskUserQuestion", asked, {"answers": {"Which store?": "SQLite"}})).observations
    assert (draft.type, draft.title, draft.narrative) == ("decision", "User chose: SQLite", "Which store?")
    assert draft.facts == ("one file",)


def test_a_subagent_s_result_is_recorded_once_though_two_events_tell_it() -> None:
    text = "The login flow starts in auth.go and ends in session.go, where the token is written to disk unencrypted."
    task = tool(
        2, "Task", {"description": "Explore login"}, {"agentId": "a1", "content": [{"type": "text", "text": text}]}
    )
    (draft,) = rules(report(1, text), task).observations
    assert (draft.title, draft.message_ids) == ("Explore login", (1, 2))


def test_an_issue_of_a_tracker_keeps_its_key_and_title() -> None:
    issue = json.dumps({"identifier": "APP-7", "title": "Login loops", "description": "It redirects for ever."})
    (draft,) = rules(
        tool(1, "mcp__tracker__get_issue", {"id": "APP-7"}, [{"type": "text", "text": issue}])
    ).observations
    assert (draft.title, draft.narrative) == ("APP-7 Login loops", "It redirects for ever.")


def test_a_page_from_the_web_keeps_the_question_and_the_address() -> None:
    asked = {"url": "https://example.org/a", "prompt": "How long do tokens live?"}
    (draft,) = rules(tool(1, "WebFetch", asked, {"result": "Tokens live for one hour."})).observations
    assert (draft.title, draft.subtitle) == ("Web: How long do tokens live?", "https://example.org/a")
    assert draft.narrative == "Tokens live for one hour."


def test_a_last_message_is_sorted_into_the_fields_of_the_summary() -> None:
    words = "I fixed the login redirect.\n\nThe root cause was a stale cookie.\n\nWant me to commit this?"
    made = rules(
        edit(1, "/repo/login.go", "a()", "b()"), make_stop(2, words), prompts=(make_prompt("Fix login. Now."),)
    )
    assert made.summary is not None
    assert made.summary.request == "Fix login. Now."
    assert made.summary.completed == "I fixed the login redirect."
    assert made.summary.learned == "The root cause was a stale cookie."
    assert made.summary.next_steps == "Want me to commit this?"
    assert made.summary.files_edited == ("login.go",)
    assert made.summary.message_ids == (2,)


def test_a_section_with_a_heading_goes_to_the_field_it_names() -> None:
    made = rules(edit(1, "/repo/a.go", "a()", "b()"), make_stop(2, "Renamed it.\n\n## Next steps\n- Update the docs"))
    assert made.summary is not None
    assert made.summary.next_steps == "Update the docs"


def test_a_line_that_announces_a_list_opens_a_section_until_the_list_ends() -> None:
    words = "Renamed it.\n\nNext steps:\n- Update the docs\n  and the examples\n\nIt took an hour."
    made = rules(edit(1, "/repo/a.go", "a()", "b()"), make_stop(2, words))
    assert made.summary is not None
    assert made.summary.next_steps == "Update the docs\nand the examples"
    assert made.summary.completed == "Renamed it.\nIt took an hour."


def test_a_request_does_not_end_at_a_colon() -> None:
    made = rules(make_stop(1, "Closed."), prompts=(make_prompt("Good. Close that race too: two at once. Then rest."),))
    assert made.summary is not None
    assert made.summary.request == "Good. Close that race too: two at once."


def test_code_blocks_and_the_lines_that_announce_them_are_left_out() -> None:
    made = rules(
        edit(1, "/repo/a.go", "a()", "b()"), make_stop(2, "Renamed it.\nRun:\n```sh\nrm -rf build\n```\nIt works.")
    )
    assert made.summary is not None
    assert made.summary.completed == "Renamed it.\nIt works."


def test_a_long_answer_without_edits_is_a_discovery_of_its_own_and_the_summary_keeps_its_head() -> None:
    made = rules(make_stop(1, LONG_ANSWER))
    (draft,) = made.observations
    assert draft.type == "discovery"
    assert draft.title == "The cache is keyed by path alone, so two tenants share an entry."
    assert made.summary is not None
    assert draft.title in made.summary.learned
    assert "Lookup number 29 goes through it" in draft.facts
    assert "Lookup number 29" not in made.summary.learned


def test_a_decision_stated_in_words_is_a_decision() -> None:
    made = rules(edit(1, "/repo/a.go", "a()", "b()"), make_stop(2, "Done. I went with SQLite rather than a server."))
    assert [draft.title for draft in made.observations if draft.type == "decision"] == [
        "I went with SQLite rather than a server."
    ]


def test_a_stop_without_a_word_or_an_edit_leaves_no_summary() -> None:
    assert rules(make_stop(1, "")).summary is None


def test_no_summary_is_made_when_none_is_due() -> None:
    assert rules(edit(1, "/repo/a.go", "a()", "b()")).summary is None


def test_a_backlog_of_turns_is_told_turn_by_turn() -> None:
    first, second = make_prompt("Rename a"), make_prompt("Rename b", prompt_number=2, created_at_epoch=2_500)
    made = rules(
        edit(1, "/repo/a.go", "a()", "b()"),
        make_stop(2, "Renamed a."),
        edit(3, "/repo/a.go", "c()", "d()"),
        make_stop(4, "Renamed b."),
        prompts=(first, second),
    )
    assert [draft.message_ids for draft in made.observations] == [(1,), (3,)]
    assert made.summary is not None
    assert made.summary.request == "Rename a / Rename b"
    assert made.summary.completed == "Renamed a.\nRenamed b."


def test_a_client_s_prompt_id_decides_before_the_time_does() -> None:
    first = make_prompt("Rename a", client_prompt_id="p-1")
    second = make_prompt("Rename b", client_prompt_id="p-2", prompt_number=2, created_at_epoch=900)
    late = edit(2, "/repo/a.go", "a()", "b()")
    made = rules(
        make_message(2, tool_name="Edit", payload=late.payload, client_prompt_id="p-1"),
        edit(3, "/repo/a.go", "c()", "d()"),
        prompts=(first, second),
    )
    assert [draft.message_ids for draft in made.observations] == [(2,), (3,)]


@pytest.mark.parametrize(
    "opener",
    [
        "That's a great question.",
        "Good points.",
        "Yes, exactly.",
        "You're right again.",
        "Now I understand the setup.",
        "Found it.",
    ],
)
def test_an_opener_is_no_title(opener: str) -> None:
    assert first_sentence(f"{opener} The cache is keyed by branch.", 100) == "The cache is keyed by branch."
