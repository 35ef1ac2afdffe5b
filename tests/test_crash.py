"""The real service, killed again and again while events come in: nothing lost, nothing double."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import crash


@pytest.mark.slow
@pytest.mark.usefixtures("unmeasured")
def test_events_of_a_service_that_is_killed_eight_times_are_all_there_once(tmp_path: Path) -> None:
    found, figures = crash.compare(crash.synthetic(96), kills=8, seed=1, folder=tmp_path)
    assert found == [], figures
    assert figures["spooled"], "no event met a dead service"
    assert figures["answered"], "no event met a living one"


def outcome(**changes: object) -> crash.Outcome:
    given = {
        "messages": {"PostToolUse/s1/t1": ("done", None), "Stop/s1/p1": ("done", None)},
        "prompts": ["s1 go"],
        "observations": Counter({("s1", "edited", "", ("PostToolUse/s1/t1",)): 1}),
        "taken_apart": set(),
        "crashes": 0,
        "integrity": "ok",
        "spooled": 0,
    }
    return crash.Outcome(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": {"Stop/s1/p1": ("done", None)}},
        {"messages": {**outcome().messages, "PostToolUse/s1/t2": ("done", None)}},
        {"messages": {**outcome().messages, "Stop/s1/p1": ("failed", "crashes")}},
        {"messages": {**outcome().messages, "Stop/s1/p1": ("pending", None)}},
        {"prompts": []},
        {"observations": Counter()},
        {"observations": Counter(dict.fromkeys(outcome().observations, 2))},
        {"observations": outcome().observations + Counter({("s1", "other", "", ()): 1})},
        {"integrity": "*** in database main ***"},
        {"spooled": 1},
    ],
)
def test_the_comparison_sees_every_kind_of_loss(changes: dict[str, object]) -> None:
    assert list(crash.differences(outcome(), outcome())) == []
    assert list(crash.differences(outcome(), outcome(**changes)))
