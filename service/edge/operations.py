"""What an operation is: one declaration that routing, admission, validation and the OpenAPI document all read."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qsl

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from service.edge import bodies, errors, security
from service.edge.errors import Refusal
from service.errors import NotFound

if TYPE_CHECKING:
    from service.edge.state import Edge

LARGEST_ID = 2**63 - 1


class Parameters(BaseModel):
    """Base of query strings and bodies: what is not declared is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Nothing(Parameters):
    """A query string without parameters, or no body."""


NOTHING = Nothing()

Q = TypeVar("Q", bound=BaseModel)
B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Q, B]):
    """A request that was admitted and understood."""

    edge: "Edge"
    request: Request
    query: Q
    body: B

    def number(self, name: str) -> int:
        """The id in the path. Raises `NotFound` when no row can have it."""
        text: str = self.request.path_params[name]
        if not (text.isascii() and text.isdigit() and int(text) <= LARGEST_ID):
            raise NotFound(f"there is no {name.replace('_', ' ')} {text[:40]!r}; ids are whole numbers")
        return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[Q, B]):
    """`answer` gets the call and returns a `Response`, or what is sent as JSON with status 200.

    `raw`: the answer reads the body itself, `body` only describes it. `public`: needs no token.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Call[Q, B]], Awaitable[object]]
    query: type[Q] = Nothing  # type: ignore[assignment]
    body: type[B] = Nothing  # type: ignore[assignment]
    raw: bool = False
    public: bool = False
    successes: tuple[int, ...] = (200,)
    media_type: str = "application/json"

    @property
    def takes_body(self) -> bool:
        return self.body is not Nothing

    async def call(self, edge: "Edge", request: Request) -> Response:
        if self.method != "GET":
            bodies.check_media_type(request)
        query = self._query(request)
        body = await self._body(request)
        answer = await self.answer(Call(edge=edge, request=request, query=query, body=body))
        return answer if isinstance(answer, Response) else as_json(answer)

    def _query(self, request: Request) -> Q:
        try:
            query: Q = _parsed(self.query, request.scope["query_string"])
        except ValidationError as error:
            raise errors.invalid(error, names(self.query), where="parameter") from None
        return query

    async def _body(self, request: Request) -> B:
        if self.raw or not self.takes_body:
            return NOTHING  # type: ignore[return-value]
        given = bodies.document(await bodies.read(request))
        try:
            return self.body.model_validate(given)
        except ValidationError as error:
            raise errors.invalid(error, names(self.body), where="field") from None


class Resource:
    """Everything that one path answers to."""

    def __init__(self, edge: "Edge", operations: Iterable[Operation[Any, Any]]) -> None:
        self.edge = edge
        self.by_method = {operation.method: operation for operation in operations}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        operation = self.by_method.get("GET" if request.method == "HEAD" else request.method)
        if operation is None:
            allowed = ", ".join(sorted(self.by_method))
            raise Refusal(405, f"this route takes {allowed}, not {request.method}", headers={"Allow": allowed})
        if not (operation.public or security.over_unix_socket(request) or self.edge.token.is_given(request)):
            raise Refusal(
                401,
                "send `Authorization: Bearer <token>`; the token is in the file `token` of the data folder",
                headers={"WWW-Authenticate": "Bearer"},
            )
        response = await operation.call(self.edge, request)
        await response(scope, receive, send)


def routes(edge: "Edge", operations: Iterable[Operation[Any, Any]]) -> list[Route]:
    """One route a path, in the operations' order, but a name before an id: `/batch` is no observation."""
    by_path: dict[str, list[Operation[Any, Any]]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, []).append(operation)
    return [Route(path, Resource(edge, by_path[path])) for path in sorted(by_path, key=lambda path: "{" in path)]


@lru_cache(maxsize=256)
def _parsed(model: type[Q], query_string: bytes) -> Q:
    """Remembered, because every event comes with the same one; the models are frozen."""
    return model.model_validate(dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)))


def names(model: type[BaseModel]) -> dict[str, object]:
    """The names a request gives the model's fields by."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def as_json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")
