"""Request bodies: how much is read, which media types, what counts as JSON."""

from collections.abc import Iterator
from typing import Any

from starlette.requests import ClientDisconnect, Request

from service.edge.errors import Refusal
from service.edge.headers import header
from service.errors import InvalidInput
from service.jsonin import parse
from service.shaping import check_limits

BODY_LIMIT_BYTES = 16 * 1024 * 1024
ITEMS_LIMIT = 10_000
MEDIA_TYPES = ("application/json", "application/x-ndjson")


def check_media_type(request: Request) -> None:
    given = (header(request.scope, b"content-type") or "").partition(";")[0].strip().lower()
    if given and given not in MEDIA_TYPES:
        raise Refusal(415, f"send the body as {' or '.join(MEDIA_TYPES)}, not as {given[:100]}")


async def read(request: Request) -> bytes:
    """The whole body. Stops reading, with 413, as soon as it is known to be too large."""
    announced = header(request.scope, b"content-length") or ""
    if announced.isdigit() and int(announced) > BODY_LIMIT_BYTES:
        raise _too_large()
    chunks, size, more = [], 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size > BODY_LIMIT_BYTES:
            raise _too_large()
        chunks.append(chunk)
    return b"".join(chunks)


def document(raw: bytes) -> Any:
    """One JSON document within our limits of depth and numbers. Raises `InvalidInput`."""
    value = parse(raw)
    check_limits(value)
    return value


def items(raw: bytes) -> Iterator[tuple[Any, int]]:
    """The items of a JSON array, or of JSON lines, each with its size in bytes; an item that is not JSON comes as its
    `InvalidInput`. Raises `InvalidInput` when the whole is neither."""
    if raw.lstrip().startswith(b"["):
        whole = parse(raw)
        _check_number(len(whole))
        share = len(raw) // max(len(whole), 1)
        yield from ((item, share) for item in whole)
        return
    lines = [line for line in raw.split(b"\n") if line.strip()]
    if not lines:
        raise InvalidInput("the body is empty; send a JSON array of events, or one event a line", status=400)
    _check_number(len(lines))
    for line in lines:
        try:
            yield parse(line), len(line)
        except InvalidInput as error:
            yield error, len(line)


def _check_number(number: int) -> None:
    if number > ITEMS_LIMIT:
        raise InvalidInput(f"{number} items are too many for one request; send at most {ITEMS_LIMIT}")


def _too_large() -> Refusal:
    return Refusal(413, f"the body is larger than {BODY_LIMIT_BYTES} bytes; send less at once, or cut long fields")
