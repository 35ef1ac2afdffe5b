"""The application: every route, every layer, in one place each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from starlette.middleware import Middleware
from starlette.routing import Router

from service.core import Core
from service.edge import (
    capture,
    context,
    control,
    health,
    mcp,
    memories,
    metrics,
    openapi,
    parameters,
    reading,
    searching,
    stream,
)
from service.edge.errors import ErrorsAsJson, unrouted
from service.edge.feed import Feed
from service.edge.operations import Call, Nothing, Operation, routes
from service.edge.security import OwnHostAndOrigin, Token
from service.edge.state import Edge
from service.edge.traffic import Measured, Traffic


async def show_openapi(_: Call[Nothing, Nothing]) -> object:
    return _document()


@cache
def _document() -> dict[str, Any]:
    return openapi.document(OPERATIONS)


OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        method="POST",
        path="/api/events",
        summary="Take one hook payload; answered after the commit.",
        answer=capture.take_event,
        query=parameters.EventParameters,
        body=parameters.HookPayload,
        raw=True,
        successes=(200, 202),
    ),
    Operation(
        method="POST",
        path="/api/events/batch",
        summary="Take several payloads in one commit, with a result for each.",
        answer=capture.take_batch,
        query=parameters.EventParameters,
        body=parameters.Batch,
        raw=True,
    ),
    Operation(
        method="GET",
        path="/api/search",
        summary="Search what is remembered.",
        answer=searching.search,
        query=searching.SearchParameters,
    ),
    Operation(
        method="GET",
        path="/api/timeline",
        summary="What happened around a record, a session, a time or a query's best hit.",
        answer=searching.timeline,
        query=searching.TimelineParameters,
    ),
    Operation(
        method="GET",
        path="/api/observations",
        summary="Observations in full.",
        answer=reading.list_observations,
        query=parameters.Page,
    ),
    Operation(
        method="GET",
        path="/api/observations/{observation_id}",
        summary="One observation in full.",
        answer=reading.show_observation,
    ),
    Operation(
        method="POST",
        path="/api/observations/batch",
        summary="Observations by their ids; those that don't exist are listed as missing.",
        answer=reading.show_observations,
        body=parameters.ObservationIds,
    ),
    Operation(
        method="PATCH",
        path="/api/observations/{observation_id}",
        summary="Change an observation; what is not named stays.",
        answer=memories.edit_observation,
        body=memories.Changes,
    ),
    Operation(
        method="DELETE",
        path="/api/observations/{observation_id}",
        summary="Forget one observation.",
        answer=memories.forget_observation,
        successes=(204,),
    ),
    Operation(
        method="POST",
        path="/api/memories",
        summary="Remember a text, word for word; 200 when its project has it already.",
        answer=memories.remember,
        body=memories.Memory,
        successes=(200, 201),
    ),
    Operation(
        method="POST",
        path="/api/memories/batch",
        summary="Remember several texts in one commit, each of them.",
        answer=memories.remember_batch,
        body=memories.Memories,
        successes=(201,),
    ),
    Operation(
        method="POST",
        path="/api/forget",
        summary="Forget what fulfils all that is given, and drop the payloads it was made of.",
        answer=memories.forget,
        body=memories.Forget,
    ),
    Operation(
        method="POST",
        path="/api/feedback",
        summary="Tell what became of an observation that was shown.",
        answer=memories.take_feedback,
        body=memories.Feedback,
        successes=(201,),
    ),
    Operation(
        method="GET",
        path="/api/context/inject",
        summary="What a session that begins is told.",
        answer=context.inject,
        query=context.InjectParameters,
    ),
    Operation(
        method="POST",
        path="/api/context/semantic",
        summary="What is known of a question, if anything is.",
        answer=context.recall,
        body=context.Question,
    ),
    Operation(
        method="GET",
        path="/api/summaries",
        summary="Session summaries.",
        answer=reading.list_summaries,
        query=parameters.Page,
    ),
    Operation(
        method="GET",
        path="/api/prompts",
        summary="What users said.",
        answer=reading.list_prompts,
        query=parameters.Page,
    ),
    Operation(
        method="GET",
        path="/api/sessions",
        summary="Sessions by their last event.",
        answer=reading.list_sessions,
        query=parameters.Page,
    ),
    Operation(
        method="GET",
        path="/api/projects",
        summary="Projects.",
        answer=reading.list_projects,
        query=parameters.Page,
    ),
    Operation(
        method="GET",
        path="/api/stats",
        summary="How much is remembered, in all and by project.",
        answer=reading.show_stats,
        query=parameters.Page,
    ),
    Operation(
        method="GET",
        path="/api/queue",
        summary="The queue's depth and what holds it up.",
        answer=control.show_queue,
    ),
    Operation(
        method="GET",
        path="/api/queue/messages",
        summary="Messages of the queue.",
        answer=control.list_messages,
        query=parameters.MessagesPage,
    ),
    Operation(
        method="GET",
        path="/api/queue/messages/{message_id}",
        summary="One message with its stored payload.",
        answer=control.show_message,
    ),
    Operation(
        method="POST",
        path="/api/queue/replay",
        summary="Put finished messages back; what they make then replaces what they made before.",
        answer=control.replay,
        body=parameters.Replay,
    ),
    Operation(method="POST", path="/api/queue/pause", summary="Stop compressing.", answer=control.pause),
    Operation(method="POST", path="/api/queue/resume", summary="End every pause.", answer=control.resume),
    Operation(method="POST", path="/api/queue/flush", summary="Make all that waits due now.", answer=control.flush),
    Operation(
        method="GET",
        path="/api/settings",
        summary="Effective settings and where each comes from; secrets are masked.",
        answer=control.show_settings,
    ),
    Operation(
        method="PATCH",
        path="/api/settings",
        summary="Change settings.toml.",
        answer=control.change_settings,
        body=parameters.SettingsChange,
    ),
    Operation(
        method="POST",
        path="/api/login",
        summary="Exchange the token for a cookie that opens GET routes.",
        answer=health.login,
        body=parameters.Login,
        public=True,
        successes=(204,),
    ),
    Operation(
        method="GET",
        path="/api/hello",
        summary="Prove that this service knows the token, without telling it.",
        answer=health.hello,
        query=parameters.Nonce,
        public=True,
    ),
    Operation(
        method="POST",
        path="/mcp",
        summary="The tools for agents: Model Context Protocol, streamable HTTP.",
        answer=mcp.take,
        body=mcp.RpcRequest,
        raw=True,
        successes=(200, 202),
    ),
    Operation(
        method="GET",
        path="/stream",
        summary="Server-sent events: observation, summary, prompt, queue, health, reset.",
        answer=stream.stream,
        media_type="text/event-stream",
    ),
    Operation(method="GET", path="/livez", summary="The process answers.", answer=health.livez, public=True),
    Operation(method="GET", path="/readyz", summary="Work moves.", answer=health.readyz, public=True),
    Operation(
        method="GET",
        path="/metrics",
        summary="Counters for Prometheus.",
        answer=metrics.metrics,
        public=True,
        media_type="text/plain",
    ),
    Operation(method="GET", path="/openapi.json", summary="This document.", answer=show_openapi, public=True),
    Operation(method="GET", path="/", summary="What this is.", answer=health.index, public=True),
)


def make_edge(core: Core, token: Token, *, has_workers: bool) -> Edge:
    return Edge(core=core, token=token, feed=Feed(core), traffic=Traffic(), has_workers=has_workers)


def build_app(edge: Edge) -> Router:
    """A bare router: an application's own layers would catch errors once more, for each event too."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(edge.feed.run())
            yield
            edge.end()

    return Router(
        routes=routes(edge, OPERATIONS),
        middleware=[
            Middleware(Measured, traffic=edge.traffic),
            Middleware(ErrorsAsJson),
            Middleware(OwnHostAndOrigin, host=edge.core.settings.host),
        ],
        default=unrouted,
        redirect_slashes=False,
        lifespan=lifespan,
    )
