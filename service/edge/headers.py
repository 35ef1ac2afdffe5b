"""Request headers, read where they are needed: most requests are asked for a few of them once."""

from starlette.types import Scope


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of this name, in lower case; None when there is none."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return None
