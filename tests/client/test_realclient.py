"""The real client with the plugin of this checkout: nothing lost, the next session knows, and nobody waits.

`CLAUDE_BIN=/path/to/claude pytest -m realclient` (README, Development).
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, run_process
from tests.client.real_client import VARIABLE, RealClient, Session, binaries, loopback_only
from tests.client.scripted_model import ScriptedModel, Turn, Use
from tests.hooks.hook_process import ROOT

pytestmark = [pytest.mark.realclient, pytest.mark.timeout(600)]

SERVER = "mcp__plugin_gapless_gapless"
SUBAGENT = {
    "description": "ask",
    "prompt": "SUBTASK",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}
LEARNED = "the tide table was read in local time"


def use(name: str, identifier: str, **fields: Any) -> Use:
    return Use(tool_use_id=f"toolu_{identifier}", name=name, input=fields)


def script(project: Path) -> dict[str, list[Turn]]:
    table = str(project / "tides.py")
    return {
        "SUBTASK": [
            Turn(uses=[use("Bash", "inner", command="echo from the subagent", description="look")]),
            Turn(text="The harbour's feed gives UTC."),
        ],
        "REPAIR": [
            Turn(
                text="First the test.", uses=[use("Bash", "failing", command="echo boom >&2; exit 3", description="x")]
            ),
            Turn(uses=[use("Write", "write", file_path=table, content="def tides():\n    return local()\n")]),
            Turn(uses=[use("Read", "read", file_path=table)]),
            Turn(uses=[use("Edit", "edit", file_path=table, old_string="local()", new_string="utc()  # feed is UTC")]),
            Turn(uses=[use("Read", "missing", file_path=str(project / "gone.py"))]),
            Turn(uses=[use("Bash", "unicode", command="printf 'naïve 你好 🦀 \\033[31mred\\033[0m \\377\\n'")]),
            Turn(uses=[use("Bash", "large", command="seq 1 100000", description="588 kB")]),
            Turn(uses=[use("Bash", "one", command="make --version"), use("Bash", "two", command="exit 1")]),
            Turn(uses=[use("Agent", "agent", **SUBAGENT)]),
            Turn(text=f"Found and fixed: {LEARNED}; the feed gives UTC."),
        ],
        "LATER": [Turn(text="I know already.")],
        "AGAIN": [Turn(uses=[use("Bash", "again", command="git status --porcelain")]), Turn(text="Done again.")],
        "SEVERAL": [
            *(Turn(uses=[use("Bash", f"step{number}", command=f"echo {number}")]) for number in range(4)),
            Turn(text="Four steps done."),
        ],
        "NOTE": [
            Turn(uses=[use("ToolSearch", "tools", query=f"select:{SERVER}__remember,{SERVER}__search")]),
            Turn(uses=[use(f"{SERVER}__remember", "remember", text="The ferry port is 8090, not 8080.")]),
            Turn(uses=[use(f"{SERVER}__search", "search", query="ferry port")]),
            Turn(text="Noted."),
        ],
    }


@pytest.fixture(scope="module", params=binaries() or [""])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealClient]:
    """With the plugin installed from this checkout and the service running, where only loopback can be reached."""
    if not request.param:
        pytest.skip(f"{VARIABLE} does not name a Claude Code client; README, Development, says how to get one")
    work = tmp_path_factory.mktemp("real")
    with loopback_only(), ScriptedModel(script={}).listening() as model:
        real = RealClient(binary=request.param, work=work, model=model)
        model.script = script(real.project)
        real.prepare()
        real.data.mkdir(mode=0o700)
        (real.data / "settings.toml").write_text('PORT = 0\nCHROMA = "off"\n')
        real.command("plugin", "marketplace", "add", str(ROOT))
        real.command("plugin", "install", "gapless@gapless")
        try:
            assert gapless(real, "up").code == 0
            yield real
        finally:
            gapless(real, "down")


def gapless(client: RealClient, *arguments: str) -> Outcome:
    return run_process(client.data, *arguments, cwd=client.project)


@pytest.fixture(scope="module")
def repaired(client: RealClient) -> Session:
    """The first session, worked off."""
    session = client.run("REPAIR the tide table, which is an hour off in summer")
    assert session.code == 0, session.stderr
    assert LEARNED in session.result
    waited = gapless(client, "queue", "wait", "--timeout", "60")
    assert waited.code == 0, waited.stderr
    return session


def messages(client: RealClient, session_id: str) -> dict[str, str]:
    """State by the last part of the event's key: for tool events the client's own id."""
    listed = gapless(client, "queue", "list", "--session", session_id, "--limit", "100", "--json").json["results"]
    return {row["event_key"].rpartition("/")[2]: row["state"] for row in listed}


def test_every_tool_event_of_the_session_is_accounted_for(client: RealClient, repaired: Session) -> None:
    uses = ("failing", "write", "read", "edit", "missing", "unicode", "large", "one", "two", "agent", "inner")
    states = messages(client, repaired.session_id)
    assert {f"toolu_{name}" for name in uses} <= set(states)
    assert set(states.values()) <= {"done", "skipped"}
    assert all(output == "" for event in ("PostToolUse", "Stop") for output in repaired.hook_outputs(event))
    assert gapless(client, "queue", "status", "--json").json["spool"] == 0


def test_a_client_that_ends_at_once_after_a_tool_loses_no_event(client: RealClient, repaired: Session) -> None:
    cut = client.run("SEVERAL steps, of which it gets to one", "--max-turns", "1")
    gapless(client, "queue", "wait", "--timeout", "60")
    assert "toolu_step0" in messages(client, cut.session_id)


def test_the_next_session_begins_with_what_this_one_learned(client: RealClient, repaired: Session) -> None:
    session = client.run("LATER: what was wrong with the tides?")
    [output] = session.hook_outputs("SessionStart")
    context = json.loads(output)["hookSpecificOutput"]["additionalContext"]
    assert "tides.py" in context
    told = [text for text in session.texts() if "<gapless-context>" in text]
    assert len(told) == 1
    assert "tides.py" in told[0]
    assert LEARNED in told[0]


def test_a_resumed_session_keeps_one_copy_and_loses_no_event(client: RealClient, repaired: Session) -> None:
    first = client.run("LATER: what was wrong with the tides?")
    resumed = client.run("AGAIN please", "--resume", first.session_id)
    assert resumed.session_id == first.session_id
    assert "toolu_again" in messages(client, first.session_id)
    assert copies(first) == copies(resumed) == 1


def test_after_compaction_the_notes_are_there_once(client: RealClient, repaired: Session) -> None:
    session = client.run("SEVERAL steps")
    compacted = client.run("/compact", "--resume", session.session_id)
    assert "compact_boundary" in {line.get("subtype") for line in compacted.lines}
    after = client.run("AGAIN, from the summary", "--resume", session.session_id)
    assert {f"toolu_step{number}" for number in range(4)} | {"toolu_again"} <= set(messages(client, session.session_id))
    assert copies(after) == 1


def copies(session: Session, request: int = 0) -> int:
    """How often the notes stand in a request."""
    return sum(text.count("</gapless-context>") for text in session.texts(request))


def test_the_model_remembers_and_searches_by_the_servers_tools(client: RealClient, repaired: Session) -> None:
    session = client.run("NOTE the port")
    assert [server["name"] for server in session.servers] == ["plugin:gapless:gapless"]
    assert session.result == "Noted."
    last = "\n".join(session.texts(-1))
    assert "8090, not 8080" in last.partition("toolu_search")[2]
    assert gapless(client, "search", "ferry port", "--json").json["total"] >= 1
    assert not {"toolu_remember", "toolu_search"} & set(messages(client, session.session_id))
    assert gapless(client, "queue", "status", "--json").json["not_queued"]["self"] >= 2


def test_nothing_is_left_in_the_repository_or_the_home_folder(client: RealClient, repaired: Session) -> None:
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=client.project, capture_output=True, text=True, check=True
    )
    assert status.stdout == "?? tides.py\n"
    elsewhere = [path for path in client.home.rglob("*") if path.is_file() and "claude" not in str(path)]
    assert elsewhere == []
    assert list((client.work / "tmp").rglob("*gapless*")) == []


def test_the_service_comes_back_with_the_next_session(client: RealClient, repaired: Session) -> None:
    gapless(client, "down")
    session = client.run("AGAIN, without the service")
    assert session.code == 0
    up = gapless(client, "up", "--json")
    assert up.code == 0, up.stderr
    assert up.json["started"] is False
    assert gapless(client, "queue", "wait", "--timeout", "60").code == 0
    assert "toolu_again" in messages(client, session.session_id)
