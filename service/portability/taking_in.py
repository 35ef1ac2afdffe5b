"""An import: files one after the other, each by its format, and the account of what became of what was in them."""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from service import memories
from service.clock import now_ms
from service.core import Core
from service.database import Tx, open_writable
from service.liveness import Turn
from service.portability.bring_in import BringIn
from service.portability.lines import AnyLine
from service.portability.reading import TRANSCRIPTS, Format, Unusable, lines
from service.portability.replaying import replay
from service.settings import Configuration

LINES_PER_COMMIT = 200
"""Events of live sessions are taken in between."""
SCRATCH = "dry-run"
BECAME = {"queued": "new", "recorded": "new", "duplicate": "known", "skipped": "skipped", "error": "unusable"}
"""What an event's receipt means for an account."""


@dataclass(slots=True)
class TakingIn:
    """`counts` by (what, new | known | skipped | unusable), where what is a kind of line, or `event`. `unusable`: what
    could not be read, in words. `project` overrides the one that is brought."""

    core: Core
    project: str | None
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    unusable: list[str] = field(default_factory=list)

    async def file(self, path: Path, form: Format, *, progress: Callable[[int], None]) -> None:
        """Take one file in; `progress` is told of each portion's number of records. Raises `InvalidInput`, `OSError`,
        `StoreUnavailable`; run again, it goes on where it was stopped."""
        if form in TRANSCRIPTS:
            await self._transcript(path, form, progress)
            return
        there = self._usable(lines(path, form))
        bring_in = BringIn(project=self.project, clean=lambda text: memories.cleaning([text])(text))
        while some := await asyncio.to_thread(lambda: list(islice(there, LINES_PER_COMMIT))):
            bring_in, became = await self._lines(bring_in, some)
            self.counts.update((line.kind, what) for line, what in zip(some, became, strict=True))
            progress(len(some))

    async def _transcript(self, path: Path, form: Format, progress: Callable[[int], None]) -> None:
        transcript = await asyncio.to_thread(TRANSCRIPTS[form], path)
        statuses = await replay(self.core, transcript, project=self.project)
        self.unusable += transcript.unusable
        self.counts.update(("event", BECAME[status]) for status in statuses)
        progress(len(statuses))

    async def _lines(self, bring_in: BringIn, some: Sequence[AnyLine]) -> tuple[BringIn, list[str]]:
        def work(tx: Tx) -> tuple[BringIn, list[str]]:
            attempt = bring_in.attempt()
            return attempt, attempt.take(tx, some, now=now_ms())

        return await self.core.database.write(work)

    def _usable(self, found: Iterator[AnyLine | Unusable]) -> Iterator[AnyLine]:
        for line in found:
            if isinstance(line, Unusable):
                self.unusable.append(f"{line.where}: {line.reason}")
            else:
                yield line


@contextmanager
def scratch(configuration: Configuration) -> Iterator[Configuration]:
    """The same memory in a folder that goes away: a dry run is a run on a copy. What a killed one left behind goes with
    the next."""
    in_use = Turn(configuration.home / f"{SCRATCH}.lock")
    if in_use.is_mine():
        for left in configuration.home.glob(f"{SCRATCH}-*"):
            shutil.rmtree(left, ignore_errors=True)
    with closing(in_use), tempfile.TemporaryDirectory(prefix=f"{SCRATCH}-", dir=configuration.home) as folder:
        copy = replace(configuration, home=Path(folder))
        with closing(open_writable(configuration.database)) as source, closing(open_writable(copy.database)) as target:
            source.backup(target)
        yield copy
