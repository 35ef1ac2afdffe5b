"""Uninstalling takes out what installing for the same data folder put in, and nothing that anybody else wrote."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from service.installing.clients import CLIENTS
from tests.cli.command_line import Command
from tests.client.conftest import Account

CLAUDE = ".claude/settings.json"
CLAUDE_SERVERS = ".claude.json"
CODEX = ".codex/config.toml"
CODEX_HOOKS = ".codex/hooks.json"
GEMINI = ".gemini/settings.json"
CURSOR = ".cursor/hooks.json"
CURSOR_SERVERS = ".cursor/mcp.json"
OPENCODE = ".config/opencode/plugins/gapless.js"


def come_and_go(account: Account, client: str) -> None:
    assert account.gapless("install", "--client", client).code == 0
    assert account.gapless("uninstall", "--client", client).code == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_files_that_were_not_there_are_gone_again(account: Account, client: str) -> None:
    come_and_go(account, client)
    assert account.files() == {}


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude-code", CLAUDE, "{}"),
        ("claude-code", CLAUDE, "{}\n"),
        ("claude-code", CLAUDE, '{"hooks": {}, "mcpServers": {}}'),
        ("claude-code", CLAUDE, '{\n  "hooks": {\n    "Stop": []\n  }\n}\n'),
        ("claude-code", CLAUDE_SERVERS, '{\r\n\t"numStartups": 3,\r\n\t"mcpServers": { }\r\n}'),
        ("codex", CODEX_HOOKS, '{"hooks":{}}'),
        ("codex", CODEX, 'model = "o3"\n[mcp_servers.other]\ncommand = "x"'),
        ("codex", CODEX, 'model = "o3"\r\n\r\n[mcp_servers.other] # theirs\r\ncommand = "x"\r\n'),
        ("codex", CODEX, 'notes = """\n[mcp_servers.gapless]\nmine = 1\n"""\nlow = nan\n'),
        ("codex", CODEX, "[mcp_servers]\n\n# to come\n"),
        ("gemini", GEMINI, '{\n  // my theme\n  "ui": {"theme": "Dracula"} /* , it is */ // dark\n}\n'),
        ("gemini", GEMINI, '// mine\n{\n  "hooks": {\n    // none, yet\n  }\n}\n'),
        ("cursor", CURSOR, '{"version": 1}'),
        ("cursor", CURSOR, '{"version": 1, "hooks": {}}'),
        ("cursor", CURSOR, '{"hooks": {}, "version": 1}'),
        ("cursor", CURSOR, '{"hooks": {"stop": [{"command": "say done"}]}, "version": 1}'),
        ("cursor", CURSOR_SERVERS, '{"mcpServers": {}}'),
    ],
)
def test_files_that_were_there_are_as_before(account: Account, client: str, name: str, text: str) -> None:
    account.file(name, text)
    before = account.files()
    come_and_go(account, client)
    assert account.files() == before


HOOKS_OF_OTHERS = (
    "~/bin/log_gapless_hook.py.sh",
    "/opt/my_gapless_hook.py",
    "/opt/gapless_hook.py/run",
    "echo 'about gapless_hook.py in words'",
    "echo 'unclosed gapless_hook.py",
)


@pytest.mark.parametrize("line", HOOKS_OF_OTHERS)
def test_a_hook_that_only_mentions_ours_stays(account: Account, line: str) -> None:
    account.file(CLAUDE, json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}}))
    account.file(CURSOR, json.dumps({"version": 1, "hooks": {"stop": [{"command": line}]}}))
    before = account.files()
    come_and_go(account, "claude-code")
    come_and_go(account, "cursor")
    assert account.files() == before


def test_a_hook_of_ours_is_known_as_a_list_of_arguments_too(account: Account) -> None:
    line = account.gapless("hook-command").stdout
    command, *arguments = shlex.split(line)
    hook = {"type": "command", "command": command, "args": arguments}
    account.file(CLAUDE, json.dumps({"model": "opus", "hooks": {"Stop": [{"hooks": [hook]}]}}))
    account.gapless("uninstall", "--client", "claude-code")
    assert json.loads(account.file(CLAUDE).read_text()) == {"model": "opus"}


@pytest.mark.parametrize("line", ["{hook} --home /b", "{hook} --home=/b", "GAPLESS_HOME=/b {hook}"])
def test_a_hook_belongs_to_the_data_folder_that_it_names(account: Account, command: Command, line: str) -> None:
    line = line.format(hook=account.gapless("hook-command").stdout.strip())
    account.file(CURSOR, json.dumps({"version": 1, "hooks": {"stop": [{"command": line}]}}))
    before = account.files()
    account.gapless("uninstall", "--client", "cursor")
    assert account.files() == before
    command(Path("/b"), "uninstall", "--client", "cursor")
    assert json.loads(account.file(CURSOR).read_text()) == {"version": 1}


def test_a_plugin_of_somebody_else_is_neither_overwritten_nor_deleted(account: Account) -> None:
    account.file(OPENCODE, "export const Mine = 1\n")
    before = account.files()
    refused = account.gapless("install", "--client", "opencode")
    assert refused.code == 2
    assert "it is no plugin of Gapless; rename it first, nothing was changed" in refused.stderr
    assert account.gapless("uninstall", "--client", "opencode").code == 0
    assert account.files() == before


OURS = """[mcp_servers.gapless]
command = "gapless"
args = [
  "mcp",
]
"""
OTHER = '[mcp_servers.other]\ncommand = "x"\n'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"{OTHER}\n{OURS}\nenabled = false\nstartup_timeout_sec = 60\n", OTHER),
        (f'model = "o3"\n\n{OURS}# give it longer\nenabled = false\n', 'model = "o3"\n'),
        (f"{OURS}\n  [mcp_servers.gapless.env]\n  A = 'b'\n\n# theirs\n{OTHER}", f"\n# theirs\n{OTHER}"),
        (
            f"{OURS}{OTHER}[mcp_servers.'gapless'.env] # ours\nA = 1\n[x]\ny = [\n  [1],\n]\n",
            f"{OTHER}[x]\ny = [\n  [1],\n]\n",
        ),
        (
            f'{OTHER}\n{OURS}[x]\ny = """\n[mcp_servers.gapless]\n"""\n',
            f'{OTHER}[x]\ny = """\n[mcp_servers.gapless]\n"""\n',
        ),
        (f"{OTHER}\n{OURS}\n# the end\n", f"{OTHER}\n# the end\n"),
    ],
)
def test_codexs_table_goes_as_a_whole_and_alone(account: Account, text: str, left: str) -> None:
    account.file(CODEX, text)
    expected = tomllib.loads(text)
    del expected["mcp_servers"]["gapless"]
    assert account.gapless("uninstall", "--client", "codex").code == 0
    assert account.file(CODEX).read_text() == left
    assert {"mcp_servers": {}, **tomllib.loads(left)} == expected


def test_codexs_table_is_replaced_when_what_it_runs_has_changed(account: Account) -> None:
    account.file(CODEX, f"{OTHER}\n{OURS}\nenabled = false\n")
    account.gapless("install", "--client", "codex")
    servers = tomllib.loads(account.file(CODEX).read_text())["mcp_servers"]
    assert servers["other"] == {"command": "x"}
    assert servers["gapless"]["args"][-2:] == ["service.cli", "mcp"]


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("uninstall", 'mcp_servers = { gapless = { command = "gapless" } }\n'),
        ("uninstall", 'mcp_servers.gapless.command = "gapless"\n[x]\n'),
        ("uninstall", '[mcp_servers]\ngapless = { command = "gapless" }\n'),
        ("install", 'mcp_servers = { other = { command = "x" } }\n'),
        ("install", "mcp_servers = 1\n"),
    ],
)
def test_what_cant_be_changed_there_is_refused_and_no_file_changes(account: Account, action: str, text: str) -> None:
    path = account.file(CODEX, text)
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": account.gapless("hook-command").stdout}]}]}
    account.file(CODEX_HOOKS, json.dumps({"hooks": hooks}))
    before = account.files()
    refused = account.gapless(action, "--client", "codex")
    assert (refused.code, account.files()) == (2, before)
    assert f"{path}: `mcp_servers" in refused.stderr
    assert "nothing was changed" in refused.stderr


@pytest.fixture
def second(account: Account, command: Command, tmp_path: Path) -> Any:
    """`gapless` with another data folder, in the same account."""
    return lambda *arguments: command(tmp_path / "second data", *arguments)


@pytest.mark.parametrize("client", CLIENTS)
def test_two_data_folders_come_and_go_independently(account: Account, second: Any, client: str) -> None:
    account.gapless("install", "--client", client)
    first_alone = account.files()
    second("install", "--client", client)
    both = account.files()
    for again in (account.gapless, second):
        assert "set up already" in again("install", "--client", client).stdout
    assert account.files() == both != first_alone
    second("uninstall", "--client", client)
    assert account.files() == first_alone
    second("install", "--client", client)
    account.gapless("uninstall", "--client", client)
    assert "second data" in b"".join(account.files().values()).decode()
    second("uninstall", "--client", client)
    assert account.files() == {}


@pytest.mark.parametrize(
    ("client", "servers"),
    [
        ("claude-code", lambda account: json.loads(account.file(CLAUDE_SERVERS).read_text())["mcpServers"]),
        ("codex", lambda account: tomllib.loads(account.file(CODEX).read_text())["mcp_servers"]),
        ("gemini", lambda account: json.loads(account.file(GEMINI).read_text())["mcpServers"]),
        ("cursor", lambda account: json.loads(account.file(CURSOR_SERVERS).read_text())["mcpServers"]),
    ],
)
def test_the_second_data_folders_server_has_a_name_of_its_own_and_keeps_it(
    account: Account, second: Any, client: str, servers: Any
) -> None:
    account.gapless("install", "--client", client)
    second("install", "--client", client)
    assert {name: entry.get("env", {}).get("GAPLESS_HOME", "")[-11:] for name, entry in servers(account).items()} == {
        "gapless": "",
        "gapless_2": "second data",
    }
    account.gapless("uninstall", "--client", client)
    assert "set up already" in second("install", "--client", client).stdout
    assert set(servers(account)) == {"gapless_2"}


def test_a_second_plugin_of_opencode_names_its_own_server(account: Account, second: Any) -> None:
    account.gapless("install", "--client", "opencode")
    second("install", "--client", "opencode")
    folder = account.file(OPENCODE).parent
    assert 'const serverName = "gapless"\n' in (folder / "gapless.js").read_text()
    assert 'const serverName = "gapless_2"\n' in (folder / "gapless_2.js").read_text()
