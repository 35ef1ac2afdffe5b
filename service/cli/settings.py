"""`gapless settings` and `gapless hook-command`: what is in force, and what a client has to run."""

from typing import Annotated

import typer

from service.cli.options import Json
from service.cli.output import print_json, print_line, print_table


def settings(*, as_json: Json = False) -> None:
    """Print the effective settings, each with its source; secrets are masked."""
    from service.settings import Settings, load

    configuration = load()
    values = configuration.masked()
    sources = {name.upper(): source for name, source in configuration.sources.items()}
    if as_json:
        print_json({"home": str(configuration.home), "settings": values, "sources": sources})
        return
    print_line(f"data folder: {configuration.home}")
    fields = Settings.model_fields
    print_table(
        ("name", "value", "source", "meaning"),
        ((name, value, sources[name], fields[name.lower()].description) for name, value in values.items()),
    )


def hook_command(
    client: Annotated[str, typer.Option(help="The client whose settings will run it.")] = "claude-code",
    *,
    as_json: Json = False,
) -> None:
    """Print the command line that a client runs for every hook event, quoted for a shell."""
    from hooks import command

    line = command.hook_command(client)
    if as_json:
        print_json({"client": client, "command": line})
    else:
        print_line(line)
