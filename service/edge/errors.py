"""Every error as the contract's JSON; nothing of a stack trace leaves the process."""

from collections.abc import Mapping

import orjson
import structlog
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import GaplessError, InvalidInput, NotFound, SchemaError, SettingsError, StoreUnavailable

log = structlog.get_logger()

CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    503: "unavailable",
}
RETRY_AFTER_S = "1"


class Refusal(GaplessError):
    """A request that is refused for how it came, not for what it says."""

    def __init__(self, status: int, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class ErrorsAsJson:
    """The one place that turns exceptions into answers, and the edge's 500 handler."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            return
        except Exception as error:
            if started:  # too late for an answer: the server cuts the connection
                raise
            await _answer(error, scope)(scope, receive, send)


def rendered(
    status: int, message: str, *, field: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    error = {"code": CODES.get(status, "internal"), "message": message}
    body = {"error": error if field is None else error | {"field": field}}
    return Response(orjson.dumps(body), status, media_type="application/json", headers=headers)


async def unrouted(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """What the router answers with when it has no route."""
    raise Refusal(404, "there is no such route; /openapi.json lists those that exist")


def invalid(error: ValidationError, known: Mapping[str, object], *, where: str) -> InvalidInput:
    """The first problem that pydantic found, in words. `where` is `parameter` or `field`."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = ".".join(str(part) for part in problem["loc"] if not str(part).endswith("()")) or None
    if problem["type"] == "extra_forbidden":
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        return InvalidInput(f"there is no {where} {name} here; {takes}", field=name)
    return InvalidInput(f"{name or 'the body'}: {problem['msg']}", field=name)


def in_words(error: Exception, *, method: str, path: str) -> str:
    """What an error says to whoever asked. What no request should lead to is logged."""
    if not isinstance(error, Refusal | InvalidInput | NotFound | SettingsError | StoreUnavailable | SchemaError):
        log.error("request.failed", method=method, path=path, exc_info=error)
    if isinstance(error, GaplessError):
        return str(error)
    return "Gapless failed at this request; the service's log says why, please report it"


def _answer(error: Exception, scope: Scope) -> Response:
    words = in_words(error, method=scope["method"], path=scope["path"])
    match error:
        case Refusal():
            return rendered(error.status, words, headers=error.headers)
        case InvalidInput():
            return rendered(error.status, words, field=error.field)
        case NotFound():
            return rendered(404, words)
        case SettingsError():
            return rendered(422, words)
        case StoreUnavailable() | SchemaError():
            return rendered(503, words, headers={"Retry-After": RETRY_AFTER_S})
        case _:
            return rendered(500, words)
