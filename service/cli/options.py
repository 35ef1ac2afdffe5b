"""Options that several commands share, and how they are understood."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def moment(field: str, given: str | None) -> int | None:
    """Milliseconds since the epoch. Raises `InvalidInput`."""
    from service.clock import epoch_ms
    from service.errors import InvalidInput

    if given is None:
        return None
    at = epoch_ms(given)
    if at is None:
        raise InvalidInput(f"--{field} {given!r} is no time; write it as 2026-11-30 or 2026-11-30T12:00", field=field)
    return at
