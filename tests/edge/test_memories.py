"""Remembering, correcting and forgetting over HTTP."""

import asyncio
from typing import Any

import pytest

from tests.edge.edge_service import Service, eventually, tell_a_turn

Json = dict[str, Any]


async def post(service: Service, path: str, body: Any) -> tuple[int, Json]:
    answer = await service.client.post(path, json=body)
    return answer.status_code, answer.json()


async def test_a_text_is_remembered_found_at_once_and_not_twice(service: Service) -> None:
    body = {"text": "Deploys go out on Tuesdays", "project": "shop", "tags": ["Team:Ops"]}
    assert await post(service, "/api/memories", body) == (201, {"id": 1})
    assert await post(service, "/api/memories", body) == (200, {"id": 1, "duplicate": True})
    found = (await service.client.get("/api/search", params={"query": "tuesdays", "project": "shop"})).json()
    assert [hit["id"] for hit in found["results"]] == [1]
    record = (await service.client.get("/api/observations/1")).json()
    assert (record["narrative"], record["tags"], record["layer"]) == (body["text"], ["team:ops"], "L2")


async def test_the_same_text_at_the_same_time_is_one_memory(service: Service) -> None:
    body = {"text": "Deploys go out on Tuesdays", "project": "shop"}
    answers = await asyncio.gather(*(post(service, "/api/memories", body) for _ in range(20)))
    assert sorted(status for status, _ in answers) == [200] * 19 + [201]
    assert {told["id"] for _, told in answers} == {1}


async def test_a_batch_is_one_commit_in_order_with_each_of_its_texts(service: Service) -> None:
    texts = ["one", "two", "one"]
    body = [{"text": text, "project": "talk", "session_id": "t1", "created_at_epoch": 5} for text in texts]
    status, told = await post(service, "/api/memories/batch", body)
    assert (status, told) == (201, {"ids": [1, 2, 3]})
    assert [row[0] for row in service.rows("SELECT narrative FROM observations ORDER BY id")] == texts
    assert await post(service, "/api/memories/batch", []) == (201, {"ids": []})
    assert (await post(service, "/api/memories/batch", [{"text": "x"}] * 1001))[0] == 422


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": " "}, "text"),
        ({"text": "<private>x</private>"}, "text"),
        ({"text": 5}, "text"),
        ({"text": "x" * 200_001}, "text"),
        ({"text": "x", "type": "joke"}, "type"),
        ({"text": "x", "layer": "L9"}, "layer"),
        ({"text": "x", "confidence": 1.5}, "confidence"),
        ({"text": "x", "confidence": -0.1}, "confidence"),
        ({"text": "x", "tags": "a,b"}, "tags"),
        ({"text": "x", "tags": [1]}, "tags.0"),
        ({"text": "x", "metadata": []}, "metadata"),
        ({"text": "x", "expires_at": "soon"}, "expires_at"),
        ({"text": "x", "created_at_epoch": -1}, "created_at_epoch"),
        ({"text": "x", "session_id": "s" * 600}, "session_id"),
        ({"text": "x", "nonsense": 1}, "nonsense"),
    ],
)
async def test_an_impossible_memory_names_its_field_and_nothing_is_stored(
    service: Service, body: Json, field: str
) -> None:
    status, told = await post(service, "/api/memories", body)
    assert (status, told["error"]["field"]) == (422, field)
    status, told = await post(service, "/api/memories/batch", [{"text": "fine"}, body])
    assert (status, told["error"]["field"]) == (422, f"1.{field}")
    assert service.rows("SELECT 1 FROM observations") == []


async def test_odd_texts_are_kept_as_far_as_a_row_can_hold_them(service: Service) -> None:
    raw = b'{"text": "nul \\u0000 half \\ud83d pair", "metadata": {"k": "\\ud83d\\u0000"}, "project": "\\u0000p"}'
    answer = await service.client.post("/api/memories", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 201
    record = (await service.client.get(f"/api/observations/{answer.json()['id']}")).json()
    assert record["narrative"] == "nul  half \N{REPLACEMENT CHARACTER} pair"


async def test_times_are_taken_as_numbers_and_as_iso(service: Service) -> None:
    body = {"text": "x", "created_at_epoch": "2026-01-02T03:04:05Z", "expires_at": "2999-01-01T00:00:00Z"}
    _, told = await post(service, "/api/memories", body)
    record = (await service.client.get(f"/api/observations/{told['id']}")).json()
    assert record["created_at_epoch"] == 1_767_323_045_000
    cleared = await service.client.patch(f"/api/observations/{told['id']}", json={"expires_at": None})
    assert cleared.json()["expires_at_epoch"] is None


async def test_an_edit_answers_the_record_as_it_is_now(service: Service) -> None:
    await post(service, "/api/memories", {"text": "the port is 6001"})
    changes = {"title": "Port", "narrative": "the port is 7001", "confidence": 0.5, "layer": "L4", "type": "decision"}
    answer = await service.client.patch("/api/observations/1", json=changes)
    assert answer.status_code == 200
    assert answer.json() == (await service.client.get("/api/observations/1")).json()
    assert {name: answer.json()[name] for name in changes} == changes


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, None),
        ({"title": ""}, "title"),
        ({"title": None}, "title"),
        ({"title": " "}, "title"),
        ({"narrative": 7}, "narrative"),
        ({"facts": "x"}, "facts"),
        ({"project": ""}, "project"),
        ({"project": " "}, "project"),
        ({"confidence": 2}, "confidence"),
        ({"id": 5}, "id"),
        ({"content_hash": "x"}, "content_hash"),
    ],
)
async def test_an_impossible_edit_is_refused_in_words(service: Service, body: Json, field: str | None) -> None:
    await post(service, "/api/memories", {"text": "x"})
    answer = await service.client.patch("/api/observations/1", json=body)
    assert (answer.status_code, answer.json()["error"].get("field")) == (422, field)


async def test_what_does_not_exist_cannot_be_edited_forgotten_or_cited(service: Service) -> None:
    assert (await service.client.patch("/api/observations/7", json={"title": "x"})).status_code == 404
    assert (await service.client.delete("/api/observations/7")).status_code == 404
    assert (await post(service, "/api/feedback", {"observation_id": 7, "signal_type": "cited"}))[0] == 404


async def test_a_deleted_observation_is_gone_at_the_second_time(service: Service) -> None:
    for text in ("one", "two"):
        await post(service, "/api/memories", {"text": text, "project": "shop"})
    first = await service.client.delete("/api/observations/1")
    assert (first.status_code, first.content) == (204, b"")
    assert (await service.client.delete("/api/observations/1")).status_code == 404
    assert (await service.client.get("/api/observations/1")).status_code == 404
    assert (await service.client.get("/api/observations")).json()["total"] == 1


async def test_forgetting_answers_counts_and_is_gone_from_every_route(working: Service) -> None:
    await tell_a_turn(working, session="s1")
    await tell_a_turn(working, session="s2", path="/nowhere/mill/wheel.py")
    status, planned = await post(working, "/api/forget", {"session": "s1", "dry_run": True})
    assert (status, planned["dry_run"]) == (200, True)
    assert min(planned["observations"], planned["summaries"], planned["prompts"], planned["messages"]) > 0
    _, done = await post(working, "/api/forget", {"session": "s1", "vacuum": True})
    assert done == planned | {"dry_run": False}
    for path in ("observations", "summaries", "prompts", "sessions", "search?type=all"):
        rows = (await working.client.get(f"/api/{path}")).json()["results"]
        assert {row["session_id"] for row in rows} == {"s2"}
    assert (await post(working, "/api/forget", {"session": "s1"}))[1] == {
        "dry_run": False,
        **dict.fromkeys(("observations", "summaries", "prompts", "messages"), 0),
    }
    around = (await working.client.get("/api/timeline", params={"anchor": "2000-01-01", "depth_after": 100})).json()
    assert {entry["session_id"] for entry in around["results"]} == {"s2"}


async def test_an_open_stream_hears_that_something_is_forgotten_and_a_late_one_never_what(service: Service) -> None:
    await post(service, "/api/memories", {"text": "zanzibar"})
    async with service.client.stream("GET", "/stream", headers={"Last-Event-ID": "0"}) as answer:
        lines = answer.aiter_lines()
        assert [line async for line in _until(lines, "zanzibar")]
        await service.client.delete("/api/observations/1")
        assert [line async for line in _until(lines, '"deleted":true')]
    assert all("zanzibar" not in data for (data,) in service.rows("SELECT data FROM outbox"))


async def _until(lines: Any, wanted: str) -> Any:
    async for line in lines:
        yield line
        if wanted in line:
            return


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "ids"),
        ({"dry_run": True}, "ids"),
        ({"project": ""}, "ids"),
        ({"ids": ["x"]}, "ids.0"),
        ({"ids": [1.5]}, "ids.0"),
        ({"ids": [True]}, "ids.0"),
        ({"ids": 5}, "ids"),
        ({"before": "soon"}, "before"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
async def test_an_impossible_forgetting_is_refused(service: Service, body: Json, field: str) -> None:
    await post(service, "/api/memories", {"text": "x"})
    status, told = await post(service, "/api/forget", body)
    assert (status, told["error"]["field"]) == (422, field)
    assert service.rows("SELECT count(*) FROM observations") == [(1,)]


@pytest.mark.parametrize("ids", [[], [1], ["1"], [1, "S1", "P1", 99]])
async def test_ids_are_numbers_or_texts(service: Service, ids: list[Any]) -> None:
    await post(service, "/api/memories", {"text": "x"})
    status, told = await post(service, "/api/forget", {"ids": ids})
    assert (status, told["observations"]) == (200, len(ids[:1]))


@pytest.mark.parametrize("signal", ["viewed", "fetched", "cited"])
async def test_feedback_is_kept_and_goes_with_its_observation(service: Service, signal: str) -> None:
    await post(service, "/api/memories", {"text": "x"})
    assert (await post(service, "/api/feedback", {"observation_id": 1, "signal_type": signal}))[0] == 201
    assert service.rows("SELECT observation_id, signal_type FROM observation_feedback") == [(1, signal)]
    assert (await post(service, "/api/feedback", {"observation_id": 1, "signal_type": "liked"}))[0] == 422
    await service.client.delete("/api/observations/1")
    assert service.rows("SELECT 1 FROM observation_feedback") == []


async def test_an_expired_memory_is_swept_away(working: Service) -> None:
    await post(working, "/api/memories", {"text": "x", "expires_at": 1_700_000_000_000})

    async def is_gone() -> bool:
        return not working.rows("SELECT 1 FROM observations")

    await eventually(is_gone)


async def test_the_timeline_says_what_it_stands_on(service: Service) -> None:
    for number in range(3):
        body = {"text": f"note {number}", "project": "shop", "created_at_epoch": 1_700_000_000_000 + number}
        await post(service, "/api/memories", body)
    answer = (await service.client.get("/api/timeline", params={"anchor": "2", "depth_before": 1})).json()
    assert answer["anchor"] == {"kind": "observation", "id": 2, "created_at_epoch": 1_700_000_000_001}
    assert [(row["title"], row["is_anchor"]) for row in answer["results"]] == [
        *(("note 0", False), ("note 1", True), ("note 2", False)),
    ]
    assert set(answer["results"][0]) >= {"kind", "id", "created_at_epoch", "type", "tokens", "project", "session_id"}
    nothing = (await service.client.get("/api/timeline", params={"query": "volcano"})).json()
    assert nothing == {"anchor": None, "results": []}


@pytest.mark.parametrize(
    ("params", "status", "field"),
    [
        ({}, 422, "anchor"),
        ({"anchor": "1", "query": "x"}, 422, "anchor"),
        ({"anchor": "1", "depth_before": "101"}, 422, "depth_before"),
        ({"anchor": "1", "depth_after": "-1"}, 422, "depth_after"),
        ({"anchor": "1", "depth": "5"}, 422, "depth"),
        ({"anchor": "1"}, 404, None),
        ({"anchor": "\x00"}, 404, None),
        ({"anchor": "9" * 400}, 404, None),
    ],
)
async def test_an_impossible_timeline_is_refused_in_words(
    service: Service, params: dict[str, str], status: int, field: str | None
) -> None:
    answer = await service.client.get("/api/timeline", params=params)
    assert (answer.status_code, answer.json()["error"].get("field")) == (status, field)
