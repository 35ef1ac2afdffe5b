"""`gapless timeline`: what happened around a record, a session, a time or a query's best hit."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Json
from service.cli.output import complain, local_time, print_json, print_table
from service.cli.queue import with_core
from service.cli.reading import project_of

if TYPE_CHECKING:
    from service.core import Core
    from service.timeline import Timeline, TimelineEntry, TimelineQuery

DEPTH = 10


def timeline(
    anchor: Annotated[
        str | None,
        typer.Argument(help="12, S12, P7, a session id or a time (ISO 8601).", show_default=False),
    ] = None,
    *,
    query: Annotated[str | None, typer.Option(help="Around its best hit.")] = None,
    before: Annotated[
        int, typer.Option("--before", "--depth-before", min=0, max=100, help="So many records before.")
    ] = DEPTH,
    after: Annotated[
        int, typer.Option("--after", "--depth-after", min=0, max=100, help="So many records after.")
    ] = DEPTH,
    project: Annotated[
        str | None,
        typer.Option(envvar="GAPLESS_PROJECT", help="By name or key.", show_default="a record's own, or the folder's"),
    ] = None,
    all_projects: Annotated[bool, typer.Option("--all-projects", help="Show every project.")] = False,
    as_json: Json = False,
) -> None:
    """Show what happened around a record, a session, a time or a query's best hit."""
    from service.timeline import TimelineQuery

    folder = None if project or all_projects else os.path.realpath(os.curdir)
    asked = TimelineQuery(
        anchor=anchor,
        query=query,
        depth_before=before,
        depth_after=after,
        project=project,
        all_projects=all_projects,
    )
    shown = with_core(lambda core: _timeline(core, asked, folder))
    if as_json:
        print_json(asdict(shown))
        return
    print_table(("", "id", "time", "type", "title", "~tokens"), map(_row, shown.results))
    if shown.anchor is None:
        complain("nothing found; --all-projects looks everywhere")


def _row(entry: "TimelineEntry") -> tuple[object, ...]:
    from service.records import spelled

    mark, label = ">" if entry.is_anchor else "", spelled((entry.kind, entry.id))
    return (mark, label, local_time(entry.created_at_epoch), entry.type, entry.title, entry.tokens)


async def _timeline(core: "Core", asked: "TimelineQuery", folder: str | None) -> "Timeline":
    from dataclasses import replace

    from service import timeline as timelines
    from service.clock import now_ms

    own = folder and await project_of(core, folder)
    return await timelines.timeline(core.database, replace(asked, own_project=own), now=now_ms())
