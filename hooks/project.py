"""Which project a folder belongs to, found by reading files only; git itself is never started."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NAME_FILE = ".gapless"  # TOML with `project = "name"`
OFF_FILE = ".gapless-off"  # nothing is captured in its folder and below
READ_MAX = 65_536

_WSL_SHARES = ("\\\\wsl$\\", "\\\\wsl.localhost\\")


class Project:
    """`key` tells projects apart: `host/path` of the origin, else the shared git folder's path, else the folder's.

    `name` is for people. `root` is the working tree's top, or the folder itself.
    """

    __slots__ = ("key", "name", "root")  # a plain class: dataclasses are slow to import (see envelope.py)

    def __init__(self, *, name: str, key: str, root: str) -> None:
        self.name = name
        self.key = key
        self.root = root


def identify(cwd: str) -> Project | None:
    """The project of a folder: one for all sub-directories and worktrees of a repository. A submodule is its own.

    None when it isn't absolute or does not exist here. Raises ValueError for what can't be a path.
    """
    cwd = local(cwd)
    folder = _as_on_disk(os.path.realpath(cwd))
    if not (os.path.isabs(cwd) and os.path.isdir(folder)):
        return None
    for root in _upwards(folder):
        git = _git_folder(root)
        if git:
            return _repository(root, git)
    named = (parent for parent in _upwards(folder) if os.path.isfile(os.path.join(parent, NAME_FILE)))
    root = next(named, folder)
    return Project(name=_given_name(root) or os.path.basename(root) or root, key=root, root=root)


def local(path: str) -> str:
    r"""A path of Windows as this machine may have it: `/mnt/c/app` for `C:\app\`, `/home` for `\\wsl$\Debian\home`.

    Any other path as it is.
    """
    if os.name != "posix":
        return path
    parts = path.replace("\\", "/").rstrip("/").split("/")
    if len(parts[0]) == 2 and parts[0][1] == ":" and parts[0][0].isalpha():  # noqa: PLR2004  a drive
        return "/".join(["/mnt", parts[0][0].lower(), *parts[1:]])
    if path.startswith(_WSL_SHARES):
        return "/" + "/".join(parts[4:])
    return path


def parent(root: str) -> Project | None:
    """The project of the repository that has this working tree as a submodule; None for any other folder."""
    git = _git_folder(root).replace(os.sep, "/")
    if os.path.isdir(os.path.join(root, ".git")) or not _is_of_submodule(git):
        return None
    return identify(os.path.dirname(root))


def _is_of_submodule(git: str) -> bool:
    """Whether it lies in the `modules` of another git folder: of a repository, bare or not, or of a worktree."""
    above = git.split("/modules/")[:-1]
    owners = ("/modules/".join(above[: number + 1]) for number in range(len(above)))
    return any(os.path.basename(owner) == ".git" or os.path.lexists(os.path.join(owner, "HEAD")) for owner in owners)


def is_excluded(cwd: str, patterns: list[str]) -> bool:
    """Whether a `.gapless-off` file or one of the globs covers the folder or one above it, or those of its worktree's
    repository."""
    cwd = local(cwd)
    folders = dict.fromkeys([*_upwards(os.path.normpath(cwd)), *_upwards(os.path.realpath(cwd))]) if cwd else {}
    folders |= dict.fromkeys(_upwards_of_repository(folders))
    if any(os.path.lexists(os.path.join(folder, OFF_FILE)) for folder in folders):
        return True
    wanted = [os.path.expanduser(pattern.strip()) for pattern in patterns if pattern.strip()]
    return bool(wanted) and any(_matches(folder, pattern) for pattern in wanted for folder in folders)


def _upwards_of_repository(folders: Iterable[str]) -> list[str]:
    """Of a linked worktree: where its repository is, and the folders above that."""
    for git in filter(None, map(_git_folder, folders)):
        common = _common_folder(git)
        return _upwards(os.path.dirname(common)) if common != os.path.realpath(git) else []
    return []


def _matches(folder: str, pattern: str) -> bool:
    import fnmatch

    whole_tree = pattern.removesuffix("/**").rstrip("/")
    return fnmatch.fnmatchcase(folder, whole_tree or "/")


def _as_on_disk(folder: str) -> str:
    """With each name as its folder lists it: where case does not matter, people and clients write it as they like."""
    if not os.path.exists(folder.swapcase()):
        return folder
    head, name = os.path.split(folder)
    if not name:
        return folder
    head = _as_on_disk(head)
    try:
        names = os.listdir(head)
    except OSError:
        return folder
    if name not in names:
        name = next((listed for listed in names if listed.casefold() == name.casefold()), name)
    return os.path.join(head, name)


def _upwards(folder: str) -> list[str]:
    folders = [folder]
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def _git_folder(root: str) -> str:
    """The folder that `.git` is or points to; empty when git would not take `root` for a working tree."""
    entry = os.path.join(root, ".git")
    if os.path.isdir(entry):
        return entry if os.path.lexists(os.path.join(entry, "HEAD")) else ""
    text = _read(entry)
    if not text.startswith("gitdir:"):
        return ""
    return os.path.realpath(os.path.join(root, text[len("gitdir:") :].strip()))


def _repository(root: str, git: str) -> Project:
    common = _common_folder(git)
    origin = _normalised(_origin(_read(os.path.join(common, "config"))), os.path.dirname(common))
    name = _given_name(root) or (os.path.basename(origin) if origin else _main_name(common))
    return Project(name=name or root, key=_without_case(origin) or common, root=root)


def _common_folder(git: str) -> str:
    """What all worktrees of a repository share.

    A worktree's file says where it is. Its own path says so too, which serves where the repository is out of reach (a
    worktree mounted alone into a container).
    """
    shared = _read(os.path.join(git, "commondir")).strip()
    if shared:
        return os.path.realpath(os.path.join(git, shared))
    if os.path.basename(os.path.dirname(git)) == "worktrees":
        return os.path.dirname(os.path.dirname(git))
    return os.path.realpath(git)


def _main_name(common: str) -> str:
    """`app` for `app/.git`, `app/.bare`, `app.git` and `.git/modules/app`."""
    name = os.path.basename(common)
    if name.startswith("."):
        return os.path.basename(os.path.dirname(common))
    return name.removesuffix(".git")


def _origin(config: str) -> str:
    """The first URL of the remote named origin in a git config; empty when there is none."""
    section = ""
    for line in config.split("\n"):
        setting = line.strip()
        if setting.startswith("["):
            section, _, setting = setting[1:].partition("]")
        name, _, value = setting.partition("=")
        kind, _, remote = section.strip().partition(" ")
        if kind.lower() == "remote" and remote.strip() == '"origin"' and name.strip().lower() == "url":
            return value.partition(" #")[0].partition(" ;")[0].strip().strip('"')
    return ""


def _normalised(url: str, base: str) -> str:
    """`host/a/b` for `git@host:a/b.git`, `ssh://git@host:22/a/b` and `https://user:token@Host/a/b.git/`.

    Who asks and how is no part of it. A local path becomes absolute, from `base`.
    """
    scheme, has_scheme, rest = url.partition("://")
    if not has_scheme:
        host, colon, path = url.partition(":")
        if not colon or "/" in host:
            return _without_suffix(os.path.realpath(os.path.join(base, url))) if url else ""
        path = path.lstrip("/")
    elif scheme.lower() == "file":
        return _without_suffix(os.path.realpath("/" + rest.partition("/")[2]))
    else:
        host, _, path = rest.partition("/")
    host = host.rpartition("@")[2].lower()
    name, _, port = host.rpartition(":")
    if name and port.isdigit() and (scheme.lower() not in ("http", "https") or port in ("80", "443")):
        host = name
    path = _without_suffix(path.strip("/"))
    return f"{host}/{path}" if host and path else ""


def _without_case(origin: str) -> str:
    """Hosts take a repository's name in any case; a path on this machine is another with another case."""
    return origin if origin.startswith("/") else origin.lower()


def _without_suffix(path: str) -> str:
    return path.rstrip("/").removesuffix(".git").rstrip("/")


def _given_name(root: str) -> str:
    """The name that the repository gives itself. Read by hand: tomllib is slow to import, and too young."""
    for line in _read(os.path.join(root, NAME_FILE)).lstrip("\ufeff").split("\n"):
        if line.lstrip().startswith("["):
            break
        name, _, value = line.partition("=")
        value = value.strip()
        if name.strip().strip("\"'") == "project" and value[:1] in ("'", '"'):
            return _unquoted(value).strip()
    return ""


def _unquoted(value: str) -> str:
    quote = value[0]
    text = value[1:].partition(quote)[0]
    if quote == "'" or "\\" not in text:
        return text
    import json

    try:
        return str(json.JSONDecoder().raw_decode(value)[0])  # the escapes of the two are nearly the same
    except ValueError:
        return ""


def _read(path: str) -> str:
    """The beginning of a small text file; empty when there is none to read."""
    if not os.path.isfile(path):  # also a pipe, which would block
        return ""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(READ_MAX)
    except OSError:
        return ""
