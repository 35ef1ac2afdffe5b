"""What every failure of the provider means for the queue, over HTTP and for each exception of the SDK."""

import json
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any, cast

import anthropic
import httpx2
import pytest
from anthropic._error_classes import ERROR_CLASSES

from service import clock
from service.errors import BadAnswer, ProviderError, ProviderPaused, RequestRejected
from tests.compressors.batches import API_KEY, make_batch
from tests.fakes.messages_api import MessagesApi, Scripted, error, message, prose, text
from workers.compressors.anthropic import AnthropicCompressor, provider_error

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/messages")
CODES: dict[type, str] = {kind: code for (_, code), kind in ERROR_CLASSES.items() if code}


async def failure_of(api: MessagesApi, compressor: AnthropicCompressor, *answers: Scripted) -> ProviderError:
    api.script(*answers)
    with pytest.raises(ProviderError) as caught:
        await compressor.compress(make_batch(), strict=False)
    return caught.value


@pytest.mark.parametrize(
    ("answer", "reason", "until_settings_change"),
    [
        (error(401, "authentication_error", "invalid key"), "auth", True),
        (error(403, "permission_error", "not allowed"), "auth", True),
        (error(403, "permission_error", "Your account has been suspended"), "auth", True),
        (error(402, "billing_error", "payment required"), "quota", True),
        (error(400, "invalid_request_error", "Your credit balance is too low to access the API."), "quota", False),
        (error(400, "invalid_request_error", "You have reached your specified API usage limits."), "quota", False),
        (error(429, "rate_limit_error", "Slow down", code="enforced_spend_limit_reached"), "quota", False),
        (error(429, "rate_limit_error", "You exceeded your current quota"), "quota", False),
        (error(429, "rate_limit_error", "Number of requests per minute exceeded"), "rate_limited", False),
        (error(429, "rate_limit_error", "Slow down", code="ramp_limit_exceeded"), "rate_limited", False),
        (error(400, "invalid_request_error", "On hold", code="organization_on_hold"), "auth", True),
        (error(404, "not_found_error", "model: no-such-model"), "settings", True),
        (error(405), "settings", True),
        (error(408, "timeout_error", "too slow"), "unreachable", False),
        (error(409, "conflict_error", "again"), "overloaded", False),
        (error(500, "api_error", "Internal server error"), "overloaded", False),
        (error(500, "api_error", "the billing backend is away"), "overloaded", False),
        (error(502), "overloaded", False),
        (error(503, "api_error", "away"), "overloaded", False),
        (error(504, "timeout_error", "too slow"), "overloaded", False),
        (error(529, "overloaded_error", "Overloaded"), "overloaded", False),
        (Scripted(status=502, body=b"<html>Bad gateway</html>"), "overloaded", False),
        (Scripted(status=401, body=b""), "auth", True),
    ],
    ids=lambda value: f"{value.status}-{str(value.body)[:60]}" if isinstance(value, Scripted) else None,
)
async def test_provider_trouble_pauses_with_its_reason_after_one_request(
    api: MessagesApi,
    compressor: AnthropicCompressor,
    answer: Scripted,
    reason: str,
    until_settings_change: bool,
) -> None:
    paused = await failure_of(api, compressor, answer)
    assert isinstance(paused, ProviderPaused)
    assert (paused.reason, paused.until_settings_change) == (reason, until_settings_change)
    assert (len(api.requests), paused.calls) == (1, 0)


@pytest.mark.parametrize("status", [400, 413, 415, 418, 422])
async def test_a_request_that_is_refused_for_what_it_is_costs_an_attempt(
    api: MessagesApi, compressor: AnthropicCompressor, status: int
) -> None:
    rejected = await failure_of(api, compressor, error(status, "invalid_request_error", "prompt is too long"))
    assert isinstance(rejected, RequestRejected)
    assert "prompt is too long" in str(rejected)


async def test_the_message_carries_type_words_and_request_id_of_the_provider_but_never_the_key(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    said = str(await failure_of(api, compressor, error(401, "authentication_error", f"bad key {API_KEY}")))
    assert "401 authentication_error: bad key [key]" in said
    assert "req_fake" in said
    assert API_KEY not in said


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry_after": "17"}, 17),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-3"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503, 529])
async def test_retry_after_is_the_providers_word_in_seconds(
    api: MessagesApi, compressor: AnthropicCompressor, status: int, headers: dict[str, str], expected: float | None
) -> None:
    paused = await failure_of(api, compressor, error(status, "rate_limit_error", "wait", **headers))
    assert isinstance(paused, ProviderPaused)
    assert paused.retry_after_s == expected


async def test_a_retry_after_date_becomes_the_seconds_until_then(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    in_a_minute = formatdate(clock.now_ms() / 1000 + 60, usegmt=True)
    paused = await failure_of(api, compressor, error(429, "rate_limit_error", "wait", retry_after=in_a_minute))
    assert isinstance(paused, ProviderPaused)
    assert paused.retry_after_s == pytest.approx(60, abs=5)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"<html>", b"[]", b"null", b"42", b"\xff\xfe", b"[" * 100_000, b'{"content": 3}', b'{"content": null}'],
)
async def test_a_body_that_is_no_message_is_a_malformed_answer(
    api: MessagesApi, compressor: AnthropicCompressor, body: bytes
) -> None:
    bad = await failure_of(api, compressor, Scripted(body=body))
    assert isinstance(bad, BadAnswer)
    assert (bad.kind, bad.calls) == ("malformed", 1)


@pytest.mark.parametrize(
    ("kind", "words", "reason"),
    [
        ("rate_limit_error", "slow down", "rate_limited"),
        ("overloaded_error", "Overloaded", "overloaded"),
        ("authentication_error", "bad key", "auth"),
        ("api_error", "Monthly spend limit reached", "quota"),
    ],
)
async def test_an_error_sent_with_status_200_pauses_as_the_same_error_would(
    api: MessagesApi, compressor: AnthropicCompressor, kind: str, words: str, reason: str
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": words}}
    paused = await failure_of(api, compressor, Scripted(body=body))
    assert isinstance(paused, ProviderPaused)
    assert paused.reason == reason


async def test_an_unknown_error_sent_with_status_200_is_a_malformed_answer(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    bad = await failure_of(api, compressor, Scripted(body={"error": {"type": "odd", "message": None}}))
    assert isinstance(bad, BadAnswer)


async def test_a_quota_notice_in_a_200_pauses_instead_of_costing_an_attempt(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    paused = await failure_of(api, compressor, prose("You've hit your monthly spend limit. Resets on the 1st."))
    assert isinstance(paused, ProviderPaused)
    assert (paused.reason, paused.calls, paused.until_settings_change) == ("quota", 1, False)
    assert "spend limit" in str(paused)


async def test_a_refusal_is_told_apart_from_a_malformed_answer(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    by_flag = Scripted(body=message(text("…"), stop_reason="refusal"))
    for answer in (by_flag, prose("I'm sorry, but I can't help with that.")):
        bad = await failure_of(api, compressor, answer)
        assert isinstance(bad, BadAnswer)
        assert bad.kind == "refusal"


def sdk_errors(kind: type[anthropic.AnthropicError] = anthropic.AnthropicError) -> Iterator[type]:
    yield kind
    for lower in kind.__subclasses__():
        yield from sdk_errors(lower)


def made(kind: type[Any]) -> anthropic.AnthropicError:
    """An instance of `kind` as the SDK would raise it, as far as its parameters tell."""
    if issubclass(kind, anthropic.APIStatusError | anthropic.APIResponseValidationError):
        status = getattr(kind, "status_code", None)
        if not isinstance(status, int):
            status = 500 if issubclass(kind, anthropic.InternalServerError) else 418
        body = {"error": {"type": "some_error", "message": "no", "details": {"error_code": CODES.get(kind)}}}
        response = httpx2.Response(status, request=REQUEST, json=body)
        if issubclass(kind, anthropic.APIResponseValidationError):
            return kind(response=response, body=body)
        return kind("no", response=response, body=body)
    if issubclass(kind, anthropic.APIConnectionError):
        return kind(request=REQUEST)
    if issubclass(kind, anthropic.APIError):
        return kind("no", request=REQUEST, body=None)
    bare: Any = kind
    return cast("anthropic.AnthropicError", bare.__new__(bare, "no"))


@pytest.mark.parametrize("kind", list(dict.fromkeys(sdk_errors())), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_sdk_is_mapped(kind: type[anthropic.AnthropicError]) -> None:
    mapped = provider_error(made(kind), now_ms=0, calls=1, api_key=API_KEY)

    assert isinstance(mapped, ProviderPaused | BadAnswer | RequestRejected)
    json.dumps(str(mapped))
    status = getattr(kind, "status_code", None)
    if issubclass(kind, anthropic.APIConnectionError | anthropic.InternalServerError | anthropic.RateLimitError):
        assert isinstance(mapped, ProviderPaused)
        assert mapped.until_settings_change is False
    elif status in {401, 402, 403, 404} or issubclass(kind, anthropic.CredentialsError):
        assert isinstance(mapped, ProviderPaused)
        assert mapped.until_settings_change is True
    elif issubclass(kind, anthropic.APIResponseValidationError):
        assert isinstance(mapped, BadAnswer)
    elif kind in {anthropic.BadRequestError, anthropic.ContentTooLargeError, anthropic.UnprocessableEntityError}:
        assert isinstance(mapped, RequestRejected)
