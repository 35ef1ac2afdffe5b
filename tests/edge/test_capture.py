import json
from collections.abc import AsyncIterator

import pytest

from tests.edge.edge_service import Service, edit, prompt

LIMIT_BYTES = 16 * 1024 * 1024


async def test_an_event_is_committed_before_it_is_answered(service: Service) -> None:
    answer = await service.post(edit("/nowhere/shop/cart.py"))
    assert answer.status_code == 202
    receipt = answer.json()
    assert receipt["status"] == "queued"
    assert service.rows("SELECT id, event_key FROM pending_messages") == [(receipt["message_id"], receipt["event_key"])]


async def test_the_same_event_again_is_a_duplicate_of_the_same_message(service: Service) -> None:
    first = (await service.post(edit("/nowhere/shop/cart.py"))).json()
    again = await service.post(edit("/nowhere/shop/cart.py"))
    assert again.status_code == 200
    assert again.json() == {**first, "status": "duplicate"}


async def test_prompts_and_session_starts_are_recorded_without_a_message(service: Service) -> None:
    for event in ({"hook_event_name": "SessionStart", "session_id": "s1", "source": "startup"}, prompt("Fix the cart")):
        answer = await service.post(event)
        assert answer.status_code == 202
        assert answer.json()["message_id"] is None
    assert service.rows("SELECT count(*) FROM pending_messages") == [(0,)]
    assert service.rows("SELECT text FROM user_prompts") == [("Fix the cart",)]


async def test_an_event_that_is_not_kept_says_why_and_is_counted(service: Service) -> None:
    answer = await service.post({"hook_event_name": "Notification", "session_id": "s1"})
    assert answer.status_code == 200
    assert answer.json() == {"status": "skipped", "message_id": None, "event_key": None, "reason": "ignored"}
    assert (await service.client.get("/api/queue")).json()["not_queued"]["ignored"] == 1


async def test_project_and_client_come_from_the_query(service: Service) -> None:
    await service.post(edit("/nowhere/shop/cart.py"), project="market", client="codex")
    assert service.rows("SELECT project, platform FROM sessions") == [("market", "codex")]


@pytest.mark.parametrize(
    ("given", "kept"), [("\0", "shop"), ("  ", "shop"), (" mill\0 ", "mill"), ("x" * 600, "x" * 512)]
)
async def test_a_project_s_name_is_text_that_a_row_can_hold(service: Service, given: str, kept: str) -> None:
    await service.post(prompt("Mend the till", cwd="/nowhere/shop"), project=given)
    assert service.rows("SELECT project FROM user_prompts") == [(kept,)]


async def test_the_hooks_headers_travel_with_the_event(service: Service) -> None:
    headers = {"X-Gapless-Captured-At": "1700000000000", "X-Gapless-Project": "caf%C3%A9", "X-Gapless-Project-Key": "k"}
    await service.client.post("/api/events", json=edit("/x"), headers=headers)
    assert service.rows("SELECT project, captured_at_epoch FROM pending_messages") == [("café", 1_700_000_000_000)]


async def test_every_item_of_a_batch_has_its_own_result(service: Service) -> None:
    batch = [
        edit("/a"),
        {"session_id": "s1"},
        {"payload": edit("/b", number=2), "captured_at_epoch": 1_700_000_000_000},
    ]
    answer = await service.client.post("/api/events/batch", json=batch)
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [result["status"] for result in results] == ["queued", "error", "queued"]
    assert results[1]["error"]["field"] == "hook_event_name"
    assert service.rows("SELECT captured_at_epoch FROM pending_messages ORDER BY id")[1] == (1_700_000_000_000,)


async def test_a_batch_may_be_json_lines(service: Service) -> None:
    lines = "\n".join([json.dumps(edit("/a")), "{broken", "", json.dumps(edit("/b", number=2))])
    headers = {"Content-Type": "application/x-ndjson"}
    answer = await service.client.post("/api/events/batch", content=lines, headers=headers)
    assert [result["status"] for result in answer.json()["results"]] == ["queued", "error", "queued"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[NaN]", b"42", b"[]", b"null", b"[" * 5000])
async def test_what_is_no_event_is_refused_in_words(service: Service, body: bytes) -> None:
    answer = await service.client.post("/api/events", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


async def test_an_event_without_a_session_names_the_field(service: Service) -> None:
    answer = await service.post({"hook_event_name": "Stop"})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "session_id"


@pytest.mark.parametrize("path", ["/api/events", "/api/events/batch", "/api/queue/replay"])
async def test_a_body_over_16_mb_is_refused(service: Service, path: str) -> None:
    answer = await service.client.post(path, content=b" " * (LIMIT_BYTES + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


async def test_a_chunked_body_is_read_no_further_than_the_limit(service: Service) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 4 * LIMIT_BYTES:
            sent += 1024 * 1024
            yield b" " * (1024 * 1024)

    answer = await service.client.post("/api/events", content=endless())
    assert answer.status_code == 413


async def test_a_large_event_below_the_limit_is_taken(service: Service) -> None:
    answer = await service.post(edit("/a", tool_response={"content": "word " * 3_000_000}))
    assert answer.status_code == 202


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_other_media_types_are_refused(service: Service, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    answer = await service.client.post("/api/events", content=json.dumps(edit("/a")), headers=headers)
    assert answer.status_code == 415
    assert service.rows("SELECT count(*) FROM pending_messages") == [(0,)]


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json; charset=utf-8"}])
async def test_json_may_come_with_or_without_a_media_type(service: Service, headers: dict[str, str]) -> None:
    answer = await service.client.post("/api/events", content=json.dumps(edit("/a")), headers=headers)
    assert answer.status_code == 202


async def test_consumers_are_woken_when_a_turn_ends_and_not_by_every_event(service: Service) -> None:
    woken = []
    service.edge.wake = lambda: woken.append(service.rows("SELECT count(*) FROM pending_messages"))
    await service.post(edit("/a"))
    assert woken == []
    await service.post({"hook_event_name": "Stop", "session_id": edit("/a")["session_id"], "prompt_id": "p1"})
    assert woken == [[(2,)]]
