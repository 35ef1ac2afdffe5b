"""What is asked of a search, what it answers, and the rules of its parameters: the same for HTTP and command line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum

from service.clock import epoch_ms
from service.errors import InvalidInput
from service.models import ObservationType

DEFAULT_LIMIT, LARGEST_LIMIT = 20, 100
LARGEST_OFFSET = 1_000_000
BASIC_DATE_DIGITS = 8
"""`20261130` is a date; any other run of digits is a number of milliseconds or seconds."""


class Kind(StrEnum):
    OBSERVATION = "observation"
    SUMMARY = "summary"
    PROMPT = "prompt"


class Mode(StrEnum):
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"
    FILTER = "filter"


class Order(StrEnum):
    RELEVANCE = "relevance"
    DATE_DESC = "date_desc"
    DATE_ASC = "date_asc"


KINDS_BY_TYPE = {
    "observations": (Kind.OBSERVATION,),
    "summaries": (Kind.SUMMARY,),
    "prompts": (Kind.PROMPT,),
    "all": (Kind.OBSERVATION, Kind.SUMMARY, Kind.PROMPT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """`project` is a name or a key; None searches all projects. Within a list any item is enough, the filters together
    must all hold. A file matches by the suffix of its path, in whole components. Times are inclusive. `age_counts`: by
    relevance, the older ranks a little lower.

    Only observations have a type and concepts, prompts have no files: such a filter leaves the other kinds out.
    """

    query: str = ""
    project: str | None = None
    kinds: tuple[Kind, ...] = (Kind.OBSERVATION,)
    obs_types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    session: str | None = None
    platform: str | None = None
    start_epoch: int | None = None
    end_epoch: int | None = None
    limit: int = DEFAULT_LIMIT
    offset: int = 0
    order: Order = Order.RELEVANCE
    age_counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """`tokens` is what reading the full record would cost (estimate). `score`: higher is better, comparable within one
    answer only; 0 when nothing was ranked. `type` of a summary is `session_summary`, of a prompt `prompt`. `similar`:
    so many older observations of the project say the same and are not listed themselves, `similar_ids` names them."""

    kind: Kind
    id: int
    project: str
    session_id: str | None
    type: str
    title: str
    subtitle: str
    created_at_epoch: int
    tokens: int
    score: float
    similar: int = 0
    similar_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """`mode`: what ran: `hybrid` (words and meaning), `keyword`, `vector` (no word was found, only the meaning), or
    `filter` when there was no text to look for. `degraded`: what did not run and why, else None. `total` counts what
    paging can reach: exact for filters and for words that are not too common to rank all their rows, otherwise a lower
    bound."""

    mode: Mode
    degraded: str | None
    total: int
    results: tuple[SearchHit, ...]


def search_query(given: Mapping[str, str | int | None]) -> SearchQuery:
    """From the parameters of `GET /api/search` by their names there; what is absent, None or empty has its default.

    Raises `InvalidInput` (422) that names the parameter.
    """
    given = {name: value for name, value in given.items() if value is not None and value != ""}
    text = {name: str(value) for name, value in given.items()}
    start = _moment(text, "dateStart", ends_day=False)
    end = _moment(text, "dateEnd", ends_day=True)
    if start is not None and end is not None and start > end:
        raise InvalidInput("dateStart is after dateEnd; swap them", field="dateStart")
    return SearchQuery(
        query=text.get("query", ""),
        project=text.get("project"),
        kinds=KINDS_BY_TYPE[_one_of(text, "type", KINDS_BY_TYPE, default="observations")],
        obs_types=_all_of(text, "obs_type", [kind.value for kind in ObservationType]),
        concepts=_items(text, "concepts"),
        files=_items(text, "files"),
        session=text.get("session"),
        platform=text.get("platform"),
        start_epoch=start,
        end_epoch=end,
        limit=_number(text, "limit", default=DEFAULT_LIMIT, lowest=1, highest=LARGEST_LIMIT),
        offset=_number(text, "offset", default=0, lowest=0, highest=LARGEST_OFFSET),
        age_counts=_one_of(text, "age", ("on", "off"), default="on") == "on",
        order=Order(_one_of(text, "orderBy", [order.value for order in Order], default=Order.RELEVANCE.value)),
    )


def _number(text: Mapping[str, str], field: str, *, default: int, lowest: int, highest: int) -> int:
    given = text.get(field, str(default)).strip()
    if given.isascii() and given.isdigit() and len(given) <= len(str(highest)) and lowest <= int(given) <= highest:
        return int(given)
    raise InvalidInput(f"{field} must be a whole number from {lowest} to {highest}", field=field)


def _one_of(text: Mapping[str, str], field: str, known: Iterable[str], *, default: str) -> str:
    given = text.get(field, default)
    if given not in known:
        raise InvalidInput(f"{field} must be one of {', '.join(known)}", field=field)
    return given


def _items(text: Mapping[str, str], field: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.strip() for item in text.get(field, "").split(",") if item.strip()))


def _all_of(text: Mapping[str, str], field: str, known: Iterable[str]) -> tuple[str, ...]:
    items = _items(text, field)
    if any(item not in known for item in items):
        raise InvalidInput(f"{field} must be of {', '.join(known)} (several: with commas)", field=field)
    return items


def _moment(text: Mapping[str, str], field: str, *, ends_day: bool) -> int | None:
    """Milliseconds since the epoch. A date alone is the start or the end of that day in local time."""
    if field not in text:
        return None
    given = text[field].strip()
    number = given.isascii() and given.isdigit() and len(given) != BASIC_DATE_DIGITS
    try:
        if number:
            moment = epoch_ms(int(given[:20]))
        elif ends_day and (day := _day(given)) is not None:
            moment = round(datetime.combine(day + timedelta(days=1), time()).timestamp() * 1000) - 1
        else:
            moment = epoch_ms(given.replace(" ", "+") if "T" in given else given)
    except (ValueError, OverflowError, OSError):
        moment = None
    if moment is None or abs(moment) >= 1 << 62:
        raise InvalidInput(
            f"{field} must be a date (2026-11-30), an ISO 8601 time or milliseconds since the epoch", field=field
        )
    return moment


def _day(given: str) -> date | None:
    try:
        return date.fromisoformat(given)
    except ValueError:
        return None
