from typing import Any

import pytest

from tests.edge.edge_service import Service, prompt, tell_a_turn

LISTS = ["observations", "summaries", "prompts", "sessions", "projects", "stats"]


@pytest.mark.parametrize("name", LISTS)
async def test_an_empty_store_lists_nothing(service: Service, name: str) -> None:
    answer = (await service.client.get(f"/api/{name}")).json()
    assert (answer["total"], answer["limit"], answer["offset"], answer["results"]) == (0, 20, 0, [])


@pytest.mark.parametrize("name", LISTS)
async def test_lists_are_filtered_by_a_projects_name_or_key(working: Service, name: str) -> None:
    await tell_a_turn(working, session="s1", path="/nowhere/shop/cart.py")
    totals = {}
    for project in ("shop", "/nowhere/shop", "unknown", ""):
        answer = await working.client.get(f"/api/{name}", params={"project": project})
        assert answer.status_code == 200
        totals[project] = answer.json()["total"]
    assert totals["shop"] == totals["/nowhere/shop"] == totals[""] > 0
    assert totals["unknown"] == 0


async def test_lists_are_newest_first_and_page_without_repeats(service: Service) -> None:
    for number in range(5):
        await service.post(prompt(f"prompt {number}", number=number, timestamp=f"2026-01-0{number + 1}T00:00:00Z"))
    texts = []
    for offset in (0, 2, 4, 6):
        page = (await service.client.get("/api/prompts", params={"limit": 2, "offset": offset})).json()
        assert page["total"] == 5
        texts += [row["text"] for row in page["results"]]
    assert texts == ["prompt 4", "prompt 3", "prompt 2", "prompt 1", "prompt 0"]


async def test_an_observation_is_read_by_its_id(working: Service) -> None:
    await tell_a_turn(working)
    listed = (await working.client.get("/api/observations")).json()["results"]
    found = (await working.client.get(f"/api/observations/{listed[0]['id']}")).json()
    assert found == listed[0]
    assert "/nowhere/shop/cart.py" in found["files_modified"] or "cart.py" in found["files_modified"]


async def test_several_observations_come_in_the_order_asked_for_with_those_missing_listed(working: Service) -> None:
    await tell_a_turn(working, session="s1")
    await tell_a_turn(working, session="s2")
    ids = [row["id"] for row in (await working.client.get("/api/observations")).json()["results"]]
    ids = [ids[-1], 999_999, ids[0], ids[0]]
    answer = (await working.client.post("/api/observations/batch", json={"ids": ids})).json()
    assert [row["id"] for row in answer["results"]] == [ids[0], ids[2]]
    assert answer["missing"] == [999_999]


async def test_several_observations_can_be_ordered_and_limited(working: Service) -> None:
    await tell_a_turn(working, session="s1")
    await tell_a_turn(working, session="s2")
    ids = [row["id"] for row in (await working.client.get("/api/observations")).json()["results"]]
    body = {"ids": ids, "orderBy": "date_asc", "limit": 1}
    answer = (await working.client.post("/api/observations/batch", json=body)).json()
    assert [row["id"] for row in answer["results"]] == [min(ids)]


@pytest.mark.parametrize("observation_id", ["1", "0", "abc", "-1", "9" * 40, "1.5"])
async def test_an_observation_that_does_not_exist_is_not_found(service: Service, observation_id: str) -> None:
    answer = await service.client.get(f"/api/observations/{observation_id}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": 10**30}, "offset"),
        ({"limt": 5}, "limt"),
    ],
)
async def test_an_impossible_parameter_is_named(service: Service, params: dict[str, Any], field: str) -> None:
    for name in LISTS:
        answer = await service.client.get(f"/api/{name}", params=params)
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "ids"),
        ({"ids": []}, "ids"),
        ({"ids": ["x"]}, "ids.0"),
        ({"ids": [1], "orderBy": "size"}, "orderBy"),
        ({"ids": [1], "nonsense": 1}, "nonsense"),
        ({"ids": [2**63]}, "ids.0"),
    ],
)
async def test_an_impossible_field_is_named(service: Service, body: dict[str, Any], field: str) -> None:
    answer = await service.client.post("/api/observations/batch", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field


@pytest.mark.parametrize("path", ["/nowhere", "/api", "/api/observations/", "/api/corpora", "/docs"])
async def test_a_route_that_does_not_exist_is_a_json_404(service: Service, path: str) -> None:
    answer = await service.client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(("method", "path"), [("PUT", "/api/events"), ("GET", "/api/events"), ("DELETE", "/livez")])
async def test_a_wrong_method_is_told_which_are_right(service: Service, method: str, path: str) -> None:
    answer = await service.client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"]
    assert answer.json()["error"]["code"] == "method_not_allowed"


async def test_what_a_turn_left_is_found_by_search(working: Service) -> None:
    await tell_a_turn(working)
    answer = (await working.client.get("/api/search", params={"query": "cart", "type": "all"})).json()
    assert answer["mode"] == "keyword"
    assert {hit["kind"] for hit in answer["results"]} >= {"observation", "prompt"}


async def test_search_answers_a_table_for_reading(working: Service) -> None:
    await tell_a_turn(working)
    answer = await working.client.get("/api/search", params={"query": "cart", "format": "markdown"})
    assert answer.headers["content-type"].startswith("text/markdown")
    assert "cart" in answer.text.lower()


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"type": "nonsense"}, "type"),
        ({"dateStart": "soon"}, "dateStart"),
        ({"dateStart": "2026-02-01", "dateEnd": "2026-01-01"}, "dateStart"),
        ({"format": "xml"}, "format"),
        ({"q": "x"}, "q"),
        ({"orderBy": "size"}, "orderBy"),
        ({"obs_type": "joke"}, "obs_type"),
    ],
)
async def test_an_impossible_search_names_its_parameter(service: Service, params: dict[str, str], field: str) -> None:
    answer = await service.client.get("/api/search", params=params)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field


async def test_a_head_request_is_answered_without_a_body(service: Service) -> None:
    answer = await service.client.head("/api/queue")
    assert answer.status_code == 200
    assert answer.content == b""


async def test_search_takes_the_project_of_a_folder(working: Service) -> None:
    await tell_a_turn(working)
    totals = {}
    for cwd in ("/nowhere/shop", "/nowhere/else"):
        for all_projects in ("false", "true"):
            params = {"query": "cart", "cwd": cwd, "all_projects": all_projects}
            answer = (await working.client.get("/api/search", params=params)).json()
            totals[cwd, all_projects] = answer["total"]
    assert totals["/nowhere/shop", "false"] == totals["/nowhere/else", "true"] > 0
    assert totals["/nowhere/else", "false"] == 0
