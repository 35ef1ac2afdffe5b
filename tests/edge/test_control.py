import tomllib
from typing import Any

import pytest

from service import providers
from tests.edge.edge_service import Service, edit, eventually, mode_of, running, tell_a_turn


async def test_the_queue_tells_its_depth(service: Service) -> None:
    await service.post(edit("/a"))
    queue = (await service.client.get("/api/queue")).json()
    assert queue["states"] == {"pending": 1, "processing": 0, "done": 0, "skipped": 0, "failed": 0}
    assert queue["oldest_pending_age_s"] >= 0
    assert queue["paused"] is None


async def test_messages_are_listed_newest_first_and_filtered(service: Service) -> None:
    for number in range(3):
        await service.post(edit("/a", number=number, session=f"s{number}"))
    answer = (await service.client.get("/api/queue/messages")).json()
    assert [row["session_id"] for row in answer["results"]] == ["s2", "s1", "s0"]
    for params, total in (({"session": "s1"}, 1), ({"state": "done"}, 0), ({"project": "/nowhere/shop"}, 3)):
        answer = (await service.client.get("/api/queue/messages", params=params)).json()
        assert answer["total"] == total


async def test_a_message_is_shown_with_its_payload(service: Service) -> None:
    message_id = (await service.post(edit("/a"))).json()["message_id"]
    message = (await service.client.get(f"/api/queue/messages/{message_id}")).json()
    assert message["payload"]["tool_input"]["file_path"] == "/a"
    assert (await service.client.get("/api/queue/messages/99")).status_code == 404


async def test_an_unknown_state_is_refused(service: Service) -> None:
    answer = await service.client.get("/api/queue/messages", params={"state": "lost"})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "state"


async def test_a_paused_queue_waits_until_it_is_resumed(working: Service) -> None:
    await working.client.post("/api/queue/pause")
    await working.post(edit("/a"))
    await working.client.post("/api/queue/flush")
    queue = (await working.client.get("/api/queue")).json()
    assert queue["paused"]["reason"] == "manual"
    assert queue["states"]["pending"] == 1
    await working.client.post("/api/queue/resume")
    await eventually(lambda: _is_drained(working))


async def test_a_flush_makes_an_open_turn_due(working: Service) -> None:
    await working.post(edit("/a"))
    assert (await working.client.post("/api/queue/flush")).json() == {"sessions": 1}
    await eventually(lambda: _is_drained(working))


async def test_a_dry_replay_only_says_what_it_would_do(working: Service) -> None:
    await tell_a_turn(working)
    before = (await working.client.get("/api/queue")).json()["states"]
    answer = (await working.client.post("/api/queue/replay", json={"session": "s1", "dry_run": True})).json()
    assert answer["dry_run"] is True
    assert answer["messages"] == len(answer["ids"]) > 0
    assert (await working.client.get("/api/queue")).json()["states"] == before


async def test_a_replay_makes_the_same_once_more_and_no_double(working: Service) -> None:
    await tell_a_turn(working)
    before = await _observations(working)
    answer = (await working.client.post("/api/queue/replay", json={"project": "/nowhere/shop"})).json()
    assert answer["messages"] > 0
    await eventually(lambda: _is_drained(working))
    after = await _observations(working)
    assert [row["title"] for row in after] == [row["title"] for row in before]
    assert {row["id"] for row in after}.isdisjoint(row["id"] for row in before)


@pytest.mark.parametrize(
    "body", [{}, {"dry_run": True}, {"since": "soon"}, {"until": 10**20}, {"what": 1}, {"ids": [0]}]
)
async def test_a_replay_of_nothing_in_particular_is_refused(service: Service, body: dict[str, Any]) -> None:
    answer = await service.client.post("/api/queue/replay", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


async def test_times_may_be_iso_or_milliseconds(working: Service) -> None:
    await tell_a_turn(working)
    for since in (0, "2020-01-01T00:00:00Z", "1577836800000"):
        answer = (await working.client.post("/api/queue/replay", json={"since": since, "dry_run": True})).json()
        assert answer["messages"] > 0


async def test_settings_are_written_privately_and_take_effect(service: Service) -> None:
    reloads: list[float] = []
    service.edge.reload = lambda: reloads.append(service.edge.core.settings.lease_s)
    answer = (await service.client.patch("/api/settings", json={"LEASE_S": 7.5, "model": "other"})).json()
    assert answer["changed"] == ["LEASE_S", "MODEL"]
    assert answer["settings"]["LEASE_S"] == service.edge.core.settings.lease_s == 7.5
    assert answer["needs_restart"] == []
    assert mode_of(service.home / "settings.toml") == 0o600
    assert reloads == [7.5]


async def test_a_change_of_settings_ends_the_pause_of_a_provider_and_not_a_persons(service: Service) -> None:
    trouble: dict[str, Any] = {"reason": "auth", "message": "no", "retry_after_ms": None, "forever": True, "now": 1}
    await service.edge.core.database.write(lambda tx: providers.pause(tx, "rules", **trouble))
    await service.client.patch("/api/settings", json={"MODEL": "other"})
    assert (await service.client.get("/api/queue")).json()["paused"] is None
    await service.client.post("/api/queue/pause")
    await service.client.patch("/api/settings", json={"MODEL": "another"})
    assert (await service.client.get("/api/queue")).json()["paused"]["reason"] == "manual"
    assert (await service.client.post("/api/queue/resume")).json() == {"paused": False, "ended": 1}


async def test_secrets_are_never_shown(service: Service) -> None:
    answer = await service.client.patch("/api/settings", json={"ANTHROPIC_API_KEY": "sk-secret"})
    assert answer.json()["settings"]["ANTHROPIC_API_KEY"] == "***"
    assert "sk-secret" not in (await service.client.get("/api/settings")).text


async def test_a_change_that_needs_a_restart_says_so(service: Service) -> None:
    answer = (await service.client.patch("/api/settings", json={"CHROMA": "off", "MODEL": "m"})).json()
    assert answer["needs_restart"] == ["CHROMA"]


async def test_a_change_that_a_flag_overrides_says_so(service: Service) -> None:
    answer = (await service.client.patch("/api/settings", json={"PORT": 1})).json()
    assert answer["overridden"] == ["PORT"]
    assert answer["settings"]["PORT"] == 0


async def test_null_takes_a_setting_back_to_its_default(service: Service) -> None:
    await service.client.patch("/api/settings", json={"CONSUMERS": 5})
    answer = (await service.client.patch("/api/settings", json={"CONSUMERS": None})).json()
    assert answer["settings"]["CONSUMERS"] == 2


@pytest.mark.parametrize("body", [{"MODLE": "x"}, {"LEASE_S": "soon"}, {"PORT": 70_000}, {"CONSUMERS": []}])
async def test_an_unusable_change_is_refused_and_writes_nothing(service: Service, body: dict[str, Any]) -> None:
    answer = await service.client.patch("/api/settings", json={"MODEL": "good", **body})
    assert answer.status_code == 422
    assert not (service.home / "settings.toml").exists()


async def test_an_unknown_setting_gets_the_nearest_name(service: Service) -> None:
    answer = await service.client.patch("/api/settings", json={"MODLE": "x"})
    assert "MODEL" in answer.json()["error"]["message"]


async def test_what_a_person_wrote_into_the_file_stays(service: Service) -> None:
    path = service.home / "settings.toml"
    path.write_text('# mine\nMODEL = "a" # why\n\nCONSUMERS = 3\n')
    await service.client.patch("/api/settings", json={"MODEL": 'b "quoted" \x7f é'})
    text = path.read_text()
    assert text.startswith("# mine\n")
    assert tomllib.loads(text) == {"MODEL": 'b "quoted" \x7f é', "CONSUMERS": 3}


async def test_two_data_folders_are_two_installations(service: Service, tmp_path: Any) -> None:
    async with running(tmp_path / "other") as other:
        assert other.where.port != service.where.port
        headers = {"Authorization": f"Bearer {service.edge.token.value}"}
        assert (await other.client.get("/api/queue", headers=headers)).status_code == 401
        await other.post(edit("/a"))
    assert service.rows("SELECT count(*) FROM pending_messages") == [(0,)]


async def _is_drained(service: Service) -> bool:
    states = (await service.client.get("/api/queue")).json()["states"]
    return bool(states["pending"] + states["processing"] == 0)


async def _observations(service: Service) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await service.client.get("/api/observations")).json()["results"]
    return rows
