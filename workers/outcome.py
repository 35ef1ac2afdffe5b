"""What becomes of a message after a failed compression: values, decided here, written in one place."""

from dataclasses import dataclass

from service.errors import BadAnswer, ProviderError, ProviderPaused, RequestRejected
from service.models import Message

FIRST_RETRY_MS = 1_000
LONGEST_RETRY_MS = 600_000
JITTER = 0.2
"""A retry moves by up to this share of its delay, so that a burst does not come back as a burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    after_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """The provider is paused and the message waits, unharmed."""

    reason: str
    retry_after_ms: int | None
    until_settings_change: bool


Outcome = Retry | Dead | Paused


def decide(error: Exception, message: Message, *, max_attempts: int, chance: float) -> Outcome:
    """`chance` is a random number from 0 to 1, for the jitter.

    Provider trouble pauses; everything else, errors of our own code too, costs the message an attempt.
    """
    if isinstance(error, ProviderPaused):
        after = None if error.retry_after_s is None else round(error.retry_after_s * 1000)
        return Paused(reason=error.reason, retry_after_ms=after, until_settings_change=error.until_settings_change)
    attempts = message.attempts + 1
    if attempts >= max_attempts:
        return Dead(reason=_reason(error))
    delay = min(FIRST_RETRY_MS * 2 ** (attempts - 1), LONGEST_RETRY_MS)
    return Retry(after_ms=round(delay * (1 + JITTER * (2 * chance - 1))))


def _reason(error: Exception) -> str:
    if isinstance(error, BadAnswer):
        return error.kind
    if isinstance(error, RequestRejected):
        return "rejected"
    return "provider" if isinstance(error, ProviderError) else "internal"
