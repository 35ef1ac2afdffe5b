"""Configuration: flag > GAPLESS_* environment > settings.toml > default, read once and handed on as a value."""

import difflib
import os
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from service.errors import SettingsError
from service.place import home_folder

PREFIX = "GAPLESS_"
SECRETS = ("anthropic_api_key",)
NOT_SETTINGS = ("GAPLESS_HOME", "GAPLESS_PROJECT")
"""Variables of ours that say where we are, not how we behave."""
PROVIDER_VARIABLES = {"anthropic_api_key": "ANTHROPIC_API_KEY", "anthropic_base_url": "ANTHROPIC_BASE_URL"}
"""The provider's own names, read only when that provider is chosen."""
DEFAULT_SKIP_TOOLS = (
    "TodoWrite,TodoRead,TaskCreate,TaskUpdate,TaskList,TaskGet,TaskStop,ToolSearch,ListMcpResourcesTool,"
    "EnterPlanMode,SlashCommand,BashOutput,KillShell"
)

Seconds = Annotated[float, Field(gt=0, le=86_400 * 365, allow_inf_nan=False)]


class Settings(BaseModel):
    """Every setting; the description is what `gapless settings` and the README show."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="address the service listens on")
    port: int = Field(47700, ge=0, le=65535, description="0 = any free port; a default port taken by a stranger moves")
    provider: Literal["rules", "anthropic"] = Field(
        "rules", description="who compresses: rules (no key, no network) or anthropic"
    )
    model: str = Field("claude-haiku-4-5", description="model of the provider")
    anthropic_api_key: str = Field("", description="key of the anthropic provider")
    anthropic_base_url: str = Field("https://api.anthropic.com", description="endpoint of the anthropic provider")
    consumers: int = Field(2, ge=1, le=64, description="consumer tasks in a process")
    batch_events: int = Field(10, ge=1, le=1000, description="a model call takes at most so many events of one session")
    batch_tokens: int = Field(12_000, ge=100, description="… and at most so many tokens (estimated)")
    batch_wait_s: Seconds = Field(120, description="… and starts at the latest when the oldest has waited so long")
    lease_s: Seconds = Field(120, description="a claim returns by itself after this time")
    max_attempts: int = Field(3, ge=1, le=100, description="bad answers before a message is a dead letter")
    daily_calls: int = Field(0, ge=0, description="model calls a UTC day, 0 = no limit")
    daily_tokens: int = Field(0, ge=0, description="model tokens a UTC day, 0 = no limit")
    on_budget: Literal["wait", "rules"] = Field(
        "wait", description="when the budget is spent: wait, or go on with the rules"
    )
    dedupe_window_s: float = Field(
        30, ge=0, allow_inf_nan=False, description="the same content within this time is stored once"
    )
    session_idle_min: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        30, description="a session with no event for so many minutes is closed"
    )
    retention_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        30, description="raw events of finished messages are kept so long"
    )
    chroma: str = Field("embedded", description="vector index: embedded, off, or the URL of a Chroma server")
    context_budget: int = Field(
        9500, ge=0, le=9999, description="what a session is given at its start, in UTF-16 units; 0 = nothing"
    )
    context_observations: int = Field(50, ge=0, le=1000, description="… at most so many observations")
    context_full_count: int = Field(5, ge=0, le=1000, description="… the newest so many of them in full")
    context_full_field: Literal["narrative", "facts"] = Field("narrative", description="… by narrative or by facts")
    context_session_count: int = Field(3, ge=0, le=100, description="… and the summaries of so many sessions")
    semantic_inject: Literal["on", "off"] = Field("off", description="recall what fits each prompt")
    file_inject: Literal["on", "off"] = Field("off", description="tell what is known of a file before it is read")
    exclude: str = Field("", description="comma-separated globs of folders that are never captured")
    skip_tools: str = Field(DEFAULT_SKIP_TOOLS, description="comma-separated tools whose events are noise")
    fts: Literal["on", "off"] = Field("on", description="off: search as on a SQLite without FTS5")

    @field_validator("chroma")
    @classmethod
    def _chroma_is_known(cls, value: str) -> str:
        if value in ("embedded", "off") or urlsplit(value).scheme in ("http", "https"):
            return value
        raise ValueError("use embedded, off, or http://host:port")

    @cached_property
    def skipped_tools(self) -> frozenset[str]:
        return frozenset(_items(self.skip_tools))

    @cached_property
    def excluded_globs(self) -> tuple[str, ...]:
        return _items(self.exclude)


def _items(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The data folder, the effective settings, and for each name where its value came from
    (`default`, `settings.toml`, the environment variable's name, `flag`)."""

    home: Path
    settings: Settings
    sources: Mapping[str, str]
    file_stamp: tuple[int, int] | None = None
    """Time of change (ns) and size of settings.toml when it was read; None: there was none."""

    @property
    def database(self) -> Path:
        return self.home / "gapless.db"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def spool(self) -> Path:
        return self.home / "spool"

    def masked(self) -> dict[str, Any]:
        """Values by upper-case name, secrets as `***`."""
        values = self.settings.model_dump()
        return {name.upper(): ("***" if values[name] else "") if name in SECRETS else values[name] for name in values}


def load(
    *, home: Path | None = None, flags: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> Configuration:
    """Read every source once. Raises `SettingsError` that names the setting, its source and the nearest known name."""
    environment = os.environ if environment is None else environment  # noqa: TID251 - the one place
    home = home or home_folder(environment)
    file_stamp = stamp_of(home / "settings.toml")
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    for source, layer in (
        ("settings.toml", read_file(home / "settings.toml")),
        ("environment", _from_environment(environment)),
        ("flag", {k: v for k, v in (flags or {}).items() if v is not None}),
    ):
        for name, value in layer.items():
            values[name] = value
            sources[name] = PREFIX + name.upper() if source == "environment" else source
    for name, variable in PROVIDER_VARIABLES.items():
        if values.get("provider") == "anthropic" and name not in values and environment.get(variable):
            values[name] = environment[variable]
            sources[name] = variable
    return Configuration(home=home, settings=validated(values, sources), sources=sources, file_stamp=file_stamp)


def validated(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    """Raises `SettingsError` with one line a problem; a secret's value is never in it."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False, include_context=False):
            name = str(problem["loc"][0])
            given = "" if name in SECRETS else f" (got {problem['input']!r})"
            lines.append(f"{name.upper()} from {sources.get(name, 'settings')}: {problem['msg']}{given}")
        raise SettingsError("; ".join(lines)) from None


def known_name(name: str) -> str:
    """The field for a name in any case, with or without the prefix; raises `SettingsError` with the nearest name."""
    field = name.lower().removeprefix(PREFIX.lower())
    if field in Settings.model_fields:
        return field
    nearest = difflib.get_close_matches(field, Settings.model_fields, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0].upper()}?" if nearest else " `gapless settings` lists the names."
    raise SettingsError(f"unknown setting {name}.{hint}")


def read_file(path: Path) -> dict[str, Any]:
    """The values of settings.toml by field name; {} where there is none."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}. Correct it or move it away.") from error
    try:
        return {known_name(name): value for name, value in table.items()}
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def stamp_of(path: Path) -> tuple[int, int] | None:
    """What tells one version of a file from another; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        try:
            values[known_name(variable)] = value
        except SettingsError as error:
            warnings.warn(f"environment: {error}", stacklevel=3)
    return values
