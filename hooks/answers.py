"""What a hook says to its client: context, or a notice for the person; one JSON object, and never a decision."""

from __future__ import annotations

import os

from hooks import clients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def print_context(client: str, answer: bytes) -> None:
    """Pass on the context in the service's answer, and no other field: a hook of ours never decides for its host."""
    import json

    try:
        output = json.loads(answer)["hookSpecificOutput"]
        event, context = output["hookEventName"], output["additionalContext"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    _print(clients.context_answer(client, event, context))


def print_notice(client: str, text: str) -> None:
    """One line at the start of a session, for the person and for the agent that can help."""
    _print({"systemMessage": text, **clients.context_answer(client, "SessionStart", text)})


def _print(document: "dict[str, Any]") -> None:
    import json

    left = json.dumps(document).encode()
    try:
        while left:
            left = left[os.write(1, left) :]
    except OSError:  # the host stopped listening; the event itself is stored
        return
