"""Hook settings in the form that Claude Code, Codex and Gemini share: events, groups with a matcher, hooks."""

from operator import itemgetter
from typing import Any

from service.installing import json_text
from service.installing.program import Program

HOOKS = "hooks"


def install(text: str, program: Program, wanted: dict[str, dict[str, Any]]) -> str:
    """With exactly these groups of the program, one an event; the text itself if that is so already."""
    if sorted(_ours(text, program), key=itemgetter(0)) == sorted(wanted.items(), key=itemgetter(0)):
        return text
    text = uninstall(text, program)
    for event, group in wanted.items():
        text = json_text.append(text, (HOOKS, event), group)
    return text


def uninstall(text: str, program: Program) -> str:
    """Without the program's hooks; a group that held other hooks too keeps those."""
    while (path := _first_of_ours(json_text.parse(text), program)) is not None:
        text = json_text.remove(text, path)
    return text


def _ours(text: str, program: Program) -> list[tuple[str, Any]]:
    return [
        (event, group)
        for event, groups in _members(json_text.parse(text).get(HOOKS))
        for group in _items(groups)
        if any(map(program.owns_hook, _items(_field(group, HOOKS))))
    ]


def _first_of_ours(settings: dict[str, Any], program: Program) -> json_text.Path | None:
    for event, groups in _members(settings.get(HOOKS)):
        for number, group in enumerate(_items(groups)):
            ours = [program.owns_hook(hook) for hook in _items(_field(group, HOOKS))]
            if ours and all(ours):
                return (HOOKS, event, number)
            if any(ours):
                return (HOOKS, event, number, HOOKS, ours.index(True))
    return None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _members(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []
