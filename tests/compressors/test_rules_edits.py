"""Edits as observations: one a file and turn, by what changed in it."""

from dataclasses import replace

from service.models import Message, ObservationDraft
from tests.compressors.rules_turns import bash, edit, rules, tool, write


def only(*messages: Message) -> ObservationDraft:
    (draft,) = rules(*messages).observations
    return draft


def test_all_edits_of_a_file_in_a_turn_are_one_observation_of_all_their_messages() -> None:
    draft = only(edit(1, "/repo/pkg/a.go", "one()", "two()"), edit(2, "/repo/pkg/a.go", "three()", "four()"))
    assert (draft.files_modified, draft.message_ids) == (("pkg/a.go",), (1, 2))


def test_a_new_function_is_a_feature_named_in_the_title() -> None:
    draft = only(edit(1, "/repo/a.go", "x", "x\n\nfunc (s *Store) LoadTotal(id int) error {\n}"))
    assert (draft.type, draft.title) == ("feature", "a.go: add LoadTotal")
    assert "func (s *Store) LoadTotal(id int) error" in draft.facts


def test_a_renamed_function_is_a_refactoring() -> None:
    draft = only(edit(1, "/repo/a.py", "def load_total(x):", "def read_total(x):"))
    assert (draft.type, draft.title) == ("refactor", "a.py: add read_total; remove load_total")


def test_a_changed_body_names_the_function_around_it() -> None:
    draft = only(edit(1, "/repo/a.py", "def total(x):\n    return 1", "def total(x):\n    return x"))
    assert (draft.type, draft.title) == ("change", "a.py: change total")


def test_a_new_file_is_a_feature() -> None:
    draft = only(write(1, "/repo/src/cart.ts", "export class Cart {\n}\n"))
    assert (draft.type, draft.title, draft.files_modified) == ("feature", "New cart.ts: Cart", ("src/cart.ts",))


def test_comments_are_the_narrative_and_messages_are_facts() -> None:
    draft = only(
        edit(
            1,
            "/repo/a.go",
            "x",
            '// Retries once when the lock is held.\nreturn errors.New("the lock is held by another")',
        )
    )
    assert draft.narrative == "Retries once when the lock is held."
    assert "the lock is held by another" in draft.facts


def test_a_patch_of_the_client_is_preferred_and_its_context_names_the_place() -> None:
    patch = [{"lines": [" func Total() int {", "-\treturn 1", "+\treturn sumOfItems", " }"]}]
    asked = {"file_path": "/repo/a.go", "old_string": "ignored", "new_string": "ignored"}
    draft = only(tool(1, "Edit", asked, {"filePath": "/repo/a.go", "structuredPatch": patch}))
    assert draft.title == "a.go: change Total"
    assert draft.facts == ("return sumOfItems",)


def test_a_file_outside_the_session_s_folder_keeps_its_whole_name() -> None:
    assert only(edit(1, "/etc/app.toml", "a = 1", "a = 2")).files_modified == ("/etc/app.toml",)


def test_a_cd_does_not_change_the_names_of_files() -> None:
    moved = edit(2, "/repo/pkg/b.go", "one()", "two()")
    moved.payload["cwd"] = "/repo/pkg"
    assert only(moved).files_modified == ("pkg/b.go",)


def test_an_edit_put_back_in_the_same_turn_still_names_its_file() -> None:
    draft = only(edit(1, "/repo/a.go", "one()", "two()"), edit(2, "/repo/a.go", "two()", "one()"))
    assert (draft.title, draft.files_modified) == ("a.go: no lasting change", ("a.go",))


def test_the_marks_of_a_merge_conflict_are_not_facts() -> None:
    draft = only(edit(1, "/repo/a.go", "<<<<<<< HEAD\na()\n=======\nb()\n>>>>>>> main", "b()"))
    assert draft.title.startswith("a.go: resolve merge conflict")
    assert not any("<<<" in fact or ">>>" in fact for fact in draft.facts)


def test_a_patch_text_of_another_client_is_read_file_by_file() -> None:
    added = "*** Add File: new.py\n+def fresh():"
    updated = "*** Update File: old.py\n@@\n-a = 1\n+a = 2"
    made = rules(tool(1, "apply_patch", {"input": f"*** Begin Patch\n{added}\n{updated}\n*** End Patch"}, "ok"))
    assert [draft.files_modified for draft in made.observations] == [("new.py",), ("old.py",)]


def test_an_edit_that_failed_changed_nothing() -> None:
    failure = replace(edit(1, "/repo/a.go", "a", "b"), hook_event="PostToolUseFailure")
    assert rules(failure).observations == ()


def test_a_turn_s_commit_gives_its_edits_their_kind() -> None:
    commit = bash(2, 'git commit -am "fix: count items once"', "[main 1a2b3c4] fix: count items once")
    made = rules(edit(1, "/repo/a.go", "a()", "b()"), commit)
    assert {draft.type for draft in made.observations} == {"bugfix"}


def test_titles_stay_short_however_many_names_there_are() -> None:
    body = "\n".join(f"func AVeryLongNameOfAFunctionNumber{n}() {{}}" for n in range(40))
    assert len(only(write(1, "/repo/a.go", body)).title) <= 100


def test_a_comment_is_a_better_title_than_the_line_below_it() -> None:
    draft = only(edit(1, "/repo/a.go", "x", "x\n// Close the file before renaming it.\nf.Close()"))
    assert draft.title == "a.go: Close the file before renaming it."
