"""Claude through the Messages API: one forced tool call per batch, every failure turned into a `ProviderError`."""

import asyncio
import email.utils
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from http.client import BAD_REQUEST, FORBIDDEN, INTERNAL_SERVER_ERROR, PAYMENT_REQUIRED
from typing import TYPE_CHECKING, Any

import tenacity

from hooks.secrets import redact_text
from service import clock
from service.errors import BadAnswer, ProviderError, ProviderPaused, RequestRejected
from service.models import Batch, Compressed, SummaryDraft, Usage
from workers.parse import Answer, read_answer, read_summary
from workers.prompts import ModelRequest, observations_request, summary_request

if TYPE_CHECKING:
    import anthropic

DEFAULT_BASE_URL = "https://api.anthropic.com"
_TRIES = 2
"""Requests within one question; only a lost connection is tried again at once, everything longer is the queue's."""
_SUMMARY_SHARE = 4
"""A forgotten summary is worth a quarter of the text of a full question."""
_MESSAGE_CHARS = 300


class AnthropicCompressor:
    """`base_url` None means Anthropic itself. `timeout_s` bounds a whole compression, its second call for a forgotten
    summary included. `cap_chars` bounds the texts of a batch in one request (about four characters a token).

    Nothing is read from the environment: neither keys, headers, proxies nor log levels.
    """

    name = "anthropic"

    def __init__(
        self,
        *,
        api_key: str,
        model: str,
        base_url: str | None = None,
        max_tokens: int = 4096,
        timeout_s: float = 100.0,
        cap_chars: int = 48_000,
    ) -> None:
        self._api_key = api_key
        self._model = model
        self._base_url = base_url or DEFAULT_BASE_URL
        self._max_tokens = max_tokens
        self._timeout_s = timeout_s
        self._cap_chars = cap_chars
        self._client: anthropic.AsyncAnthropic | None = None
        self._loading = asyncio.Lock()

    async def compress(self, batch: Batch, *, strict: bool) -> Compressed:
        """See `Compressor`. A summary that was due and is missing is asked for once more, alone."""
        await self._ready()  # loading the SDK is not the provider's time
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        request = observations_request(batch, strict=strict, cap_chars=self._cap_chars)
        reading = read_answer(await self._ask(request, deadline), batch, strict=strict)
        if not reading.summary_missing:
            return reading.compressed
        return await self._with_summary(reading.compressed, batch, deadline)

    async def close(self) -> None:
        if self._client:
            await self._client.close()

    async def _with_summary(self, compressed: Compressed, batch: Batch, deadline: float) -> Compressed:
        """`compressed` with the summary it lacks, if one comes now; observations already paid for stay either way."""
        summary: SummaryDraft | None = None
        try:
            answer = await self._ask(summary_request(batch, cap_chars=self._cap_chars // _SUMMARY_SHARE), deadline)
            spent = answer.usage
            summary = read_summary(answer, batch, compressed.observations)
        except ProviderError as error:
            spent = Usage(calls=error.calls, input_tokens=error.input_tokens, output_tokens=error.output_tokens)
        before = compressed.usage
        usage = Usage(
            calls=before.calls + spent.calls,
            input_tokens=before.input_tokens + spent.input_tokens,
            output_tokens=before.output_tokens + spent.output_tokens,
        )
        return replace(compressed, summary=summary, usage=usage)

    async def _ask(self, request: ModelRequest, deadline: float) -> Answer:
        """One question, at most `_TRIES` requests, one answer; `deadline` is a moment of the event loop's clock."""
        client = await self._ready()
        import anthropic

        tries = 0
        try:
            async with asyncio.timeout_at(deadline):
                async for attempt in _retrying(anthropic.APIConnectionError):
                    tries = attempt.retry_state.attempt_number
                    with attempt:
                        raw = await client.messages.with_raw_response.create(**self._arguments(request))
        except TimeoutError:
            raise ProviderPaused(
                f"Anthropic did not answer within {self._timeout_s:g} s. {_HINTS['unreachable']}",
                reason="unreachable",
                calls=tries,
            ) from None
        except anthropic.AnthropicError as error:
            # Without the cause: it carries the request, payload and key included, into whatever prints tracebacks.
            raise provider_error(error, now_ms=clock.now_ms(), calls=tries, api_key=self._api_key) from None
        return _answer(raw.http_response.content, calls=tries)

    def _arguments(self, request: ModelRequest) -> dict[str, Any]:
        tool = {
            "name": request.tool_name,
            "description": request.tool_description,
            "input_schema": request.tool_schema,
            "strict": True,
        }
        return {
            "model": self._model,
            "max_tokens": self._max_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": request.content}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": request.tool_name, "disable_parallel_tool_use": True},
        }

    async def _ready(self) -> "anthropic.AsyncAnthropic":
        """The client, made at first use in a thread: importing the SDK takes about a second.

        An unusable setting pauses instead of stopping the service: capturing goes on meanwhile.
        """
        if not re.fullmatch(r"[!-~]+", self._api_key):
            raise _unusable("There is no usable key for Anthropic.", "GAPLESS_ANTHROPIC_API_KEY to one", reason="auth")
        if not self._model.strip() or not self._model.isprintable():
            raise _unusable("There is no usable name of a model.", "GAPLESS_MODEL to one of Anthropic's models")
        async with self._loading:
            if self._client is None:
                self._client = await asyncio.to_thread(_connect, self._api_key, self._base_url)
        return self._client


def _unusable(what: str, setting: str, *, reason: str = "settings") -> ProviderPaused:
    text = f"{what} Set {setting}, or GAPLESS_PROVIDER to rules."
    return ProviderPaused(text, reason=reason, until_settings_change=True)


def _connect(api_key: str, base_url: str) -> "anthropic.AsyncAnthropic":
    import anthropic
    import httpx2

    try:
        address = httpx2.URL(base_url)
    except (httpx2.InvalidURL, UnicodeError):
        address = httpx2.URL()
    if address.scheme not in {"http", "https"} or not address.host:
        raise _unusable("The base URL for Anthropic is no HTTP address.", "GAPLESS_ANTHROPIC_BASE_URL to one")
    # At debug level the SDK logs whole requests, and ANTHROPIC_LOG=debug turns that on at import.
    logging.getLogger("anthropic").setLevel(logging.WARNING)
    client = anthropic.AsyncAnthropic(
        api_key=api_key,
        base_url=base_url,
        # Retries and time have one owner each: the queue (but for `_TRIES`), and the deadline of a compression.
        max_retries=0,
        timeout=None,
        open_telemetry=False,
        # A redirect would carry the payload to a host that nobody configured.
        http_client=anthropic.DefaultAsyncHttpxClient(timeout=None, trust_env=False, follow_redirects=False),
    )
    # The SDK fills these from ANTHROPIC_CUSTOM_HEADERS and has no argument that says no.
    client._custom_headers = {}  # noqa: SLF001
    _ = client.messages.with_raw_response, anthropic.types.Message  # loaded here rather than on the event loop
    return client


def _retrying(lost: type[Exception]) -> tenacity.AsyncRetrying:
    return tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(lost),
        stop=tenacity.stop_after_attempt(_TRIES),
        wait=tenacity.wait_random(0.05, 0.25),
        reraise=True,
    )


# --- answers --------------------------------------------------------------------------------------------------------


def _answer(content: bytes, *, calls: int) -> Answer:
    """The body of a 200. Raises `BadAnswer` for what is no message, `ProviderPaused` for an error in its place."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and isinstance(error := body.get("error"), dict):
        raise _error_in_a_200(error, calls)
    if not isinstance(body, dict) or not isinstance(body.get("content"), list):
        raise BadAnswer("Anthropic answered 200 with something that is no message.", kind="malformed", calls=calls)
    blocks = [block for block in body["content"] if isinstance(block, dict)]
    tool_inputs = [block.get("input") for block in blocks if block.get("type") == "tool_use"]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return Answer(
        tool_input=_one(tool_inputs),
        text="\n".join(texts),
        stop_reason=str(body.get("stop_reason") or ""),
        usage=_usage(body.get("usage"), calls),
    )


def _error_in_a_200(error: dict[str, Any], calls: int) -> ProviderError:
    """Some gateways send the provider's error with a success status."""
    said = redact_text(str(error.get("message") or "no message"))[:_MESSAGE_CHARS]
    kind = str(error.get("type"))
    reason = "quota" if _MONEY.search(said) else _REASON_OF_TYPE.get(kind)
    if reason is None:
        return BadAnswer(f"Anthropic answered 200 with an error, {kind}: {said}", kind="malformed", calls=calls)
    return ProviderPaused(
        f"Anthropic answered 200 with an error, {kind}: {said}. {_HINTS[reason]}",
        reason=reason,
        until_settings_change=reason in _WAITING_IS_NO_USE,
        calls=calls,
    )


def _one(tool_inputs: list[Any]) -> object:
    """Several calls although one was asked for: read as one list."""
    return tool_inputs if len(tool_inputs) > 1 else next(iter(tool_inputs), None)


def _usage(reported: object, calls: int) -> Usage:
    """Input counts what was written to and read from the prompt cache, as the API reports those apart."""
    numbers = (
        {name: n for name, n in reported.items() if isinstance(n, int) and n > 0} if isinstance(reported, dict) else {}
    )
    inputs = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return Usage(
        calls=calls,
        input_tokens=sum(numbers.get(name, 0) for name in inputs),
        output_tokens=numbers.get("output_tokens", 0),
    )


# --- errors ---------------------------------------------------------------------------------------------------------

_HINTS = {
    "rate_limited": "It is asked again by itself.",
    "overloaded": "It is asked again by itself.",
    "unreachable": "It is asked again by itself; if it stays so, check the network and GAPLESS_ANTHROPIC_BASE_URL.",
    "auth": "Check GAPLESS_ANTHROPIC_API_KEY and what that key may use.",
    "quota": "Raise the limit or add credit at the provider, then run `gapless queue resume`.",
    "settings": "Check GAPLESS_MODEL and GAPLESS_ANTHROPIC_BASE_URL.",
}
_REASON_OF_STATUS = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "settings",
    405: "settings",
    407: "auth",
    408: "unreachable",
    409: "overloaded",
    410: "settings",
    425: "overloaded",
    429: "rate_limited",
    431: "settings",
    499: "unreachable",
}
_REASON_OF_TYPE = {
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
    "api_error": "overloaded",
    "timeout_error": "unreachable",
    "billing_error": "quota",
    "authentication_error": "auth",
    "permission_error": "auth",
    "not_found_error": "settings",
}
_WAITING_IS_NO_USE = frozenset({"auth", "settings"})
_MONEY = re.compile(r"billing|\bcredits?\b|quota|(?:\b|_)spend|usage limits?\b|payment", re.IGNORECASE)
_ACCOUNT = re.compile(r"organi[sz]ation|workspace|region|cmek|provider_not_allowed")
"""In a code of a 400: the account is refused, not this request."""


def provider_error(error: "anthropic.AnthropicError", *, now_ms: int, calls: int, api_key: str) -> ProviderError:
    """What any exception of the SDK means for the queue. The text keeps the provider's type, message and request id.

    `now_ms` turns a Retry-After date into seconds, `calls` counts the requests so far, `api_key` stays out of the text.
    """
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        return _status_error(error, now_ms=now_ms, api_key=api_key)
    if isinstance(error, anthropic.APIConnectionError):
        cause = type(error.__cause__).__name__
        billed = 0 if cause.startswith("Connect") else calls
        return ProviderPaused(
            f"Anthropic could not be reached ({cause}). {_HINTS['unreachable']}", reason="unreachable", calls=billed
        )
    if isinstance(error, anthropic.APIError):
        return BadAnswer(
            f"Anthropic's answer could not be read ({type(error).__name__}).", kind="malformed", calls=calls
        )
    if isinstance(error, anthropic.CredentialsError):
        return ProviderPaused(
            f"The key for Anthropic could not be used ({type(error).__name__}). {_HINTS['auth']}",
            reason="auth",
            until_settings_change=True,
        )
    return RequestRejected(f"The request could not be made ({type(error).__name__}); this is a fault of Gapless.")


def _status_error(error: "anthropic.APIStatusError", *, now_ms: int, api_key: str) -> ProviderError:
    said = str(error.api_message or "no message").replace(api_key, "[key]")
    text = f"Anthropic answered {error.status_code} {error.type or ''}: {said[:_MESSAGE_CHARS]}"
    reason = _reason(error.status_code, str(error.type), error.error_code or "", said)
    request_id = f" (request id: {error.request_id or 'none'})"
    if reason is None:
        return RequestRejected(f"{redact_text(text)}{request_id}")
    return ProviderPaused(
        f"{redact_text(text)}{request_id}. {_HINTS[reason]}",
        reason=reason,
        retry_after_s=_retry_after_s(error.response.headers, now_ms=now_ms),
        until_settings_change=reason in _WAITING_IS_NO_USE or error.status_code in {PAYMENT_REQUIRED, FORBIDDEN},
    )


def _reason(status: int, kind: str, code: str, said: str) -> str | None:
    """Why the provider pauses; None when it refuses this very request. A 400 that speaks of money is no bad request."""
    if status >= INTERNAL_SERVER_ERROR:
        return "overloaded"
    if _MONEY.search(code) or _MONEY.search(said):
        return "quota"
    if status < BAD_REQUEST:
        return "settings"
    if _ACCOUNT.search(code):
        return "auth"
    return _REASON_OF_STATUS.get(status) or _REASON_OF_TYPE.get(kind)


def _retry_after_s(headers: Mapping[str, str], *, now_ms: int) -> float | None:
    """Seconds from `retry-after-ms`, or from `retry-after` as seconds or as an HTTP date (RFC 9110, 10.2.3)."""
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        given = headers.get(name, "")
        if re.fullmatch(r"\d{1,9}(\.\d+)?", given):
            return float(given) / per_second
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(moment.timestamp() - now_ms / 1000, 0.0)
