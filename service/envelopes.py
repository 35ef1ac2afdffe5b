"""The envelope of an event, from HTTP headers, spool files and items of a batch alike."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from hooks import envelope as names
from service.clock import epoch_ms
from service.intake import Envelope

TOO_LONG_FOR_MS = 16
"""Digits; more are no time."""

NAMES = (
    names.CLIENT,
    names.CAPTURED_AT,
    names.DELIVERY,
    names.PROJECT,
    names.PROJECT_KEY,
    names.PROJECT_OVERRIDE,
    names.PRIVATE,
)


def from_headers(headers: Mapping[str, str], *, platform: str | None = None, project: str | None = None) -> Envelope:
    """`platform` and `project` are the query's and win over the headers."""
    return Envelope(
        platform=platform or _text(headers, names.CLIENT) or "claude-code",
        captured_at=_number(headers.get(names.CAPTURED_AT)),
        delivery=_text(headers, names.DELIVERY),
        project=project or _text(headers, names.PROJECT_OVERRIDE),
        project_name=_text(headers, names.PROJECT),
        project_key=_text(headers, names.PROJECT_KEY),
        private=headers.get(names.PRIVATE) == "1",
    )


def from_item(item: Any, whole: Envelope) -> tuple[Any, Envelope]:
    """The payload and envelope of a batch item, which is a payload or
    `{"payload", "captured_at_epoch", "delivery", "project"}`; what it does not say, `whole` (the request's) says."""
    if not (isinstance(item, dict) and isinstance(item.get("payload"), dict) and "hook_event_name" not in item):
        return item, whole
    delivery, project = item.get("delivery"), item.get("project")
    return item["payload"], Envelope(
        platform=whole.platform,
        captured_at=epoch_ms(item.get("captured_at_epoch")) or whole.captured_at,
        delivery=delivery if isinstance(delivery, str) else None,
        project=project if isinstance(project, str) and project else whole.project,
        project_name=whole.project_name,
        project_key=whole.project_key,
        private=whole.private,
    )


def _text(headers: Mapping[str, str], name: str) -> str | None:
    value = headers.get(name)
    return unquote(value, errors="replace") or None if value else None


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < TOO_LONG_FOR_MS else None
