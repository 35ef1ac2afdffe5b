"""`gapless context`: what a session that begins in a folder would be told."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Json
from service.cli.output import complain, print_json, print_line
from service.cli.queue import with_core

if TYPE_CHECKING:
    from service.context.start import Context
    from service.core import Core


def context(
    *,
    cwd: Annotated[str, typer.Option(help="The session's folder.", show_default="the current one")] = os.curdir,
    project: Annotated[
        str | None,
        typer.Option(envvar="GAPLESS_PROJECT", help="By name or key.", show_default="the folder's"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a session that begins here would be told."""
    told = with_core(lambda core: _told(core, os.path.realpath(cwd), project))
    if as_json:
        print_json({"text": told.text, "tokens": told.tokens, "left_out": told.left_out})
    elif told.text:
        print_line(told.text)
    else:
        complain("nothing: the folder is excluded, or CONTEXT_BUDGET leaves no room")


async def _told(core: "Core", folder: str, project: str | None) -> "Context":
    from service.clock import now_ms
    from service.context.asking import Asked, at_start
    from service.projects import ProjectRef

    asked = Asked(ref=ProjectRef(override=project, folder=folder))
    return await core.database.read(
        lambda reader: at_start(reader, asked, core.configuration, source=None, now=now_ms())
    )
