"""The commands by name. Modules load what they need when a command runs, so that none pays for another."""

from typing import Annotated

import typer

from service.cli import (
    backups,
    context,
    demo,
    doctor,
    exporting,
    importing,
    install,
    mcp,
    memories,
    processes,
    queue,
    reading,
    settings,
    status,
    timeline,
)
from service.version import VERSION

app = typer.Typer(
    name="gapless",
    help="Durable memory for coding agents. Exits 0 when done, 1 when it failed, 2 on wrong usage.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.command("serve")(processes.serve)
app.command("work")(processes.work)
app.command("up")(processes.up)
app.command("down")(processes.down)
app.command("status")(status.status)
app.command("search")(reading.search)
app.command("timeline")(timeline.timeline)
app.command("get")(reading.get)
app.command("remember")(memories.remember)
app.command("edit")(memories.edit)
app.command("forget")(memories.forget)
app.command("context")(context.context)
app.add_typer(queue.app, name="queue")
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.command("hook-command")(settings.hook_command)
app.command("settings")(settings.settings)
app.command("doctor")(doctor.doctor)
app.command("export")(exporting.export)
app.command("import")(importing.import_)
app.command("backup")(backups.backup)
app.command("restore")(backups.restore)
app.command("mcp")(mcp.mcp)
app.command("demo")(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def gapless(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Durable memory for coding agents. Exits 0 when done, 1 when it failed, 2 on wrong usage."""
