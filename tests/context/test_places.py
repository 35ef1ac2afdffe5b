"""Whose memory a folder is told: that of its project, and of the repositories it is a submodule of."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hooks import project as folders
from tests.context.notebook import Notebook

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "protocol.file.allow=always", "-c", "user.name=t", "-c", "user.email=t@t")
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def key_of(folder: Path) -> str:
    found = folders.identify(str(folder))
    assert found is not None
    return found.key


async def test_a_submodule_is_told_its_own_memory_and_that_of_its_parents(notebook: Notebook, tmp_path: Path) -> None:
    leaf, lib, app = (repository(tmp_path / "from" / name) for name in ("leaf", "lib", "app"))
    git(lib, "submodule", "--quiet", "add", str(leaf), "leaf")
    git(lib, "commit", "--quiet", "--message", "leaf")
    git(app, "submodule", "--quiet", "add", str(lib), "lib")
    git(app, "submodule", "--quiet", "update", "--init", "--recursive")
    inner = app / "lib" / "leaf"
    for name, folder in (("app", app), ("lib", app / "lib"), ("leaf", inner)):
        await notebook.note(f"note of {name}", project=name, key=key_of(folder), session_id=name)
    (inner / "src").mkdir()
    text = (await notebook.start(folder=str(inner / "src"))).text
    assert "project leaf" in text
    assert all(f"note of {name}" in text for name in ("app", "lib", "leaf"))
    text = (await notebook.start(folder=str(app))).text
    assert "note of app" in text
    assert "note of lib" not in text


async def test_neither_worktrees_nor_nested_repositories_have_parents(tmp_path: Path) -> None:
    app = repository(tmp_path / "modules" / "app")
    git(app, "worktree", "add", "--quiet", str(tmp_path / "modules" / "side"))
    nested = repository(app / "nested")
    for root in (app, nested, tmp_path / "modules" / "side", tmp_path):
        assert folders.parent(str(root)) is None


async def test_same_named_folders_are_told_only_their_own(notebook: Notebook, tmp_path: Path) -> None:
    one, two = repository(tmp_path / "a" / "shop"), repository(tmp_path / "b" / "shop")
    await notebook.note("of one", project="shop", key=key_of(one))
    await notebook.note("of two", project="shop (b)", key=key_of(two), session_id="s2")
    (one / "src").mkdir()
    text = (await notebook.start(folder=str(one / "src"))).text
    assert "of one" in text
    assert "of two" not in text


async def test_a_project_made_by_name_alone_is_told_to_the_folder_of_that_name(
    notebook: Notebook, tmp_path: Path
) -> None:
    await notebook.note("saved by name")
    assert "saved by name" in (await notebook.start(folder=str(repository(tmp_path / "shop")))).text
    assert "saved by name" not in (await notebook.start(folder=str(repository(tmp_path / "other")))).text
