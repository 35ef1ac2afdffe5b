"""Reading what is remembered: `search` and `get`, straight from the database, with the service up or down."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.options import Json
from service.cli.output import complain, local_time, print_json, print_line, print_pairs, print_table
from service.cli.queue import with_core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.core import Core
    from service.records import RecordId
    from service.searching.request import SearchAnswer, SearchHit


def search(
    query: Annotated[str, typer.Argument(help="Any text; empty lists the newest.")] = "",
    *,
    project: Annotated[
        str | None,
        typer.Option(envvar="GAPLESS_PROJECT", help="By name or key.", show_default="the current folder's"),
    ] = None,
    all_projects: Annotated[bool, typer.Option("--all-projects", help="Search every project.")] = False,
    kind: Annotated[str | None, typer.Option("--type", help="observations, summaries, prompts or all.")] = None,
    obs_type: Annotated[str | None, typer.Option(help="Types of observations, separated by commas.")] = None,
    concepts: Annotated[str | None, typer.Option(help="Concepts, separated by commas.")] = None,
    files: Annotated[str | None, typer.Option(help="Ends of paths, separated by commas.")] = None,
    session: Annotated[str | None, typer.Option(help="The client's session id.")] = None,
    platform: Annotated[str | None, typer.Option(help="The client, as claude-code.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", "--date-start", help="From this date or time on (ISO 8601).")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", "--date-end", help="Up to this date or time (ISO 8601).")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="1 to 100.", show_default="20")] = None,
    offset: Annotated[int | None, typer.Option(help="Leave out so many.")] = None,
    order_by: Annotated[str | None, typer.Option(help="relevance, date_desc or date_asc.")] = None,
    as_json: Json = False,
) -> None:
    """Search observations, summaries and prompts."""
    given: dict[str, str | int | None] = {
        "query": query,
        "type": kind,
        "obs_type": obs_type,
        "concepts": concepts,
        "files": files,
        "session": session,
        "platform": platform,
        "dateStart": since,
        "dateEnd": until,
        "limit": limit,
        "offset": offset,
        "orderBy": order_by,
    }
    folder = None if project or all_projects else os.path.realpath(os.curdir)
    answer = with_core(lambda core: _search(core, given, project, folder))
    if as_json:
        print_json(asdict(answer))
        return
    print_table(("id", "time", "type", "title", "~tokens"), map(_row, answer.results))
    print_line(f"{len(answer.results)} of {answer.total}; `gapless get ID…` shows them whole")
    if answer.degraded:
        complain(answer.degraded)
    if folder and not answer.total:
        complain("nothing in this folder's project; --all-projects searches everywhere")


def _row(hit: "SearchHit") -> tuple[object, ...]:
    from service.records import spelled

    return spelled((hit.kind, hit.id)), local_time(hit.created_at_epoch), hit.type, hit.title, hit.tokens


async def _search(
    core: "Core", given: dict[str, str | int | None], project: str | None, folder: str | None
) -> "SearchAnswer":
    """In the named project, else the folder's, else everywhere."""
    from service.search import search as find
    from service.searching.request import search_query

    chosen = project if folder is None else await project_of(core, folder)
    return await find(core.database, search_query({**given, "project": chosen}), vectors=core.vectors)


async def project_of(core: "Core", folder: str) -> str:
    """Its path when nothing of it is known, which matches nothing."""
    from service import projects
    from service.core import read_folder

    ref = read_folder(folder, ()) or projects.ProjectRef(folder=folder)
    return await core.database.read(lambda reader: projects.of_folder(reader, ref)) or folder


def get(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="12 (observation), S12 (summary), P12 (prompt).")],
    *,
    as_json: Json = False,
) -> None:
    """Show full records."""
    from service.records import parsed, spelled

    wanted = [parsed(text) for text in ids]
    found = with_core(lambda core: _records(core, wanted))
    missing = [str(spelled(each)) for each in wanted if each not in found]
    if as_json:
        print_json({"results": list(found.values()), "missing": missing})
    else:
        for record in found.values():
            _print_record(record)
    if missing:
        complain(f"there is no {', '.join(missing)}; `gapless search` lists what there is")
        raise typer.Exit(1)


async def _records(core: "Core", wanted: "Sequence[RecordId]") -> "dict[RecordId, dict[str, Any]]":
    from service import records

    return await core.database.read(lambda reader: records.whole(reader, wanted))


def _print_record(record: dict[str, Any]) -> None:
    from service.records import spelled

    rows = []
    for name, value in record.items():
        if name.endswith("_epoch") and value is not None:
            rows.append((name.removesuffix("_at_epoch"), local_time(value)))
        elif value and name not in {"kind", "id"}:
            rows.append((name, "\n".join(map(str, value)) if isinstance(value, list) else value))
    print_pairs(rows, title=f"{record['kind']} {spelled((record['kind'], record['id']))}")
