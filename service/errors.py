"""Every error that Gapless raises on purpose.

GaplessError
├── SettingsError            a setting is unknown or unusable
├── StoreError               the database cannot be used as asked
│   ├── StoreUnavailable     locked, full, read-only: worth trying again
│   └── SchemaError          a migration is due, altered, or the database is newer than this code
├── InvalidInput             a request that says something impossible: names the field
├── NotFound
├── FenceLost                a claim was taken over; this holder's writes are refused
└── ProviderError            a compressor's provider did not give a usable answer
    ├── ProviderPaused       quota, auth, outage, network: pauses the provider, costs no attempt
    ├── BadAnswer            an answer that was malformed, a refusal, or empty against its own schema: costs an attempt
    └── RequestRejected      the provider refuses this very request (400, 413): costs an attempt
"""


class GaplessError(Exception):
    """Base of all; its message tells a person what is wrong and what to do."""


class SettingsError(GaplessError):
    pass


class StoreError(GaplessError):
    pass


class StoreUnavailable(StoreError):
    pass


class SchemaError(StoreError):
    pass


class InvalidInput(GaplessError):
    """`field` is the parameter's name, `status` the HTTP status that fits (400 for what can't be parsed, else 422)."""

    def __init__(self, message: str, *, field: str | None = None, status: int = 422) -> None:
        super().__init__(message)
        self.field = field
        self.status = status


class NotFound(GaplessError):
    pass


class FenceLost(GaplessError):
    pass


class ProviderError(GaplessError):
    """`calls`, `input_tokens` and `output_tokens` say what was spent before it failed."""

    def __init__(self, message: str, *, calls: int = 0, input_tokens: int = 0, output_tokens: int = 0) -> None:
        super().__init__(message)
        self.calls = calls
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens


class ProviderPaused(ProviderError):
    """`reason`: rate_limited, overloaded, unreachable, auth, quota, settings. `retry_after_s` is the provider's own
    word, if any; `until_settings_change`: waiting does not help (401, 402, 403)."""

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        retry_after_s: float | None = None,
        until_settings_change: bool = False,
        calls: int = 0,
    ) -> None:
        super().__init__(message, calls=calls)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.until_settings_change = until_settings_change


class BadAnswer(ProviderError):
    """`kind`: malformed, refusal."""

    def __init__(
        self, message: str, *, kind: str, calls: int = 0, input_tokens: int = 0, output_tokens: int = 0
    ) -> None:
        super().__init__(message, calls=calls, input_tokens=input_tokens, output_tokens=output_tokens)
        self.kind = kind


class RequestRejected(ProviderError):
    pass
