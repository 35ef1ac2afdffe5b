"""The plugin for opencode, run by a JavaScript engine as that host runs it, with the real hook behind it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.client.conftest import Account
from tests.hooks.hook_process import Request, http, unix_service

NODE = shutil.which("node")
PLUGIN = ".config/opencode/plugins/gapless.js"
HOST = """
import * as module from "%s"
const exports = Object.keys(module)
const messages = [
  { info: { role: "user" }, parts: [{ type: "text", text: "a question" }] },
  { info: { role: "assistant" }, parts: [{ type: "text", text: "Fixed: the tide table was read in local time." }] },
  { info: { role: "assistant" }, parts: [{ type: "tool" }] },
]
const client = { session: { messages: async () => ({ data: messages }) } }
const hooks = await module.Gapless({ client, directory: process.argv[2] })
const config = { mcp: { other: {} } }
await hooks.config(config)
const event = (type, properties) => hooks.event({ event: { type, properties } })
await event("session.created", { info: { id: "main" } })
await event("server.connected", {})
await hooks["chat.message"]({ sessionID: "main", messageID: "m1" }, {
  message: { id: "m1" },
  parts: [{ type: "text", text: "fix the tide table" }, { type: "text", text: "synthetic", synthetic: true }],
})
const after = hooks["tool.execute.after"]
await after({ tool: "bash", sessionID: "main", callID: "c1", args: { command: "pytest" } }, { output: "2 passed é" })
await event("session.created", { info: { id: "child", parentID: "main" } })
await hooks["chat.message"]({ sessionID: "child" }, { message: { id: "m2" }, parts: [] })
await after({ tool: "read", sessionID: "child", callID: "c2", args: { filePath: "/x/tides.py" } }, { output: "code" })
await event("session.idle", { sessionID: "child" })
await hooks["experimental.session.compacting"]({ sessionID: "main" }, { context: [] })
await event("session.idle", { sessionID: "main" })
const system = ["you are"]
await hooks["experimental.chat.system.transform"]({ sessionID: "main" }, { system })
await event("session.deleted", { info: { id: "main" } })
console.log(JSON.stringify({ exports, config, system }))
"""


@pytest.fixture
def plugin(account: Account) -> Path:
    if NODE is None:
        pytest.skip("node is not installed: nothing runs the plugin here")
    account.gapless("install", "--client", "opencode")
    account.start_nothing()
    (account.file(PLUGIN).parent / "package.json").write_text('{"type": "module"}')
    return account.file(PLUGIN)


def run_host(plugin: Path, account: Account) -> Any:
    host = plugin.with_name("host.js")
    host.write_text(HOST % f"./{plugin.name}")
    command = [NODE or "node", str(host), str(account.home)]
    environment = {"HOME": str(account.home), "PATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def answer(request: Request) -> bytes:
    output = {"hookEventName": "SessionStart", "additionalContext": "notes of yesterday"}
    starts = json.loads(request.body)["hook_event_name"] == "SessionStart"
    return http(202, {"status": "recorded", **({"hookSpecificOutput": output} if starts else {})})


def test_a_session_reaches_the_service_in_order_and_its_notes_the_model(plugin: Path, account: Account) -> None:
    with unix_service(account.data, answer) as service:
        told = run_host(plugin, account)
    events = [json.loads(request.body) for request in service.requests]
    assert [event["hook_event_name"] for event in events] == [
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUse",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "SessionEnd",
    ]
    assert {event["session_id"] for event in events} == {"main"}
    assert {event["cwd"] for event in events} == {str(account.home)}
    assert [event.get("prompt_id") for event in events] == [None, *["m1"] * 7]
    assert [event.get("agent_id") for event in events] == [None, None, None, "child", "child", None, None, None]
    assert events[1]["prompt"] == "fix the tide table"
    assert (events[2]["tool_name"], events[2]["tool_use_id"], events[2]["tool_response"]) == (
        "Bash",
        "c1",
        "2 passed é",
    )
    assert events[3]["tool_input"] == {"file_path": "/x/tides.py"}
    assert events[6]["last_assistant_message"] == "Fixed: the tide table was read in local time."
    assert told["system"] == ["you are", "notes of yesterday"]


def test_it_exports_one_plugin_and_adds_the_server_to_those_that_are_there(plugin: Path, account: Account) -> None:
    told = run_host(plugin, account)
    assert told["exports"] == ["Gapless"]
    assert set(told["config"]["mcp"]) == {"other", "gapless"}
    assert told["config"]["mcp"]["gapless"]["command"][-1] == "mcp"


def test_without_a_service_or_even_a_hook_the_host_goes_on(plugin: Path, account: Account) -> None:
    assert run_host(plugin, account)["system"] == ["you are"]
    assert len(list((account.data / "spool").glob("*.event"))) == 8
    plugin.write_text(plugin.read_text().replace("gapless_hook.py", "gone.py"))
    assert run_host(plugin, account)["system"] == ["you are"]
