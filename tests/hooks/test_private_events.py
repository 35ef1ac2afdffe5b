"""Nothing private leaves the process, neither to the service nor to a file."""

import json
import os
from pathlib import Path

import pytest

from hooks import spool
from hooks.envelope import Envelope
from tests.hooks.hook_process import accept, event, judge, run_hook, unix_service

SECRET = b"my own affair"
PRIVATE_PARTS = {
    "plain": event(tool_response={"stdout": "<private>my own affair</private> seen"}),
    "escaped": event(tool_response={"stdout": "# my own affair #"})
    .replace(b"# my", b"\\u003CPriv\\u0061te x=1\\u003e my")
    .replace(b" #", b"\\u003c\\/private\\u003E seen"),
    "not UTF-8": b'{"session_id":"\xff","a":"<private>my own affair</private> seen"}',
    "cut": event(zz="seen <private>my own affair")[:-3],
    "cut and escaped": b'{"a":"seen \\u003cpriv\\u0061te\\u003emy own affair',
    "huge": event(a="<private>" + "my own affair " * 1_500_000 + "</private> seen"),
}


@pytest.mark.parametrize("kind", PRIVATE_PARTS)
def test_private_parts_reach_nobody(home: Path, kind: str) -> None:
    payload = PRIVATE_PARTS[kind]
    with unix_service(home, judge) as service:
        run_hook(home, payload)
    run_hook(home, payload)
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    everything += b"".join(request.body for request in service.requests)
    assert everything.count(b"seen") >= 2
    assert SECRET not in everything


def test_a_private_prompt_sends_its_turn_and_no_text(home: Path) -> None:
    payload = event(hook_event_name="UserPromptSubmit", prompt=" <private>my own affair</private>\n", prompt_id="p1")
    with unix_service(home, accept) as service:
        run_hook(home, payload)
    run_hook(home, payload)
    [request] = service.requests
    [path] = spool.pending(str(home))
    spooled = spool.read(path)
    assert request.headers["x-gapless-private"] == spooled.headers["X-Gapless-Private"] == "1"
    for body in (request.body, spooled.body):
        sent = json.loads(body)
        assert (sent["private"], sent["prompt"], sent["prompt_id"]) == (True, "", "p1")


def test_what_holds_no_private_part_keeps_its_bytes(home: Path) -> None:
    payload = event(prompt="if a<b: List<private_key> \u003c", lone="\ud83d")
    with unix_service(home, accept) as service:
        run_hook(home, payload)
    assert json.loads(service.requests[0].body) == json.loads(payload)


def test_half_a_surrogate_survives_the_removal_of_a_private_part(home: Path) -> None:
    with unix_service(home, accept) as service:
        run_hook(home, event(a="<private>x</private>", lone="\ud83d"))
    assert json.loads(service.requests[0].body)["lone"] == "\ud83d"


def test_secrets_are_redacted_only_on_their_way_to_a_file(home: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    payload = event(tool_response={"stdout": f"remote uses {token} here"})
    with unix_service(home, accept) as service:
        run_hook(home, payload)
    run_hook(home, payload)
    assert service.requests[0].body == payload
    [path] = spool.pending(str(home))
    stored = spool.read(path).body
    assert token.encode() not in stored
    assert json.loads(stored)["tool_input"] == {"command": "make test"}


def prompt(text: str, prompt_id: str | None) -> bytes:
    return event(hook_event_name="UserPromptSubmit", prompt=text, **({"prompt_id": prompt_id} if prompt_id else {}))


def last_spooled(home: Path) -> Envelope:
    return spool.read(spool.pending(str(home))[-1])


@pytest.mark.parametrize("with_ids", [True, False])
def test_what_follows_a_private_prompt_waits_without_its_text(home: Path, *, with_ids: bool) -> None:
    ids = {"prompt_id": "p1"} if with_ids else {}
    run_hook(home, prompt("<private>about it</private>", ids.get("prompt_id")))
    texts = {
        "tool_input": {"command": "cat affair.txt"},
        "tool_response": {"stdout": "my own affair"},
        "error": "my own affair",
        "last_assistant_message": "my own affair",
    }
    for name in ("PostToolUse", "PostToolUseFailure", "SubagentStop", "Stop", "PreCompact"):
        run_hook(home, event(hook_event_name=name, **texts, **ids))
        waiting = last_spooled(home)
        assert waiting.headers["X-Gapless-Private"] == "1"
        assert json.loads(waiting.body)["hook_event_name"] == name
        assert json.loads(waiting.body)["private"] is True
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"affair" not in everything


@pytest.mark.parametrize("with_ids", [True, False])
def test_the_next_prompt_ends_a_private_turn_for_what_is_not_of_it(home: Path, *, with_ids: bool) -> None:
    def of(prompt_id: str) -> dict[str, str]:
        return {"prompt_id": prompt_id} if with_ids else {}

    run_hook(home, prompt("<private>about it</private>", of("p1").get("prompt_id")))
    run_hook(home, prompt("now build", of("p2").get("prompt_id")))
    run_hook(home, event(**of("p2")))
    assert last_spooled(home).body == event(**of("p2"))
    run_hook(home, event(session_id="another", **of("p2")))
    assert "X-Gapless-Private" not in last_spooled(home).headers
    if with_ids:  # it was late
        run_hook(home, event(**of("p1")))
        assert last_spooled(home).headers["X-Gapless-Private"] == "1"


def test_a_prompt_that_the_service_took_is_remembered_as_private_when_it_goes_away(home: Path) -> None:
    with unix_service(home, accept):
        run_hook(home, prompt("<private>about it</private>", "p1"))
    run_hook(home, event(prompt_id="p1"))
    assert last_spooled(home).headers["X-Gapless-Private"] == "1"
    marks = home / "run" / "private"
    assert marks.stat().st_mode & 0o077 == 0
    assert [path.read_text() for path in marks.iterdir()] == ["p1\n"]


def test_marks_of_old_sessions_go(home: Path) -> None:
    run_hook(home, prompt("<private>about it</private>", "p1"))
    [old] = (home / "run" / "private").iterdir()
    os.utime(old, (0, 0))
    run_hook(home, event(hook_event_name="UserPromptSubmit", session_id="../..", prompt="<private>x</private>"))
    [new] = (home / "run" / "private").iterdir()
    assert new != old
