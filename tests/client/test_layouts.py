"""One project from wherever one works in it: real repositories, the real hook, and what the store makes of both."""

import json
from pathlib import Path

import pytest

from service.core import Core
from tests.hooks.hook_process import event, run_hook
from tests.hooks.test_project import git, make_repository
from workers.drain import Drain


async def projects_of(core: Core, cwds: dict[str, str]) -> dict[str, str]:
    """The project that an event from each folder, run there by a hook, ends up in."""
    for number, (label, cwd) in enumerate(cwds.items()):
        payload = event(cwd=cwd, session_id=label, tool_use_id=f"toolu_{number}")
        run = run_hook(core.configuration.home, payload)
        assert (run.code, run.stdout, run.stderr) == (0, b"", "")
    await Drain(core).tick()
    rows = await core.database.read(lambda reader: reader.all("SELECT session_id, project FROM pending_messages"))
    return {row["session_id"]: row["project"] for row in rows}


async def test_worktrees_and_sub_directories_share_their_repositorys_project(core: Core, tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    git(app, "worktree", "add", "-q", str(tmp_path / "trees" / "app-feature"))
    (app / "src" / "deep").mkdir(parents=True)
    cwds = {"top": app, "deep": app / "src" / "deep", "tree": tmp_path / "trees" / "app-feature"}
    found = await projects_of(core, {label: str(cwd) for label, cwd in cwds.items()})
    assert found == dict.fromkeys(cwds, "app")


async def test_a_submodule_is_its_own_and_names_its_parent(core: Core, tmp_path: Path) -> None:
    library, parent = make_repository(tmp_path / "library"), make_repository(tmp_path / "parent")
    git(parent, "submodule", "add", "-q", str(library), "libs/inner")
    found = await projects_of(core, {"inner": str(parent / "libs" / "inner"), "parent": str(parent)})
    assert found == {"inner": "library", "parent": "parent"}


async def test_folders_of_the_same_name_are_two_projects_for_good(core: Core, tmp_path: Path) -> None:
    one, two = make_repository(tmp_path / "x" / "app"), make_repository(tmp_path / "y" / "app")
    found = await projects_of(core, {"one": str(one), "two": str(two), "again": str(one)})
    assert found == {"one": "app", "two": "app (y)", "again": "app"}


async def test_clones_whose_origins_differ_in_case_are_one_project(core: Core, tmp_path: Path) -> None:
    one = make_repository(tmp_path / "one", origin="git@Example.org:Team/App.git")
    two = make_repository(tmp_path / "two", origin="https://example.org/team/app")
    found = await projects_of(core, {"one": str(one), "two": str(two)})
    assert found == {"one": "App", "two": "App"}


async def test_without_git_a_folder_is_one_and_a_file_joins_those_below_it(core: Core, tmp_path: Path) -> None:
    (tmp_path / "plain" / "sub").mkdir(parents=True)
    (tmp_path / "notes" / "2026").mkdir(parents=True)
    (tmp_path / "notes" / ".gapless").write_text('project = "Diary"')
    cwds = {"plain": "plain", "sub": "plain/sub", "notes": "notes", "year": "notes/2026"}
    found = await projects_of(core, {label: str(tmp_path / cwd) for label, cwd in cwds.items()})
    assert found == {"plain": "plain", "sub": "sub", "notes": "Diary", "year": "Diary"}


async def test_a_windows_path_and_the_same_folder_in_wsl_are_one_project(core: Core) -> None:
    cwds = {"windows": "C:\\Users\\X\\proj", "lower": "c:\\Users\\X\\proj\\", "wsl": "/mnt/c/Users/X/proj"}
    assert await projects_of(core, cwds) == dict.fromkeys(cwds, "proj")


async def test_a_folder_that_is_gone_keeps_its_project(core: Core, tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app", origin="git@example.org:team/shop.git")
    assert await projects_of(core, {"before": str(app)}) == {"before": "shop"}
    app.rename(tmp_path / "moved")
    assert (await projects_of(core, {"after": str(app)}))["after"] == "shop"


@pytest.mark.parametrize("way", ["marker", "glob"])
async def test_an_excluded_folder_leaves_nothing(core: Core, tmp_path: Path, way: str) -> None:
    (tmp_path / "secret" / "sub").mkdir(parents=True)
    if way == "marker":
        (tmp_path / "secret" / ".gapless-off").touch()
    environment = {"GAPLESS_EXCLUDE": f"{tmp_path}/secret"} if way == "glob" else {}
    for name in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"):
        payload = event(cwd=str(tmp_path / "secret" / "sub"), hook_event_name=name, prompt="look")
        run = run_hook(core.configuration.home, payload, env=environment, args=("--start-service",))
        assert (run.code, run.stdout, run.stderr) == (0, b"", "")
    kept = [path for path in core.configuration.home.rglob("*") if path.suffix == ".event"]
    assert kept == []


async def test_events_in_a_repository_leave_it_as_it_was(core: Core, tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    for number in range(5):
        payload = json.loads(event(cwd=str(app), tool_use_id=f"toolu_{number}"))
        payload["tool_input"] = {"file_path": str(app / ".git" / "refs" / "heads" / "x")}
        run_hook(core.configuration.home, json.dumps(payload).encode(), cwd=app)
    before = sorted(path.name for path in app.iterdir())
    assert before == [".git"]
    git(app, "diff", "--exit-code", "HEAD")
    git(app, "fsck", "--strict")
