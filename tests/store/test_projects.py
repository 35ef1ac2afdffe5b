"""Which project an event belongs to: said outright, by the repository, by its folder, by its session."""

from pathlib import Path

import pytest

from service import projects
from service.projects import ProjectRef
from tests.store.desk import Desk


async def resolve(desk: Desk, *, fallback: str | None = None, **ref: str) -> str:
    return await desk.core.database.write(lambda tx: projects.resolve(tx, ProjectRef(**ref), fallback=fallback, now=1))


async def test_one_key_is_one_project_whatever_the_name_says(desk: Desk) -> None:
    first = await resolve(desk, key="host/team/shop", name="shop")
    assert await resolve(desk, key="host/team/shop", name="renamed") == first == "shop"


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        ("host/a/app", "host/b/app", "other/b/app"),
        ("/x/a/app/.git", "/x/b/app/.git", "/y/b/app/.git"),
        ("/x/a/app/.bare", "/x/b/app/.bare", "/y/b/app/.bare"),
        ("/x/a/app", "/x/b/app", "/y/b/app"),
    ],
)
async def test_a_second_repository_of_the_same_name_is_called_by_its_parent_for_good(
    desk: Desk, first: str, second: str, third: str
) -> None:
    names = [await resolve(desk, key=key, name="app") for key in (first, second, third)]
    assert names[:2] == ["app", "app (b)"]
    assert len(set(names)) == 3
    assert [await resolve(desk, key=key, name="app") for key in (third, second, first)] == names[::-1]


async def test_a_submodule_with_a_taken_name_is_called_by_its_parent_repository(desk: Desk) -> None:
    await resolve(desk, key="/x/lib/.git", name="lib")
    assert await resolve(desk, key="/x/shop/.git/modules/lib", name="lib") == "lib (shop)"


async def test_a_project_made_by_name_is_adopted_by_the_first_key_of_that_name(desk: Desk) -> None:
    assert await resolve(desk, override="shop") == "shop"
    assert await resolve(desk, key="host/a/shop", name="shop") == "shop"
    assert await resolve(desk, key="host/b/shop", name="shop") == "shop (b)"
    assert await resolve(desk, override="host/b/shop") == "shop (b)"


async def test_the_names_with_a_meaning_of_ours_are_no_repositorys(desk: Desk) -> None:
    await resolve(desk, override="global")
    assert await resolve(desk, key="host/a/global", name="global") == "global (a)"
    assert await resolve(desk, key="/x/unknown", name="unknown") == "unknown (x)"


async def test_a_folder_that_is_gone_keeps_its_last_project(desk: Desk) -> None:
    await resolve(desk, key="host/a/shop", name="shop", folder="/w/shop")
    await resolve(desk, key="host/b/store", name="store", folder="/w/shop")
    assert await resolve(desk, folder="/w/shop") == "store"


async def test_a_folder_never_seen_falls_back_to_its_path_stably(desk: Desk) -> None:
    first = await resolve(desk, folder="/nowhere/shop")
    assert await resolve(desk, folder="/nowhere/shop") == first == "shop"
    assert await resolve(desk, folder="/elsewhere/shop") == "shop (elsewhere)"
    assert await resolve(desk, folder="C:\\work\\shop") == "shop (work)"


async def test_an_event_without_a_folder_belongs_to_its_sessions_project(desk: Desk) -> None:
    await desk.tool()
    await desk.tool(cwd=None)
    await desk.tool(cwd=None, session_id="stranger")
    assert await desk.rows("SELECT project FROM pending_messages ORDER BY id") == [("shop",), ("shop",), ("unknown",)]


async def test_project_is_a_property_of_each_event_not_of_the_session(desk: Desk) -> None:
    await desk.tool(cwd="/nowhere/shop")
    await desk.tool(cwd="/nowhere/store")
    await desk.post(desk.payload(cwd="/nowhere/shop"), project="named")
    assert await desk.rows("SELECT project FROM pending_messages ORDER BY id") == [("shop",), ("store",), ("named",)]


async def test_the_service_reads_the_repository_itself_when_the_client_does_not(desk: Desk, tmp_path: Path) -> None:
    for team in ("a", "b"):
        (tmp_path / team / "app" / ".git").mkdir(parents=True)
        (tmp_path / team / "app" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / team / "app" / "src").mkdir()
    for folder in ("a/app", "a/app/src", "b/app/src"):
        await desk.tool(cwd=str(tmp_path / folder))
    assert await desk.rows("SELECT project FROM pending_messages ORDER BY id") == [("app",), ("app",), ("app (b)",)]


async def test_an_excluded_folder_leaves_no_row(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / ".gapless-off").touch()
    receipt = await desk.tool(cwd=str(tmp_path))
    assert (receipt.status, receipt.reason, receipt.message_id) == ("skipped", "excluded", None)
    assert await desk.rows("SELECT 1 FROM pending_messages UNION ALL SELECT 1 FROM sessions") == []
    assert await desk.rows("SELECT reason, count FROM not_queued") == [("excluded", 1)]
