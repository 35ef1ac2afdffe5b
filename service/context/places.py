"""Where a session is: its project, and the projects of the repositories that hold it as a submodule."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from hooks import project as folders
from service import projects
from service.database import Reader
from service.projects import ProjectRef

NESTED = 4
"""Submodules in submodules that are followed at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`label` is the project's name for people, also where nothing is known of it. `projects` are those there are, the
    place's own first. `root` is the working tree's top, '' when unknown."""

    label: str
    projects: tuple[str, ...]
    root: str


def find(reader: Reader, ref: ProjectRef, exclude: Sequence[str]) -> Place | None:
    """None when the folder is excluded: then nothing may be told there, whatever was stored before."""
    if _is_excluded(ref.folder, exclude):
        return None
    found = _identified(ref.folder)
    named = replace(ref, key=ref.key or (found.key if found else None))
    own = projects.of_folder(reader, named)
    known = [own] if own else []
    for parent in _parents(found):
        name = projects.of_folder(reader, ProjectRef(key=parent.key, folder=parent.root))
        known += [name] if name else []
    label = own or ref.override or ref.name or (found.name if found else PurePath(ref.folder).name or ref.folder)
    return Place(label=label, projects=tuple(dict.fromkeys(known)), root=found.root if found else ref.folder)


def _is_excluded(folder: str, exclude: Sequence[str]) -> bool:
    try:
        return folders.is_excluded(folder, list(exclude))
    except ValueError:  # no folder of any machine: a NUL in it
        return False


def _identified(folder: str) -> folders.Project | None:
    try:
        return folders.identify(folder) if folder else None
    except (OSError, ValueError):
        return None


def _parents(project: folders.Project | None) -> Iterator[folders.Project]:
    for _ in range(NESTED):
        project = folders.parent(project.root) if project else None
        if project is None:
            return
        yield project
