"""An event under way: the headers that travel with it over HTTP and in spool files, and the payload's bytes."""

from __future__ import annotations

import os

CAPTURED_AT = "X-Gapless-Captured-At"  # ms since the epoch, decimal
DELIVERY = "X-Gapless-Delivery"  # 32 hex digits, random, the same on every retry
CLIENT = "X-Gapless-Client"  # this and the project's three are percent-encoded UTF-8
PROJECT = "X-Gapless-Project"
PROJECT_KEY = "X-Gapless-Project-Key"
PROJECT_OVERRIDE = "X-Gapless-Project-Override"
PRIVATE = "X-Gapless-Private"  # "1" when the turn is private; absent otherwise
REJECTED = "X-Gapless-Rejected"  # only in files set aside: why

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/:@")


class Envelope:
    """`headers`: values are printable ASCII. `body`: the payload, usually JSON, but any bytes."""

    # A plain class: importing dataclasses or typing costs more than the rest of the hook.
    __slots__ = ("body", "headers")

    def __init__(self, headers: dict[str, str], body: bytes) -> None:
        self.headers = headers
        self.body = body

    def to_bytes(self) -> bytes:
        """The form kept in files: a line per header, an empty line, the body as it is."""
        lines = "".join(f"{name}: {value}\n" for name, value in self.headers.items())
        return lines.encode("ascii") + b"\n" + self.body

    @classmethod
    def from_bytes(cls, data: bytes) -> Envelope:
        """Raises ValueError when `data` isn't what `to_bytes` made."""
        head, blank, body = data.partition(b"\n\n")
        headers = {}
        for line in head.decode("ascii").split("\n"):
            name, colon, value = line.partition(": ")
            if not (colon and blank):
                raise ValueError("this is no spooled event: it does not begin with header lines and an empty line")
            headers[name] = value
        return cls(headers, body)


def stamp(*, client: str, captured_ms: int) -> dict[str, str]:
    """The headers that every event has."""
    return {CAPTURED_AT: str(captured_ms), DELIVERY: os.urandom(16).hex(), CLIENT: quote(client)}


def quote(text: str) -> str:
    """Percent-encoded UTF-8, as by urllib.parse.quote, which is slow to import.

    Raises UnicodeEncodeError on halves of surrogates that are no escaped bytes.
    """
    data = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data)
