"""Nothing private leaves the process, neither to the service nor to a file."""

import json
from pathlib import Path

import pytest

from hooks import spool
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
