"""What holds for every command: exit codes, reasons on stderr, no stack trace, settings from where they belong."""

import shlex
import subprocess
from pathlib import Path

import pytest

from service.version import VERSION
from tests.cli.command_line import Command, run_process


def test_the_version_is_printed(command: Command, tmp_path: Path) -> None:
    assert command(tmp_path, "--version").stdout == f"{VERSION}\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["queue", "nonsense"], ["search", "--nonsense"], ["get"]])
def test_wrong_usage_exits_2_and_says_so_on_stderr(command: Command, tmp_path: Path, arguments: list[str]) -> None:
    outcome = command(tmp_path, *arguments)
    assert outcome.code == 2
    assert outcome.stderr
    assert not outcome.stdout


def test_a_misspelt_option_is_answered_with_the_nearest(command: Command, tmp_path: Path) -> None:
    assert "--project" in command(tmp_path, "search", "--projct", "x").stderr


def test_a_misspelt_setting_in_the_file_is_an_error_that_names_the_nearest(command: Command, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("CONSUMRES = 3\n")
    outcome = command(tmp_path, "settings")
    assert outcome.code == 1
    assert "CONSUMERS" in outcome.stderr


def test_a_misspelt_setting_in_the_environment_is_a_warning(tmp_path: Path) -> None:
    outcome = run_process(tmp_path, "settings", "--json", GAPLESS_CONSUMRES="3")
    assert outcome.code == 0
    assert outcome.stderr.startswith("gapless: warning: ")
    assert "CONSUMERS" in outcome.stderr


def test_settings_name_their_source_and_hide_secrets(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.toml").write_text("CONSUMERS = 3\n")
    monkeypatch.setenv("GAPLESS_ANTHROPIC_API_KEY", "sk-ant-of-the-test")
    told = command(tmp_path, "settings", "--json")
    assert told.json["settings"]["CONSUMERS"] == 3
    assert told.json["sources"]["CONSUMERS"] == "settings.toml"
    assert told.json["sources"]["ANTHROPIC_API_KEY"] == "GAPLESS_ANTHROPIC_API_KEY"
    assert told.json["sources"]["PORT"] == "default"
    assert "of-the-test" not in told.stdout + command(tmp_path, "settings").stdout


def test_a_data_folder_that_cannot_be_made_is_one_line_on_stderr(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments in (["status"], ["up"], ["serve"], ["work"], ["search", "x"], ["queue", "status"]):
        outcome = command(tmp_path / "file" / "home", *arguments)
        assert outcome.code == 1
        assert outcome.stderr.startswith("gapless: ")
        assert outcome.stderr.count("\n") == 1
        assert "a bug" not in outcome.stderr


def test_a_database_that_is_none_is_one_line_on_stderr(command: Command, tmp_path: Path) -> None:
    (tmp_path / "gapless.db").write_bytes(b"no database" * 500)
    outcome = command(tmp_path, "status")
    assert outcome.code == 1
    assert outcome.stderr.startswith("gapless: ")
    assert "a bug" not in outcome.stderr


def test_a_bug_is_told_without_a_stack_trace(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.settings.load", lambda: 1 / 0)
    outcome = command(tmp_path, "settings")
    assert outcome.code == 1
    assert "ZeroDivisionError" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_reader_that_goes_away_is_no_bug(memory: Path) -> None:
    import sys

    from tests.cli.command_line import environment

    with subprocess.Popen(
        [sys.executable, "-I", "-m", "service.cli", "queue", "list", "--json"],
        env=environment(memory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_status_works_without_a_service_and_says_how_to_start_it(command: Command, memory: Path) -> None:
    report = command(memory, "status", "--json").json
    assert report["service"]["running"] is False
    assert report["queue"]["states"]["done"] > 0
    assert any("gapless up" in problem for problem in report["problems"])
    assert "gapless up" in command(memory, "status").stdout


def test_the_printed_hook_command_runs_in_a_shell_and_keeps_the_event(command: Command, tmp_path: Path) -> None:
    home = tmp_path / "Jane Doe" / "héé"
    line = command(home, "hook-command").stdout.strip()
    assert shlex.split(line)[1:3] == ["-I", "-S"]
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=b'{"hook_event_name":"Stop","session_id":"s","cwd":"/nowhere"}',
        env={"GAPLESS_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(list((home / "spool").glob("*.event"))) == 1
