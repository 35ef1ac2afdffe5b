"""One identity for everything that belongs to a repository, and two for what doesn't."""

import os
import subprocess
from pathlib import Path

import pytest

from hooks import project
from hooks.project import Project


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *settings, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def make_repository(folder: Path, *, origin: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    if origin:
        git(folder, "remote", "add", "origin", origin)
    return folder


def identify(folder: Path) -> Project:
    found = project.identify(str(folder))
    assert found is not None
    return found


def test_sub_directories_and_worktrees_share_their_repositorys_project(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    git(app, "worktree", "add", "-q", str(tmp_path / "elsewhere" / "app-feature"))
    (app / "src" / "deep").mkdir(parents=True)
    places = [app, app / "src" / "deep", app / ".git" / "hooks", tmp_path / "elsewhere" / "app-feature"]
    found = [identify(place) for place in places]
    assert {(each.key, each.name) for each in found} == {(str(app / ".git"), "app")}
    assert [each.root for each in found] == [str(app)] * 3 + [str(tmp_path / "elsewhere" / "app-feature")]


def test_two_folders_of_the_same_name_are_two_projects(tmp_path: Path) -> None:
    one, two = make_repository(tmp_path / "a" / "app"), make_repository(tmp_path / "b" / "app")
    assert identify(one).name == identify(two).name == "app"
    assert identify(one).key != identify(two).key


def test_clones_of_one_origin_are_one_project(tmp_path: Path) -> None:
    one = make_repository(tmp_path / "one", origin="git@Example.org:team/app.git")
    two = make_repository(tmp_path / "two", origin="https://me:secret@example.org/team/app/")
    assert identify(one).key == identify(two).key == "example.org/team/app"
    assert identify(one).name == "app"


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    library = make_repository(tmp_path / "library")
    parent = make_repository(tmp_path / "parent")
    git(parent, "submodule", "add", "-q", str(library), "libs/inner")
    with_origin = identify(parent / "libs" / "inner")
    assert (with_origin.key, with_origin.root) == (str(library), str(parent / "libs" / "inner"))
    git(parent / "libs" / "inner", "remote", "remove", "origin")
    without = identify(parent / "libs" / "inner")
    assert (without.key, without.name) == (str(parent / ".git" / "modules" / "libs" / "inner"), "inner")


@pytest.mark.parametrize("repository", [".git", ".bare", "app.git"])
def test_a_submodule_knows_its_parent_in_any_worktree(tmp_path: Path, repository: str) -> None:
    library, app = make_repository(tmp_path / "library"), make_repository(tmp_path / "app")
    git(app, "submodule", "add", "-q", str(library), "libs/inner")
    git(app, "commit", "-q", "-m", "with it")
    if repository != ".git":
        git(tmp_path, "clone", "-q", "--bare", str(app), f"bare/{repository}")
        app = tmp_path / "bare" / repository
    git(app, "worktree", "add", "-q", str(tmp_path / "modules" / "tree"))
    tree = tmp_path / "modules" / "tree"
    git(tree, "submodule", "update", "-q", "--init")
    found = project.parent(str(tree / "libs" / "inner"))
    assert found is not None
    assert found.key == identify(tree).key
    assert project.parent(str(tree)) is None


def test_worktrees_of_a_bare_repository_are_named_after_it(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    for bare, name in ((tmp_path / "shop" / ".bare", "shop"), (tmp_path / "store.git", "store")):
        bare.parent.mkdir(exist_ok=True)
        git(tmp_path, "clone", "-q", "--bare", str(source), str(bare))
        git(bare, "remote", "remove", "origin")
        git(bare, "worktree", "add", "-q", str(tmp_path / f"tree-of-{name}"))
        found = identify(tmp_path / f"tree-of-{name}")
        assert (found.key, found.name) == (str(bare), name)


def test_a_worktree_whose_repository_is_out_of_reach_keeps_its_key(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: /not/mounted/app/.git/worktrees/tree\n")
    found = identify(tmp_path / "tree")
    assert (found.key, found.name) == ("/not/mounted/app/.git", "app")


def test_a_git_folder_elsewhere_is_followed(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "store").mkdir()
    git(tmp_path / "app", "init", "-q", "--separate-git-dir", str(tmp_path / "store" / "kept.git"))
    found = identify(tmp_path / "app")
    assert (found.key, found.name) == (str(tmp_path / "store" / "kept.git"), "kept")


def test_without_git_a_folder_is_its_own_project(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()  # git takes no notice of a folder without HEAD either
    assert (identify(folder).key, identify(folder).name) == (str(folder), "plain")
    assert identify(folder / "sub").key == str(folder / "sub")


def test_a_link_to_a_folder_is_that_folder(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    (tmp_path / "link").symlink_to(app)
    assert identify(tmp_path / "link").key == identify(app).key


def test_a_folder_that_is_not_here_has_no_project(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for cwd in (tmp_path / "gone", tmp_path / "file", Path("C:\\Users\\dev"), Path()):
        assert project.identify(str(cwd)) is None


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("git@host:a/b.git", "host/a/b"),
        ("host:a/b", "host/a/b"),
        ("git@host:/a/b.git/", "host/a/b"),
        ("ssh://git@host/a/b", "host/a/b"),
        ("ssh://git@host:2222/a/b.git", "host/a/b"),
        ("https://host/a/b.git", "host/a/b"),
        ("https://HOST:443/a/b.git/", "host/a/b"),
        ("https://user:to@ken@host/a/b", "host/a/b"),
        ("https://token@host/A/b", "host/a/b"),
        ("git@Host:A/b", "host/a/b"),
        ("http://host:3000/a/b", "host:3000/a/b"),
        ("git://host/a/b.git", "host/a/b"),
        ("git+ssh://git@host/a/b.git", "host/a/b"),
        ("file:///srv/git/b.git", "/srv/git/b"),
        ("/srv/git/b.git", "/srv/git/b"),
        ("git@host:ä/b.git", "host/ä/b"),
    ],
)
def test_an_origin_means_the_same_however_it_is_reached(tmp_path: Path, url: str, key: str) -> None:
    found = identify(make_repository(tmp_path / "app", origin=url))
    assert (found.key, found.name) == (key, "b")


def test_a_relative_origin_is_relative_to_the_repository(tmp_path: Path) -> None:
    assert identify(make_repository(tmp_path / "app", origin="../store/b.git")).key == str(tmp_path / "store" / "b")


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ('[remote "origin"]\n\turl = "git@host:a/b.git" ; main\n', "host/a/b"),
        ('[Remote "origin"] URL=git@host:a/b.git\n', "host/a/b"),
        ('[remote "origin"]\r\n\tpushurl = git@other:a/b\r\n\turl = git@host:a/b.git # main\r\n', "host/a/b"),
        ('[remote "origin"]\nurl = git@host:a/b\nurl = git@second:a/b\n', "host/a/b"),
        ('[remote "fork"]\n\turl = git@fork:a/b.git\n', ""),
        ('[remote "Origin"]\n\turl = git@fork:a/b.git\n', ""),
        ('[remote "origin"]\n\turl =\n', ""),
        ('[remote "origin"]\n\turl = https:///\n', ""),
        ('[remote "origin"\n[[[\n=\n\x00', ""),
    ],
)
def test_the_origin_is_read_as_git_reads_it(tmp_path: Path, config: str, key: str) -> None:
    app = make_repository(tmp_path / "app")
    (app / ".git" / "config").write_text(config)
    assert identify(app).key == (key or str(app / ".git"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('project = "Shop"', "Shop"),
        ("\ufeff# ours\nproject='Shop' # comment\n", "Shop"),
        ('"project" = "Sh\\u00f6p \\"x\\""', 'Shöp "x"'),
        ('other = "x"\nproject = "Shop"\r\n', "Shop"),
        ('[tool]\nproject = "x"', "app"),
        ("project = 17", "app"),
        ("project =", "app"),
        ('project = ""', "app"),
        ('project = "bad \\q"', "app"),
        ("\x00\xff", "app"),
    ],
)
def test_a_file_in_the_repository_sets_the_name_and_not_the_key(tmp_path: Path, text: str, name: str) -> None:
    app = make_repository(tmp_path / "app")
    (app / "src").mkdir()
    (app / ".gapless").write_text(text, newline="")
    assert (identify(app / "src").name, identify(app / "src").key) == (name, str(app / ".git"))


def test_without_git_the_file_marks_the_projects_top(tmp_path: Path) -> None:
    (tmp_path / "notes" / "2026").mkdir(parents=True)
    (tmp_path / "notes" / ".gapless").write_text('project = "Notes"')
    found = identify(tmp_path / "notes" / "2026")
    assert (found.name, found.key) == ("Notes", str(tmp_path / "notes"))


def test_a_data_folder_named_gapless_is_no_name_file(tmp_path: Path) -> None:
    (tmp_path / ".gapless").mkdir()
    (tmp_path / "plain").mkdir()
    assert identify(tmp_path / "plain").name == "plain"


def test_files_that_are_pipes_do_not_block(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    for name in (".git", ".gapless"):
        os.mkfifo(tmp_path / "odd" / name)
    assert identify(tmp_path / "odd").name == "odd"


@pytest.mark.parametrize(
    ("pattern", "excludes"),
    [
        ("{tmp}/secret", {"secret", "secret/a/b"}),
        ("{tmp}/secret/", {"secret", "secret/a/b"}),
        ("{tmp}/secret/**", {"secret", "secret/a/b"}),
        ("{tmp}/secret/*", {"secret/a/b"}),
        ("*/secret", {"secret", "secret/a/b"}),
        ("{tmp}/sec*", {"secret", "secret/a/b", "secretary"}),
        ("/", {"secret", "secret/a/b", "secretary"}),
        ("", set()),
        ("secret", set()),
    ],
)
def test_a_glob_excludes_a_folder_and_what_is_below(tmp_path: Path, pattern: str, excludes: set[str]) -> None:
    folders = ("secret", "secret/a/b", "secretary")
    patterns = ["/elsewhere", pattern.format(tmp=tmp_path)]
    assert {folder for folder in folders if project.is_excluded(str(tmp_path / folder), patterns)} == excludes


def test_a_marker_excludes_its_folder_however_one_comes_there(tmp_path: Path) -> None:
    (tmp_path / "secret" / "a").mkdir(parents=True)
    (tmp_path / "secret" / ".gapless-off").touch()
    (tmp_path / "link").symlink_to(tmp_path / "secret" / "a")
    for cwd in ("secret", "secret/a", "secret/gone/already", "link"):
        assert project.is_excluded(str(tmp_path / cwd), [])
    assert not project.is_excluded(str(tmp_path), [])


def test_what_excludes_a_repository_excludes_its_worktrees(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "work" / "app")
    git(app, "worktree", "add", "-q", str(tmp_path / "trees" / "app-fix"))
    (tmp_path / "trees" / "app-fix" / "src").mkdir()
    cwd = str(tmp_path / "trees" / "app-fix" / "src")
    assert not project.is_excluded(cwd, [])
    assert project.is_excluded(cwd, [f"{tmp_path}/work"])
    (app / ".gapless-off").touch()
    assert project.is_excluded(cwd, [])


@pytest.mark.parametrize(
    ("path", "here"),
    [
        ("C:\\Users\\X\\proj", "/mnt/c/Users/X/proj"),
        ("c:/Users/X/proj/", "/mnt/c/Users/X/proj"),
        ("D:\\", "/mnt/d"),
        ("\\\\wsl$\\Debian\\home\\dev\\app", "/home/dev/app"),
        ("\\\\wsl.localhost\\Debian\\home\\dev\\app\\", "/home/dev/app"),
        ("\\\\server\\share\\app", "\\\\server\\share\\app"),
        ("/mnt/c/Users/X/proj", "/mnt/c/Users/X/proj"),
        ("/home/dev/odd\\name", "/home/dev/odd\\name"),
        ("cd:\\x", "cd:\\x"),
        ("", ""),
    ],
)
def test_a_windows_path_is_the_one_that_this_machine_has(path: str, here: str) -> None:
    assert project.local(path) == here


def test_the_share_of_a_repository_here_is_that_repository(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    share = f"\\\\wsl$\\Debian{str(app).replace('/', chr(92))}"
    found = project.identify(share)
    assert found is not None
    assert found.key == identify(app).key
    (app / ".gapless-off").touch()
    assert project.is_excluded(share, [])


def test_folders_whose_names_differ_in_case_are_two_where_the_disk_says_so(tmp_path: Path) -> None:
    names = ("App", "aPP")
    for name in names:
        (tmp_path / name).mkdir(exist_ok=True)
    on_disk = {path.name for path in tmp_path.iterdir()}
    assert {identify(tmp_path / name).name for name in names} == on_disk
