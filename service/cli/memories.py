"""Memories by hand: `remember`, `edit` and `forget`, straight to the database, with the service up or down."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.options import Json, moment
from service.cli.output import complain, print_json, print_line
from service.cli.queue import with_core

if TYPE_CHECKING:
    from service.core import Core
    from service.forgetting import ForgetRequest, Forgotten
    from service.memories import NewMemory, Remembered
    from service.projects import ProjectRef

Title = Annotated[str | None, typer.Option(help="A line that names it.", show_default="the text's first line")]
Type = Annotated[str | None, typer.Option("--type", help="decision, bugfix, feature, refactor, discovery or change.")]
Layer = Annotated[str | None, typer.Option(help="L1 identity, L2 project, L3 session or L4 transient.")]
Tags = Annotated[str | None, typer.Option(help="Separated by commas, as stack:python,db:sqlite.")]
Keywords = Annotated[str | None, typer.Option(help="More words to find it by, separated by commas.")]
Confidence = Annotated[float | None, typer.Option(min=0, max=1, help="From 0 to 1.")]
ExpiresAt = Annotated[str | None, typer.Option(help="Forgotten by itself at this time (ISO 8601).")]
Project = Annotated[
    str | None, typer.Option(envvar="GAPLESS_PROJECT", help="By name or key.", show_default="the current folder's")
]


def remember(
    text: Annotated[str, typer.Argument(help="Kept word for word.")],
    *,
    project: Project = None,
    title: Title = None,
    kind: Type = None,
    layer: Layer = None,
    tags: Tags = None,
    keywords: Keywords = None,
    confidence: Confidence = None,
    expires_at: ExpiresAt = None,
    as_json: Json = False,
) -> None:
    """Remember a text, word for word; a text that the project has already is not kept twice."""
    from service.memories import NewMemory

    given = _given(
        title=title,
        type=_type(kind),
        layer=_layer(layer),
        tags=_items(tags),
        keywords=_items(keywords),
        confidence=confidence,
        expires_at_epoch=moment("expires-at", expires_at),
    )
    memory = NewMemory(text=text, project=_project(project), **given)
    told = with_core(lambda core: _remember(core, memory))
    if as_json:
        print_json({"id": told.observation_id, "duplicate": told.duplicate})
    elif told.duplicate:
        print_line(f"remembered already, as {told.observation_id}")
    else:
        print_line(f"remembered as {told.observation_id}; `gapless edit` and `gapless forget` take that id")


def edit(
    observation_id: Annotated[int, typer.Argument(metavar="ID", min=1)],
    *,
    title: Annotated[str | None, typer.Option(help="The line that names it.")] = None,
    subtitle: Annotated[str | None, typer.Option(help="The line below.")] = None,
    narrative: Annotated[str | None, typer.Option(help="The text.")] = None,
    kind: Type = None,
    project: Annotated[str | None, typer.Option(help="Move it there, by name or key.")] = None,
    layer: Layer = None,
    tags: Tags = None,
    keywords: Keywords = None,
    confidence: Confidence = None,
    expires_at: ExpiresAt = None,
    as_json: Json = False,
) -> None:
    """Change an observation; what is not named stays."""
    from service import memories
    from service.clock import now_ms

    changes = _given(
        title=title,
        subtitle=subtitle,
        narrative=narrative,
        type=_type(kind),
        project=project,
        layer=_layer(layer),
        tags=_items(tags),
        keywords=_items(keywords),
        confidence=confidence,
        expires_at_epoch=moment("expires-at", expires_at),
    )
    record = with_core(
        lambda core: core.database.write(lambda tx: memories.edit(tx, observation_id, changes, now=now_ms()))
    )
    if as_json:
        print_json(record)
    else:
        print_line(f"changed {', '.join(changes)} of {observation_id}; `gapless get {observation_id}` shows it")


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]…", help="12, S12 or P7.", show_default=False)] = None,
    *,
    project: Annotated[str | None, typer.Option(help="Of this project, by name or key.")] = None,
    session: Annotated[str | None, typer.Option(help="Of this session (the client's own id).")] = None,
    before: Annotated[str | None, typer.Option(help="From before this date or time (ISO 8601).")] = None,
    query: Annotated[str | None, typer.Option(help="That hold all of these words.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    vacuum: Annotated[bool, typer.Option("--vacuum", help="Take them out of the files' bytes as well.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: Json = False,
) -> None:
    """Forget what fulfils all that is given, with all it was made of: nothing brings it back."""
    from service import records
    from service.forgetting import ForgetRequest

    request = ForgetRequest(
        ids=tuple(map(records.parsed, ids)) if ids else None,
        project=project or None,
        session=session or None,
        before=moment("before", before),
        query=query or None,
    )
    if not (dry_run or yes) and sys.stdin.isatty():
        _ask(with_core(lambda core: _forget(core, request, dry_run=True, vacuum=False)))
    told = with_core(lambda core: _forget(core, request, dry_run=dry_run, vacuum=vacuum))
    if as_json:
        print_json(asdict(told))
    else:
        print_line(f"{'would forget' if dry_run else 'forgot'} {_counted(told)}")
    if vacuum and not dry_run:
        complain("backups, exports and the spool are as they were: delete those that hold it yourself")


async def _remember(core: "Core", memory: "NewMemory") -> "Remembered":
    from service import memories
    from service.clock import now_ms

    (prepared,) = memories.prepare([memory], now=now_ms())
    return await core.database.write(lambda tx: memories.remember(tx, prepared, now=now_ms()))


async def _forget(core: "Core", request: "ForgetRequest", *, dry_run: bool, vacuum: bool) -> "Forgotten":
    from service import forgetting
    from service.clock import now_ms

    return await forgetting.forget(core.database, request, now=now_ms, dry_run=dry_run, vacuum=vacuum)


def _ask(found: "Forgotten") -> None:
    """End here unless a person agrees."""
    if not typer.confirm(f"Forget {_counted(found)}? They don't come back", err=True):
        raise typer.Exit(1)


def _counted(told: "Forgotten") -> str:
    counts = {
        "observations": told.observations,
        "summaries": told.summaries,
        "prompts": told.prompts,
        "payloads of messages": told.messages,
    }
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _project(given: str | None) -> "ProjectRef":
    """The named project, else the current folder's."""
    from service.core import read_folder
    from service.projects import ProjectRef

    if given:
        return ProjectRef(override=given)
    folder = os.path.realpath(os.curdir)
    return read_folder(folder, ()) or ProjectRef(folder=folder)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _items(given: str | None) -> Sequence[str] | None:
    return None if given is None else given.split(",")


def _type(given: str | None) -> Any:
    from service.models import ObservationType

    return _one_of(ObservationType, "type", given)


def _layer(given: str | None) -> Any:
    from service.models import Layer

    return _one_of(Layer, "layer", given and given.upper())


def _one_of(known: Any, field: str, given: str | None) -> Any:
    from service.errors import InvalidInput

    if given is None:
        return None
    if given not in set(known):
        raise InvalidInput(f"there is no {field} {given!r}; use {', '.join(known)}", field=field)
    return known(given)
