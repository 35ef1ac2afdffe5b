"""The rule-based compressor: a batch in, observations and a summary out, without a model or a network."""

import asyncio
from collections.abc import Iterator

from service.models import Batch, Compressed, Observation, ObservationDraft, ObservationType
from workers.compressors.rules.answers import answer_observations
from workers.compressors.rules.diffs import changes_of
from workers.compressors.rules.edits import edit_observation, edited_paths
from workers.compressors.rules.errors import error_observations
from workers.compressors.rules.history import COMMIT, history_observations
from workers.compressors.rules.outcomes import outcome_observations
from workers.compressors.rules.paths import folders_of
from workers.compressors.rules.research import research_observations
from workers.compressors.rules.summary import summary_of
from workers.compressors.rules.turns import Turn, turns_of


class RulesCompressor:
    """Deterministic: the same batch gives the same answer. It only repeats words of its input."""

    name = "rules"

    async def compress(self, batch: Batch, *, strict: bool) -> Compressed:  # noqa: ARG002 - there is no bad answer here
        return await asyncio.to_thread(compress, batch)  # a long turn takes tenths of a second

    async def close(self) -> None:
        """Nothing is held."""


def compress(batch: Batch) -> Compressed:
    turns = turns_of(batch)
    folders = folders_of(batch.session.cwd, *(use.cwd for turn in turns for use in turn.uses))
    observations = tuple(draft for turn in turns for draft in _observations(turn, folders, batch.earlier))
    summary = summary_of([turn for turn in turns if turn.closings], folders) if batch.wants_summary else None
    return Compressed(observations=observations, summary=summary)


def _observations(turn: Turn, folders: tuple[str, ...], earlier: tuple[Observation, ...]) -> Iterator[ObservationDraft]:
    changes = changes_of(turn.uses)
    edited = edited_paths(changes, folders)
    outcomes = outcome_observations(turn, folders, earlier)
    commits = list(history_observations(turn, edited))
    mended = {path for draft in outcomes if draft.type == ObservationType.BUGFIX for path in draft.files_modified}
    kind = _kind_by_commit(commits)
    for change in changes:
        yield edit_observation(change, folders, mended=mended, kind=kind)
    yield from outcomes
    yield from commits
    yield from research_observations(turn)
    yield from error_observations(turn)
    yield from answer_observations(turn)


def _kind_by_commit(drafts: list[ObservationDraft]) -> ObservationType | None:
    """What the turn's commits, when they agree, call its edits."""
    kinds = {draft.type for draft in drafts if COMMIT in draft.concepts}
    return ObservationType(kinds.pop()) if len(kinds) == 1 else None
