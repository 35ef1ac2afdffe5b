"""Shell commands: what kind of work they are, and what commits, pull requests and packages say."""

import pytest

from tests.compressors.rules_turns import bash, failed, rules
from workers.compressors.rules.commands import Work, works_of

MESSAGE = "Add retry to upload\n\nThe server drops idle\nsockets."


@pytest.mark.parametrize(
    ("command", "works"),
    [
        ("cd app && go test ./... 2>&1 | tail -5", (Work.TRIVIAL, Work.TEST)),
        ("CI=1 npm run test:unit -- --watch=false", (Work.TEST,)),
        ("timeout 60 python -m pytest -q", (Work.TEST,)),
        ("mise run lint", (Work.LINT,)),
        ("npx tsc --noEmit", (Work.OTHER,)),
        ("cargo build --release", (Work.BUILD,)),
        ('git commit -m "add: go test in the message"', (Work.COMMIT,)),
        ("cat <<'EOF' > a.txt\ngo test\nEOF", (Work.TRIVIAL,)),
        ("uv add httpx", (Work.DEPENDENCY,)),
        ("pip install -r requirements.txt", (Work.OTHER,)),
        ("", ()),
    ],
)
def test_a_command_line_is_the_kinds_of_work_of_its_parts(command: str, works: tuple[Work, ...]) -> None:
    assert works_of(command) == works


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "Add retry to upload" -m "The server drops idle sockets."',
        "git add . && git commit -m 'Add retry to upload\n\nThe server drops idle sockets.'",
        f"git commit -m \"$(cat <<'EOF'\n{MESSAGE}\n\nSigned-off-by: A B\nEOF\n)\"",
        f"git commit -F - <<EOF\n{MESSAGE}\nCo-Authored-By: A <a@example.org>\nEOF",
    ],
)
def test_a_commit_is_told_by_its_message_without_trailers(command: str) -> None:
    (draft,) = rules(bash(1, command, "[main 1a2b3c4] Add retry to upload\n 1 file changed")).observations
    assert (draft.type, draft.title, draft.subtitle) == ("feature", "Add retry to upload", "commit main 1a2b3c4")
    assert draft.narrative == "The server drops idle sockets."


def test_a_commit_whose_push_failed_was_made() -> None:
    error = "Exit code 1\n[main 1a2b3c4] Add retry\n ! [rejected] main -> main\nerror: failed to push some refs"
    titles = [draft.title for draft in rules(failed(1, 'git commit -m "Add retry" && git push', error)).observations]
    assert "Add retry" in titles


def test_a_commit_that_a_hook_refused_was_not_made() -> None:
    made = rules(failed(1, 'git commit -m "Add retry"', "Exit code 1\nerror: lint failed"))
    assert all(draft.title != "Add retry" for draft in made.observations)


def test_a_commit_without_a_message_takes_the_subject_that_git_printed() -> None:
    (draft,) = rules(bash(1, "git commit --amend --no-edit", "[main 1a2b3c4] Add retry\n 1 file changed")).observations
    assert draft.title == "Add retry"


def test_a_pull_request_is_told_by_its_title_and_body() -> None:
    command = 'gh pr create --title "Add retry" --body "$(cat <<\'EOF\'\n## Why\n- sockets drop\nEOF\n)"'
    (draft,) = rules(bash(1, command, "https://example.org/pull/7")).observations
    assert (draft.title, draft.subtitle, draft.facts) == (
        "Opened: Add retry",
        "https://example.org/pull/7",
        ("Why", "sockets drop"),
    )


def test_a_new_dependency_is_a_change_that_names_it() -> None:
    (draft,) = rules(bash(1, "go get github.com/spf13/cobra@v1.8.0", "added")).observations
    assert draft.title == "Dependency added: github.com/spf13/cobra@v1.8.0"
