"""Projects: which name an event, a folder or a filter stands for."""

from dataclasses import dataclass
from typing import Any

from service.database import Reader, Tx

UNKNOWN = "unknown"
"""Where events go that name no folder and belong to no known session."""
GLOBAL = "global"
"""Where memories go that were saved without a project; every project's context reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRef:
    """What an event says about its project, strongest first: `override` (a name or a key), then `key` with `name`
    (found by reading the repository), then `folder` alone."""

    override: str | None = None
    key: str | None = None
    name: str | None = None
    folder: str = ""

    @property
    def is_silent(self) -> bool:
        return not (self.override or self.key or self.folder)


BY_NAME = "SELECT name, key FROM projects WHERE name = :name"
BY_KEY = "SELECT name FROM projects WHERE key = :key"
BY_NAME_OR_KEY = "SELECT name FROM projects WHERE name = :given OR key = :given ORDER BY name <> :given LIMIT 1"
BY_KEY_WITH_FOLDER = """
SELECT name, (SELECT project FROM project_folders WHERE folder = :folder) AS of_folder FROM projects WHERE key = :key
"""
BY_FOLDER = "SELECT project FROM project_folders WHERE folder = :folder"
INSERT = "INSERT INTO projects (name, key, created_at_epoch) VALUES (:name, :key, :now)"
ADOPTABLE = "SELECT name FROM projects WHERE name = :name AND key IS NULL"
ADOPT = "UPDATE projects SET key = :key WHERE name = :name AND key IS NULL"
REMEMBER_FOLDER = """
INSERT INTO project_folders (folder, project) VALUES (:folder, :project)
ON CONFLICT (folder) DO UPDATE SET project = :project WHERE project <> :project
"""
LIST = """
SELECT p.name, p.key, p.created_at_epoch,
       (SELECT count(*) FROM sessions s WHERE s.project = p.name
           AND coalesce(s.last_seen_epoch > s.forgotten_at_epoch, TRUE)) AS sessions,
       (SELECT count(*) FROM observations o WHERE o.project = p.name) AS observations
FROM projects p WHERE :project IS NULL OR p.name = :project
ORDER BY p.created_at_epoch DESC, p.name LIMIT :limit OFFSET :offset
"""
COUNT = "SELECT count(*) FROM projects WHERE :project IS NULL OR name = :project"


def resolve(tx: Tx, ref: ProjectRef, *, fallback: str | None, now: int) -> str:
    """The project's name, made if it is new. `fallback` is the project of the event's session, if it has one."""
    if ref.override:
        if tx.one(BY_NAME, {"name": ref.override}) is not None:
            return ref.override
        return tx.value(BY_KEY, {"key": ref.override}) or _create(tx, ref.override, None, now)
    if ref.key and ref.name:
        found = tx.one(BY_KEY_WITH_FOLDER, {"key": ref.key, "folder": ref.folder})
        name: str = _named(tx, ref.name, ref.key, now) if found is None else found["name"]
        if ref.folder and (found is None or found["of_folder"] != name):
            tx.run(REMEMBER_FOLDER, {"folder": ref.folder, "project": name})
        return name
    if ref.folder:
        return tx.value(BY_FOLDER, {"folder": ref.folder}) or _from_folder(tx, ref.folder, now)
    return fallback or tx.value(BY_NAME_OR_KEY, {"given": UNKNOWN}) or _create(tx, UNKNOWN, None, now)


def find(reader: Reader, given: str) -> str | None:
    """The name of a project given by name or key; None when there is none."""
    name: str | None = reader.value(BY_NAME_OR_KEY, {"given": given})
    return name


def of_folder(reader: Reader, ref: ProjectRef) -> str | None:
    """As `resolve`, for readers: nothing is made. None when there is no such project yet."""
    if ref.override:
        return find(reader, ref.override)
    if ref.key and (name := reader.value(BY_KEY, {"key": ref.key})):
        return str(name)
    name = reader.value(BY_FOLDER, {"folder": ref.folder}) or reader.value(BY_KEY, {"key": ref.folder})
    own = ref.name or next(reversed(_parts(ref.folder)), None)
    if name is None and own not in (None, UNKNOWN, GLOBAL):
        name = reader.value(ADOPTABLE, {"name": own})
    return None if name is None else str(name)


def listed(reader: Reader, *, project: str | None, limit: int, offset: int) -> tuple[int, list[dict[str, Any]]]:
    """(total, rows of name, key, created_at_epoch, sessions, observations), newest first."""
    params = {"project": project, "limit": limit, "offset": offset}
    return reader.value(COUNT, params), [dict(row) for row in reader.all(LIST, params)]


def _from_folder(tx: Tx, folder: str, now: int) -> str:
    """A folder that can't be read and was never seen: its path is its key."""
    parts = _parts(folder)
    name: str = tx.value(BY_KEY, {"key": folder}) or _named(tx, parts[-1] if parts else folder, folder, now)
    tx.run(REMEMBER_FOLDER, {"folder": folder, "project": name})
    return name


def _named(tx: Tx, name: str, key: str, now: int) -> str:
    """A name for a new key: its own, adopted if it was made by name alone, else with its parent in brackets. The names
    with a meaning of ours are no repository's."""
    parents = _parts(_without_git_folder(key))[:-1]
    candidates = [
        name,
        *(f"{name} ({'/'.join(parents[-depth:])})" for depth in range(1, len(parents) + 1)),
        f"{name} ({key})",
    ]
    for candidate in candidates:
        if candidate in (UNKNOWN, GLOBAL):
            continue
        taken = tx.one(BY_NAME, {"name": candidate})
        if taken is None:
            return _create(tx, candidate, key, now)
        if taken["key"] is None and tx.run(ADOPT, {"name": candidate, "key": key}):
            return candidate
    raise AssertionError(f"a name that holds the key {key!r} cannot be taken")


def _create(tx: Tx, name: str, key: str | None, now: int) -> str:
    tx.run(INSERT, {"name": name, "key": key, "now": now})
    return name


def _without_git_folder(key: str) -> str:
    """`/x/app` for the git common dirs `/x/app/.git` and `/x/app/.bare`, `/x/app/lib` for `/x/app/.git/modules/lib`."""
    return key.replace("/.git/modules/", "/").removesuffix("/.git").removesuffix("/.bare")


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part]
