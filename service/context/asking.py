"""The three moments at which a client is told something unasked: a session's start, a prompt, the opening of a file."""

from dataclasses import dataclass

from service.context import given, places, recall, start
from service.context.places import Place
from service.context.recall import Known
from service.context.start import Context, Limits
from service.context.trouble import Installation, trouble
from service.database import Database, Reader
from service.projects import ProjectRef
from service.providers import Budget
from service.settings import Configuration, Settings
from service.vectors.protocol import Nearest

NOTES_A_PROMPT = 5
STANDS = "resume"
"""The source of a session whose context window still holds what it was given (the client says so; a copy would come on
top). After compact and clear nothing of it is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who is told: the place as an event names it, and the client's session id, '' if there is no session. A silent
    `ref` with `everywhere` stands for all projects."""

    ref: ProjectRef
    session_id: str = ""
    everywhere: bool = False


def at_start(reader: Reader, asked: Asked, configuration: Configuration, *, source: str | None, now: int) -> Context:
    """What a session is told when it begins. Nothing in an excluded folder, nor where it was told and still has it."""
    settings = configuration.settings
    place = places.find(reader, asked.ref, settings.excluded_globs)
    if place is None or not settings.context_budget:
        return Context()
    if source == STANDS and given.has_start(given.items(reader, asked.session_id)):
        return Context()
    limits = _limits(settings)
    told = trouble(reader, _installation(configuration), now=now)
    return start.compose(start.gather(reader, place, limits, trouble=told, now=now), limits)


async def at_prompt(
    database: Database,
    asked: Asked,
    configuration: Configuration,
    prompt: str,
    *,
    vectors: Nearest | None,
    limit: int = NOTES_A_PROMPT,
    now: int,
) -> Context:
    """What is known of what a prompt says. Nothing when there is nothing, or when the session has it."""
    settings = configuration.settings

    def stands(reader: Reader) -> tuple[Place | None, Known]:
        place = None if asked.everywhere else places.find(reader, asked.ref, settings.excluded_globs)
        return place, _known(reader, asked)

    place, known = await database.read(stands)
    if place is None and not asked.everywhere:
        return Context()
    return await recall.for_prompt(
        database, place, prompt, limit=limit, budget=settings.context_budget, known=known, vectors=vectors, now=now
    )


def at_file(reader: Reader, asked: Asked, configuration: Configuration, path: str, *, now: int) -> Context:
    """What is known of a file that is about to be read or changed, once a session."""
    settings = configuration.settings
    place = places.find(reader, asked.ref, settings.excluded_globs)
    known = _known(reader, asked)
    if place is None or given.file_item(path) in known.items:
        return Context()
    return recall.for_file(reader, place, path, budget=settings.context_budget, known=known, now=now)


def _known(reader: Reader, asked: Asked) -> Known:
    return Known(session_id=asked.session_id, items=frozenset(given.items(reader, asked.session_id)))


def _limits(settings: Settings) -> Limits:
    return Limits(
        budget=settings.context_budget,
        observations=settings.context_observations,
        full=settings.context_full_count,
        full_field=settings.context_full_field,
        sessions=settings.context_session_count,
    )


def _installation(configuration: Configuration) -> Installation:
    settings = configuration.settings
    return Installation(
        home=configuration.home,
        provider=settings.provider,
        budget=Budget(calls=settings.daily_calls, tokens=settings.daily_tokens),
        lease_ms=round(settings.lease_s * 1000),
        has_vectors=settings.chroma != "off",
    )
