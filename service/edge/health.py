"""Who we are and whether work moves; and the sign-in of browsers."""

from starlette.responses import Response

from service import readiness
from service.edge.errors import Refusal
from service.edge.operations import Call, Nothing, as_json
from service.edge.parameters import Login, Nonce
from service.version import VERSION

COOKIE_AGE_S = 30 * 86_400


async def index(_: Call[Nothing, Nothing]) -> object:
    return {
        "name": "gapless",
        "version": VERSION,
        "about": "durable memory for coding agents",
        "next": "/openapi.json lists the routes; most need the token in the data folder's file `token`",
    }


async def livez(_: Call[Nothing, Nothing]) -> object:
    return {"status": "alive"}


async def readyz(call: Call[Nothing, Nothing]) -> object:
    found = await readiness.check(call.edge.core, has_workers=call.edge.has_workers)
    told = {"status": "not ready" if found.reasons else "ready", "reasons": found.reasons, "notes": found.notes}
    return as_json(told, 503 if found.reasons else 200)


async def hello(call: Call[Nonce, Nothing]) -> object:
    """Lets a hook see that this is its own service before it sends anything."""
    return {"proof": call.edge.token.sign(call.query.nonce), "version": VERSION}


async def login(call: Call[Nothing, Login]) -> object:
    if not call.edge.token.matches(call.body.token):
        raise Refusal(401, "this is not the token; it is in the file `token` of the data folder")
    name, value = call.edge.token.cookie
    response = Response(status_code=204)
    response.set_cookie(name, value, max_age=COOKIE_AGE_S, httponly=True, samesite="strict")
    return response
