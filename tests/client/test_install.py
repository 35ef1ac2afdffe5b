"""Installing for Claude Code adds exactly what is needed, and uninstalling takes exactly that out again."""

import json
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hooks import spool
from service.cli.install import Name
from service.installing.claude_code import TIMEOUTS_S
from service.installing.clients import CLIENTS
from tests.cli.command_line import run_process
from tests.client.conftest import Account
from tests.hooks.hook_process import event

SETTINGS = ".claude/settings.json"
SERVERS = ".claude.json"
THEIRS = """{
    "model": "opus",
    "unknown": {"ünï": [1e3, 1.50]},
    "hooks": {
        "PostToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo hi"}]}
        ],
        "Stop": [ {"hooks": [ {"type": "command", "command": "say done"} ]} ]
    }
}
"""


def commands(settings: dict[str, Any]) -> dict[str, list[str]]:
    return {
        name: [hook["command"] for group in groups for hook in group["hooks"] if "gapless" in hook["command"]]
        for name, groups in settings["hooks"].items()
    }


def test_every_client_of_the_table_can_be_named() -> None:
    assert set(CLIENTS) == set(Name)


def test_all_events_and_the_server_are_there_and_what_was_there_stays(account: Account) -> None:
    account.file(SETTINGS, THEIRS)
    account.file(SERVERS, '{"mcpServers": {"other": {"command": "x"}}, "numStartups": 3}')
    assert account.gapless("install", "--client", "claude-code").code == 0
    settings = json.loads(account.file(SETTINGS).read_text())
    assert {name: len(lines) for name, lines in commands(settings).items()} == dict.fromkeys(TIMEOUTS_S, 1)
    before = json.loads(THEIRS)
    assert {name: settings[name] for name in ("model", "unknown")} == {
        name: before[name] for name in ("model", "unknown")
    }
    for name, groups in before["hooks"].items():
        assert settings["hooks"][name][:-1] == groups
    servers = json.loads(account.file(SERVERS).read_text())
    assert servers["mcpServers"]["other"] == {"command": "x"}
    assert servers["mcpServers"]["gapless"]["args"][-1] == "mcp"
    assert servers["numStartups"] == 3


def test_no_hook_may_take_longer_than_a_person_would_wait() -> None:
    assert max(TIMEOUTS_S.values()) <= 10  # seconds, as this client reads them


def test_installing_twice_changes_nothing(account: Account) -> None:
    account.file(SETTINGS, THEIRS)
    account.gapless("install", "--client", "claude-code")
    once = account.files()
    again = account.gapless("install", "--client", "claude-code")
    assert (again.code, account.files()) == (0, once)
    assert "set up already" in again.stdout


def test_uninstalling_gives_the_files_back_byte_for_byte(account: Account) -> None:
    account.file(SETTINGS, THEIRS)
    account.file(SERVERS, '{"numStartups":3,"mcpServers":{"other":{"command":"x"}}}')
    before = account.files()
    account.gapless("install", "--client", "claude-code")
    assert account.gapless("uninstall", "--client", "claude-code").code == 0
    assert account.files() == before
    assert "nothing of Gapless" in account.gapless("uninstall", "--client", "claude-code").stdout
    assert account.files() == before


def test_hooks_of_ours_that_a_person_moved_are_found_and_theirs_stay(account: Account) -> None:
    account.gapless("install", "--client", "claude-code")
    settings = json.loads(account.file(SETTINGS).read_text())
    ours = settings["hooks"]["Stop"][0]["hooks"][0]
    settings["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "say done"}, ours]}]
    settings["hooks"]["Notification"] = [{"matcher": "x", "hooks": [ours]}]
    account.file(SETTINGS, json.dumps(settings))
    account.gapless("uninstall", "--client", "claude-code")
    assert json.loads(account.file(SETTINGS).read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }


def test_a_dry_run_shows_the_difference_and_makes_none(account: Account) -> None:
    account.file(SETTINGS, THEIRS)
    before = account.files()
    shown = account.gapless("install", "--client", "claude-code", "--dry-run")
    assert (shown.code, account.files(), account.data.exists()) == (0, before, False)
    assert '+        "SessionStart": [' in shown.stdout
    assert '-    "model"' not in shown.stdout
    changes = account.gapless("install", "--client", "claude-code", "--dry-run", "--json").json["changes"]
    assert [Path(change["path"]).name for change in changes] == ["settings.json", ".claude.json"]


@pytest.mark.parametrize(
    "text",
    [
        '{"model": "opus",',
        "// mine\n{}",
        '{"model": /* mine */ "opus"}',
        "[]",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": {"SessionEnd": {"mine": 1}}}',
    ],
)
def test_broken_settings_are_refused_in_words_and_left_alone(account: Account, text: str) -> None:
    path = account.file(SETTINGS, text)
    before = account.files()
    refused = account.gapless("install", "--client", "claude-code")
    assert (refused.code, account.files()) == (2, before)
    assert str(path) in refused.stderr
    assert "nothing was changed" in refused.stderr


def test_the_files_mode_and_links_stay(account: Account) -> None:
    kept = account.file("dotfiles/claude.json", THEIRS)
    kept.chmod(0o640)
    account.file(SETTINGS).parent.mkdir()
    account.file(SETTINGS).symlink_to(kept)
    account.gapless("install", "--client", "claude-code")
    assert account.file(SETTINGS).is_symlink()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert "gapless_hook.py" in kept.read_text()
    assert stat.S_IMODE(account.file(SERVERS).stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == ["claude.json"]


def test_the_clients_own_variable_says_where_its_settings_are(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(account.home / "elsewhere"))
    account.gapless("install", "--client", "claude-code")
    assert set(account.files()) == {"elsewhere/settings.json", "elsewhere/.claude.json"}


def test_every_command_of_the_file_runs_in_a_shell_and_keeps_its_event(account: Account, tmp_path: Path) -> None:
    account.gapless("install", "--client", "claude-code")
    account.start_nothing()
    for name, [line] in commands(json.loads(account.file(SETTINGS).read_text())).items():
        ran = subprocess.run(
            ["/bin/sh", "-c", line],
            input=event(hook_event_name=name),
            cwd=tmp_path,
            env={"HOME": str(account.home)},
            capture_output=True,
            check=False,
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b""), name
    assert len(spool.pending(str(account.data))) == len(TIMEOUTS_S)


def test_another_data_folder_is_named_in_every_entry(account: Account, command: Any, tmp_path: Path) -> None:
    other = tmp_path / "other data"
    command(other, "install", "--client", "claude-code")
    lines = commands(json.loads(account.file(SETTINGS).read_text()))["Stop"]
    assert shlex.split(lines[0])[-3:] == ["--home", str(other), "--start-service"]
    server = json.loads(account.file(SERVERS).read_text())["mcpServers"]["gapless"]
    assert server["env"] == {"GAPLESS_HOME": str(other)}


def test_with_the_plugin_nothing_is_entered_twice(account: Account) -> None:
    account.gapless("install", "--client", "claude-code")
    settings = json.loads(account.file(SETTINGS).read_text())
    account.file(SETTINGS, json.dumps({**settings, "enabledPlugins": {"gapless@gapless": True}}))
    account.gapless("install", "--client", "claude-code")
    assert json.loads(account.file(SETTINGS).read_text()) == {"enabledPlugins": {"gapless@gapless": True}}
    assert not account.file(SERVERS).exists()


def test_file_memory_asks_before_files_are_opened_only_when_it_is_on(account: Account) -> None:
    account.gapless("install", "--client", "claude-code")
    assert "PreToolUse" not in json.loads(account.file(SETTINGS).read_text())["hooks"]
    account.data.mkdir(exist_ok=True)
    (account.data / "settings.toml").write_text('FILE_INJECT = "on"\n')
    account.gapless("install", "--client", "claude-code")
    [group] = json.loads(account.file(SETTINGS).read_text())["hooks"]["PreToolUse"]
    assert group["matcher"].startswith("Read|")


def test_the_interpreter_is_recorded_for_hooks(account: Account) -> None:
    account.gapless("install", "--client", "claude-code")
    assert (account.data / "run" / "python").read_text() == sys.executable


def test_purging_asks_first_and_deletes_the_data_folder_alone(account: Account) -> None:
    account.gapless("install", "--client", "claude-code")
    account.gapless("remember", "the port is 8080")
    refused = account.gapless("uninstall", "--client", "claude-code", "--purge")
    assert refused.code == 1
    assert (account.data / "gapless.db").exists()
    assert "gapless_hook.py" in account.file(SETTINGS).read_text()
    done = account.gapless("uninstall", "--client", "claude-code", "--purge", "--yes", "--json")
    assert done.json["purged"] is True
    assert not account.data.exists()
    assert account.gapless("uninstall", "--client", "claude-code", "--purge", "--yes").code == 0


def test_a_folder_that_is_no_data_folder_is_not_purged(account: Account, command: Any) -> None:
    account.file("work/notes.txt", "precious")
    refused = command(account.home / "work", "uninstall", "--client", "claude-code", "--purge", "--yes")
    assert refused.code == 2
    assert "does not look like a data folder" in refused.stderr
    assert account.file("work/notes.txt").exists()


def test_the_last_client_to_go_ends_the_service(account: Account) -> None:
    account.data.mkdir(mode=0o700)
    (account.data / "settings.toml").write_text('PORT = 0\nCHROMA = "off"\n')
    account.gapless("install", "--client", "claude-code")
    account.gapless("install", "--client", "codex")
    assert run_process(account.data, "up").code == 0
    try:
        account.gapless("uninstall", "--client", "claude-code")
        assert account.gapless("status", "--json").json["service"]["running"] is True
        account.gapless("uninstall", "--client", "codex")
        assert account.gapless("down").stdout == "it was not running\n"
    finally:
        account.gapless("down")
