"""The lines of an export: one record each, with everything that is worth carrying and no number of this database."""

from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from service.models import Layer, ObservationType
from service.projects import GLOBAL

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""

Epoch = Annotated[int, Field(ge=0, le=LATEST_MS)]
Id = Annotated[str, Field(min_length=1, max_length=512)]
Name = Annotated[str, Field(min_length=1)]
"""Keys are made of several ids, a project may have its name from a long folder: what is stored has to come out."""
Texts = tuple[str, ...]


class Line(BaseModel):
    """Keys stand in the order of the fields. What is not known is left out: a newer version may write more."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SessionLine(Line):
    kind: Literal["session"] = "session"
    session_id: Id
    project: Name
    project_key: str | None = None
    platform: str = "import"
    cwd: str = ""
    started_at_epoch: Epoch
    last_event_at_epoch: Epoch
    ended_at_epoch: Epoch | None = None


class PromptLine(Line):
    kind: Literal["prompt"] = "prompt"
    session_id: Id
    project: Name
    event_key: Name
    prompt_number: int = Field(ge=1)
    client_prompt_id: str | None = None
    text: str
    created_at_epoch: Epoch


class ObservationLine(Line):
    kind: Literal["observation"] = "observation"
    session_id: Id | None = None
    project: Name = GLOBAL
    project_key: str | None = Field(default=None, description="of one without a session; else the session has it")
    type: ObservationType = ObservationType.DISCOVERY
    title: str = ""
    subtitle: str = ""
    narrative: str = ""
    facts: Texts = ()
    concepts: Texts = ()
    files_read: Texts = ()
    files_modified: Texts = ()
    remembered: bool = Field(default=False, description="word for word by a person or an agent, not made from events")
    layer: Layer = Layer.SESSION
    tags: Texts = ()
    keywords: Texts = ()
    confidence: float = Field(default=1.0, ge=0, le=1)
    expires_at_epoch: Epoch | None = None
    prompt_number: int | None = None
    discovery_tokens: int = Field(default=0, ge=0)
    repeats: int = Field(default=0, ge=0)
    metadata: dict[str, Any] = Field(default_factory=dict)
    created_at_epoch: Epoch


class SummaryLine(Line):
    kind: Literal["summary"] = "summary"
    session_id: Id
    project: Name
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    files_read: Texts = ()
    files_edited: Texts = ()
    notes: str = ""
    prompt_number: int | None = None
    discovery_tokens: int = Field(default=0, ge=0)
    created_at_epoch: Epoch


AnyLine = SessionLine | PromptLine | ObservationLine | SummaryLine
KINDS = tuple(model.model_fields["kind"].default for model in get_args(AnyLine))
_ANY: TypeAdapter[AnyLine] = TypeAdapter(Annotated[AnyLine, Field(discriminator="kind")])


def parsed(record: object) -> AnyLine:
    """Raises pydantic's `ValidationError`."""
    return _ANY.validate_python(record)


def written(line: AnyLine) -> bytes:
    return orjson.dumps(line.model_dump(mode="json")) + b"\n"
