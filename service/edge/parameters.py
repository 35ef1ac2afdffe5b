"""The query strings and bodies of the operations; limits and defaults as in the contract."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, RootModel

from service.clock import epoch_ms
from service.edge.operations import LARGEST_ID, Parameters
from service.errors import InvalidInput
from service.models import MessageState
from service.records import RecordId, parsed

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""
IDS_LIMIT = 1000


def _moment(value: object) -> int | None:
    if value is None:
        return None
    at = epoch_ms(int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value)
    if at is None or not 0 <= at <= LATEST_MS:
        raise ValueError("this is no time; write milliseconds since the epoch or ISO 8601, as 2026-11-30T12:00:00Z")
    return at


def _record_id(value: object) -> RecordId:
    try:
        return parsed(str(value))
    except InvalidInput as error:
        raise ValueError(str(error)) from None


Moment = Annotated[int | None, BeforeValidator(_moment, json_schema_input_type=int | str | None)]
Text = Annotated[str | None, BeforeValidator(lambda value: value or None)]
"""An empty text counts as not given: forms send all their fields."""
Limit = Annotated[int, Field(ge=1, le=100)]
Offset = Annotated[int, Field(ge=0, le=2**31)]
RowId = Annotated[int, Field(ge=1, le=LARGEST_ID)]
AnyId = Annotated[RecordId, PlainValidator(_record_id, json_schema_input_type=int | str)]
"""12 is an observation, S12 a summary, P12 a prompt."""


class Page(Parameters):
    """`project` is a name or a key; an unknown one has nothing."""

    project: Text = None
    limit: Limit = 20
    offset: Offset = 0


class MessagesPage(Page):
    state: MessageState | None = None
    session: Text = None


class EventParameters(Parameters):
    """Which client sends, and the project's name where it is not to be found from the folder."""

    client: Text = None
    project: Text = None


class HookPayload(BaseModel):
    """A hook's payload as the client gives it; every other field is kept as it is."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    hook_event_name: str = Field(min_length=1, max_length=512)
    session_id: str = Field(min_length=1, max_length=512)


class BatchItem(BaseModel):
    """An item of a batch that brings its own envelope; a bare payload is an item as well."""

    model_config = ConfigDict(defer_build=True)

    payload: HookPayload
    captured_at_epoch: int | None = None
    delivery: str | None = None
    project: str | None = None


class Batch(RootModel[list[BatchItem | HookPayload]]):
    """A JSON array, or one item a line (application/x-ndjson)."""

    model_config = ConfigDict(defer_build=True)


class ObservationIds(Parameters):
    """Without `orderBy` in the order of `ids`; S12 is a summary, P12 a prompt."""

    ids: list[AnyId] = Field(min_length=1, max_length=IDS_LIMIT)
    order_by: Literal["date_desc", "date_asc"] | None = Field(None, alias="orderBy")
    limit: int = Field(IDS_LIMIT, ge=1, le=IDS_LIMIT)
    project: Text = None


class Replay(Parameters):
    """Which messages; at least one of the filters. Times are of capture, inclusive."""

    ids: list[RowId] | None = Field(None, max_length=100_000)
    state: MessageState | None = None
    session: Text = None
    project: Text = None
    since: Moment = None
    until: Moment = None
    dry_run: bool = False


class SettingsChange(RootModel[dict[str, Any]]):
    """New values by name; null takes a setting back to its default."""

    model_config = ConfigDict(defer_build=True)


class Login(Parameters):
    token: str = Field(min_length=1, max_length=1024)


class Nonce(Parameters):
    nonce: str = Field(pattern="^[0-9a-fA-F]{8,128}$")
