"""Who may ask: the token, and the Host and Origin checks against DNS rebinding and foreign pages."""

import contextlib
import hmac
import os
import secrets
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.edge.errors import Refusal
from service.edge.headers import header
from service.private_files import PRIVATE_FILE

TOKEN_BYTES = 32
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
COOKIE_SEED = "gapless cookie"
"""No hexadecimal number, so that `/api/hello` never signs it."""


@dataclass(frozen=True, slots=True)
class Token:
    """The data folder's secret. Whoever can read that file is its owner."""

    value: str

    def sign(self, text: str) -> str:
        """HMAC-SHA256 as hex: shows that we know the token without telling it."""
        return hmac.new(self.value.encode(), text.encode(), "sha256").hexdigest()

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value. Cookies ignore ports, so the name tells two installations apart, and the value is no token:
        it opens nothing but GET routes."""
        signed = self.sign(COOKIE_SEED)
        return f"gapless_{signed[:8]}", signed[8:]

    def is_given(self, request: Request) -> bool:
        scheme, _, given = (header(request.scope, b"authorization") or "").partition(" ")
        if scheme.lower() == "bearer":
            return self.matches(given.strip())
        name, value = self.cookie
        return request.method in ("GET", "HEAD") and _same(request.cookies.get(name, ""), value)

    def matches(self, given: str) -> bool:
        return _same(given, self.value)


def read_token(home: Path) -> Token:
    """The token of the data folder, made when there is none."""
    path = home / "token"
    with contextlib.suppress(FileNotFoundError):
        if value := path.read_text(encoding="utf-8").strip():
            path.chmod(PRIVATE_FILE)
            return Token(value)
        path.unlink()
    value = secrets.token_urlsafe(TOKEN_BYTES)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "w") as file:
        file.write(f"{value}\n")
    return Token(value)


def over_unix_socket(request: Request) -> bool:
    """Only the data folder's owner can reach the socket, so such a request needs no token."""
    server = request.scope.get("server")
    return server is not None and server[1] is None


class OwnHostAndOrigin:
    """Refuses requests to a foreign name (DNS rebinding) and from foreign pages, before anything else looks at them."""

    def __init__(self, app: ASGIApp, *, host: str) -> None:
        self.app = app
        self.hosts = LOCAL_HOSTS | {host.strip("[]").lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host, origin = header(scope, b"host") or "", header(scope, b"origin")
            if _host_name(host) not in self.hosts:
                raise Refusal(403, "this Host is not served; use 127.0.0.1, localhost, or set HOST to the name you use")
            if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
                raise Refusal(403, "pages of another origin may not call this service; use its own address")
        await self.app(scope, receive, send)


@lru_cache(maxsize=256)
def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
