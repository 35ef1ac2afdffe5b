"""What becomes of a message after a failure: a value, decided from the error and the message alone."""

import pytest

from service.errors import BadAnswer, ProviderError, ProviderPaused, RequestRejected
from service.models import Message, MessageType
from workers.outcome import Dead, Paused, Retry, decide


def message(*, attempts: int = 0) -> Message:
    return Message(
        message_id=1,
        event_key="k",
        session_id="s1",
        project="shop",
        message_type=MessageType.OBSERVATION,
        hook_event="PostToolUse",
        tool_name="Bash",
        client_prompt_id=None,
        agent_id=None,
        payload={},
        captured_at_epoch=1,
        attempts=attempts,
        crashes=0,
        claim_no=1,
    )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BadAnswer("prose", kind="malformed"), "malformed"),
        (BadAnswer("no", kind="refusal"), "refusal"),
        (RequestRejected("too long"), "rejected"),
        (ProviderError("odd"), "provider"),
        (ZeroDivisionError(), "internal"),
    ],
)
def test_the_last_attempt_makes_a_dead_letter_that_says_why(error: Exception, reason: str) -> None:
    assert isinstance(decide(error, message(attempts=1), max_attempts=3, chance=0.5), Retry)
    assert decide(error, message(attempts=2), max_attempts=3, chance=0.5) == Dead(reason=reason)
    assert decide(error, message(), max_attempts=1, chance=0.5) == Dead(reason=reason)


@pytest.mark.parametrize("retry_after_s", [None, 0.0, 30.0])
def test_provider_trouble_pauses_whatever_the_attempts(retry_after_s: float | None) -> None:
    error = ProviderPaused("429", reason="rate_limited", retry_after_s=retry_after_s)
    after_ms = None if retry_after_s is None else round(retry_after_s * 1000)
    assert decide(error, message(attempts=99), max_attempts=1, chance=0.5) == Paused(
        reason="rate_limited", retry_after_ms=after_ms, until_settings_change=False
    )


def test_the_delay_doubles_and_is_bounded_and_moves_by_a_fifth_at_most() -> None:
    def delay(attempts: int, chance: float) -> int:
        outcome = decide(ValueError(), message(attempts=attempts), max_attempts=100, chance=chance)
        assert isinstance(outcome, Retry)
        return outcome.after_ms

    assert [delay(attempts, 0.5) for attempts in range(4)] == [1_000, 2_000, 4_000, 8_000]
    assert delay(50, 0.5) == 600_000
    assert (delay(0, 0.0), delay(0, 1.0)) == (800, 1_200)
