"""Remembering, editing and forgetting over HTTP, and what became of what was shown."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import structlog
from pydantic import ConfigDict, Field, RootModel
from starlette.responses import Response

from service import feedback, forgetting, memories
from service.clock import now_ms
from service.edge.operations import Call, Nothing, Parameters, as_json
from service.edge.parameters import AnyId, Moment, RowId, Text
from service.edge.state import Edge
from service.errors import NotFound
from service.feedback import Signal
from service.forgetting import ForgetRequest, Forgotten
from service.memories import NewMemory, Prepared
from service.models import Layer, ObservationType
from service.projects import ProjectRef
from service.searching.request import Kind
from service.shaping import clean_text

log = structlog.get_logger()

TEXT_LIMIT = 200_000
"""Characters of a remembered text; what is longer is a document, not a memory."""
TITLE_LIMIT, LABEL_LIMIT, NAME_LIMIT = 500, 200, 512
LISTED = 200
"""Items of a list of facts, concepts, tags or keywords."""
BATCH_LIMIT = 1_000
IDS_LIMIT = 100_000

Label = Annotated[str, Field(max_length=LABEL_LIMIT)]
Labels = Annotated[list[Label], Field(max_length=LISTED)]
Line = Annotated[str, Field(max_length=TITLE_LIMIT)]
Whole = Annotated[str, Field(max_length=TEXT_LIMIT)]
Name = Annotated[str, Field(max_length=NAME_LIMIT)]
Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Memory(Parameters):
    """A text that is kept word for word. Without `project` it is in `global`, without `title` its first line is it."""

    text: Whole = Field(min_length=1)
    title: Line | None = None
    project: Name | None = None
    session_id: Name | None = None
    type: ObservationType = ObservationType.DISCOVERY
    layer: Layer | None = None
    tags: Labels = Field(default_factory=list)
    keywords: Labels = Field(default_factory=list)
    confidence: Confidence = 1.0
    expires_at: Moment = None
    created_at_epoch: Moment = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    def meant(self) -> NewMemory:
        project = clean_text(self.project or "").strip()
        return NewMemory(
            text=self.text,
            title=self.title,
            project=ProjectRef(override=project) if project else None,
            session_id=self.session_id or None,
            type=self.type,
            layer=self.layer,
            tags=self.tags,
            keywords=self.keywords,
            confidence=self.confidence,
            expires_at_epoch=self.expires_at,
            created_at_epoch=self.created_at_epoch,
            metadata=self.metadata,
        )


class Memories(RootModel[Annotated[list[Memory], Field(max_length=BATCH_LIMIT)]]):
    """Stored in one commit, in order; a text that is there already is stored again."""

    model_config = ConfigDict(defer_build=True)


class Changes(Parameters):
    """What is to be different. A time of null means that the memory does not expire."""

    title: Line = Field("", min_length=1)
    subtitle: Line = ""
    narrative: Whole = ""
    facts: list[Whole] = Field(default_factory=list, max_length=LISTED)
    concepts: Labels = Field(default_factory=list)
    type: ObservationType = ObservationType.DISCOVERY
    project: Name = Field("", min_length=1)
    layer: Layer = Layer.PROJECT
    tags: Labels = Field(default_factory=list)
    keywords: Labels = Field(default_factory=list)
    confidence: Confidence = 1.0
    expires_at: Moment = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    def meant(self) -> dict[str, Any]:
        """The fields that were given, by the names of their columns."""
        given = self.model_dump(exclude_unset=True)
        if "expires_at" in given:
            given["expires_at_epoch"] = given.pop("expires_at")
        return given


class Forget(Parameters):
    """What fulfils all that is given is forgotten. Ids are as 12, S12 or P7; `before` is exclusive; a record fulfils
    `query` when it holds all of its words. `vacuum` takes it out of the files' bytes too, which takes its time."""

    ids: list[AnyId] | None = Field(None, max_length=IDS_LIMIT)
    project: Text = None
    session: Text = None
    before: Moment = None
    query: Text = None
    dry_run: bool = False
    vacuum: bool = False

    def meant(self) -> ForgetRequest:
        ids = None if self.ids is None else tuple(self.ids)
        return ForgetRequest(ids=ids, project=self.project, session=self.session, before=self.before, query=self.query)


class Feedback(Parameters):
    observation_id: RowId
    signal_type: Signal


async def remember(call: Call[Nothing, Memory]) -> object:
    (memory,) = await _prepared([call.body])
    told = await call.edge.core.database.write(lambda tx: memories.remember(tx, memory, now=now_ms()))
    if told.duplicate:
        return {"id": told.observation_id, "duplicate": True}
    return as_json({"id": told.observation_id}, 201)


async def remember_batch(call: Call[Nothing, Memories]) -> object:
    prepared = await _prepared(call.body.root)
    ids = await call.edge.core.database.write(lambda tx: memories.remember_all(tx, prepared, now=now_ms()))
    return as_json({"ids": ids}, 201)


async def edit_observation(call: Call[Nothing, Changes]) -> object:
    observation_id, changes = call.number("observation_id"), call.body.meant()
    return await call.edge.core.database.write(lambda tx: memories.edit(tx, observation_id, changes, now=now_ms()))


async def forget_observation(call: Call[Nothing, Nothing]) -> object:
    observation_id = call.number("observation_id")
    forgotten = await _forget(call.edge, ForgetRequest(ids=((Kind.OBSERVATION, observation_id),)))
    if not forgotten.observations:
        raise NotFound(f"there is no observation {observation_id}; it may have been forgotten already")
    return Response(status_code=204)


async def forget(call: Call[Nothing, Forget]) -> object:
    asked = call.body
    return asdict(await _forget(call.edge, asked.meant(), dry_run=asked.dry_run, vacuum=asked.vacuum))


async def take_feedback(call: Call[Nothing, Feedback]) -> object:
    given = call.body
    await call.edge.core.database.write(
        lambda tx: feedback.note_one(tx, given.observation_id, given.signal_type, now=now_ms())
    )
    return as_json({"observation_id": given.observation_id, "signal_type": given.signal_type.value}, 201)


async def _forget(edge: Edge, request: ForgetRequest, *, dry_run: bool = False, vacuum: bool = False) -> Forgotten:
    forgotten = await forgetting.forget(edge.core.database, request, now=now_ms, dry_run=dry_run, vacuum=vacuum)
    if not dry_run and any((forgotten.observations, forgotten.summaries, forgotten.prompts, forgotten.messages)):
        log.info("memories.forgotten", by=request.given, vacuum=vacuum, **asdict(forgotten))
    return forgotten


async def _prepared(given: Sequence[Memory]) -> list[Prepared]:
    memories_given = [memory.meant() for memory in given]
    return await asyncio.to_thread(memories.prepare, memories_given, now=now_ms())
