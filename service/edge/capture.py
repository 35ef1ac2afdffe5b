"""Taking events: a receipt leaves only after the commit."""

from typing import Any

from starlette.requests import Request

from service.core import Incoming
from service.edge import bodies, context
from service.edge.operations import Call, as_json
from service.edge.parameters import Batch, EventParameters, HookPayload
from service.edge.state import Edge
from service.envelopes import NAMES, from_headers, from_item
from service.errors import InvalidInput
from service.intake import Envelope, Receipt
from service.jsonin import parse

ACCEPTED = frozenset({"queued", "recorded"})
ENVELOPE_HEADERS = {name.lower().encode(): name for name in NAMES}


async def take_event(call: Call[EventParameters, HookPayload]) -> object:
    raw = await bodies.read(call.request)
    envelope = _envelope(call.request, call.query)
    payload = parse(raw)
    receipt = await call.edge.core.ingest(Incoming(payload=payload, size=len(raw), envelope=envelope))
    _count(call.edge, [receipt])
    told = _told(receipt)
    if payload["hook_event_name"] in context.EVENTS:
        told |= await context.for_event(call.edge, payload, envelope, receipt)
    return as_json(told, 202 if receipt.status in ACCEPTED else 200)


async def take_batch(call: Call[EventParameters, Batch]) -> object:
    whole = _envelope(call.request, call.query)
    results: list[dict[str, Any]] = []
    incoming: list[Incoming] = []
    places: list[int] = []
    for item, size in bodies.items(await bodies.read(call.request)):
        if isinstance(item, InvalidInput):
            results.append(_refused(item))
            continue
        payload, envelope = from_item(item, whole)
        incoming.append(Incoming(payload=payload, size=size, envelope=envelope))
        places.append(len(results))
        results.append({})
    receipts = await call.edge.core.ingest_many(incoming)
    for place, receipt in zip(places, receipts, strict=True):
        results[place] = _refused(receipt) if isinstance(receipt, InvalidInput) else _told(receipt)
    _count(call.edge, [receipt for receipt in receipts if isinstance(receipt, Receipt)])
    return {"results": results}


def _envelope(request: Request, query: EventParameters) -> Envelope:
    """Looks at each header once: this is the hottest path."""
    headers = {
        ENVELOPE_HEADERS[name]: value.decode("latin-1")
        for name, value in request.scope["headers"]
        if name in ENVELOPE_HEADERS
    }
    return from_headers(headers, platform=query.client, project=query.project)


def _count(edge: Edge, receipts: list[Receipt]) -> None:
    for receipt in receipts:
        edge.traffic.events[receipt.status] += 1
        if receipt.due:
            edge.wake()


def _told(receipt: Receipt) -> dict[str, Any]:
    told = {"status": receipt.status, "message_id": receipt.message_id, "event_key": receipt.event_key}
    return told if receipt.reason is None else told | {"reason": receipt.reason}


def _refused(error: InvalidInput) -> dict[str, Any]:
    return {
        "status": "error",
        "message_id": None,
        "error": {"code": "invalid", "message": str(error)} | ({"field": error.field} if error.field else {}),
    }
