"""The core as its callers see it: one open database with the operations that HTTP, CLI and workers share."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hooks import project as folders
from hooks import spool
from migrations import runner
from service import fulltext, inspection, intake, providers, settings_file, watermarks
from service.clock import now_ms
from service.database import Database, Reader, Tx, open_writable, translated
from service.due import FlushPolicy
from service.errors import InvalidInput, SchemaError, StoreUnavailable
from service.intake import Envelope, Event, House, Kind, Receipt, Skip
from service.projects import ProjectRef
from service.providers import Budget
from service.settings import Configuration, Settings
from service.vectors.client import ChildVectors

TURN_SILENCE_MS = 60_000
"""The rules take a turn as ended when nothing came for so long (semantics: Batches)."""
FOLDER_FACTS_S = 30.0
"""How long what was read about a folder is believed."""
FOLDERS_REMEMBERED = 10_000
OWN_FOLDERS = ("run", "spool", "logs", "backups")
PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One payload, parsed, with the bytes it had and what came with it."""

    payload: Any
    size: int
    envelope: Envelope


@dataclass(kw_only=True)
class Core:
    """Open with `Core.open`, close with `await close()`. `vectors` is None with CHROMA=off; their process starts when
    it is first asked."""

    configuration: Configuration
    database: Database
    has_fulltext: bool
    vectors: ChildVectors | None = None
    _folders: dict[str, tuple[float, ProjectRef | None]] = field(default_factory=dict)

    @classmethod
    def open(cls, configuration: Configuration, *, starts_vectors: bool = True) -> "Core":
        """Make the data folder, bring the database up to date, open it. Without `starts_vectors` the vector process is
        asked when another has started it. Raises `SchemaError`, `StoreError`."""
        home = configuration.home
        for folder in (home, *(home / name for name in OWN_FOLDERS)):
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            folder.chmod(PRIVATE_FOLDER)
        has_fulltext = prepare_database(
            configuration.database, settings=configuration.settings, backups=home / "backups"
        )
        database = Database.open(configuration.database, repair_index=fulltext.repair)
        is_off = configuration.settings.chroma == "off"
        vectors = None if is_off else ChildVectors(configuration, starts=starts_vectors)
        return cls(configuration=configuration, database=database, has_fulltext=has_fulltext, vectors=vectors)

    async def close(self) -> None:
        if self.vectors is not None:
            await self.vectors.close()
        await self.database.close()

    async def take_up_settings(self) -> None:
        """Read the settings again and go on under them; what waited for that is due. Raises `SettingsError`.

        Workers take them up when they begin anew, listeners never.
        """
        self.configuration = settings_file.read_again(self.configuration)
        self._folders.clear()
        self.__dict__.pop("_house", None)
        await self.database.write(lambda tx: providers.try_again(tx, now=now_ms()))

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @property
    def policy(self) -> FlushPolicy:
        return flush_policy(self.settings)

    @property
    def budget(self) -> Budget:
        return Budget(calls=self.settings.daily_calls, tokens=self.settings.daily_tokens)

    async def ingest(self, incoming: Incoming) -> Receipt:
        """Commit one event. Raises `InvalidInput` when it is none, `StoreUnavailable` when it can't be kept."""
        event = self._prepared(incoming)
        receipt = (await self._write([event]))[0]
        if receipt.reason == "ignored" and isinstance(event, Event) and event.kind is Kind.SUMMARY and self._spool():
            raise StoreUnavailable("events from the spool may come before this one; send it again, or spool it too")
        return receipt

    async def ingest_many(self, batch: Sequence[Incoming]) -> list[Receipt | InvalidInput]:
        """Commit several events at once, in order; an item that is no event is its own error."""
        prepared: list[Event | Skip | InvalidInput] = []
        for incoming in batch:
            try:
                prepared.append(self._prepared(incoming))
            except InvalidInput as error:
                prepared.append(error)
        receipts = iter(await self._write([item for item in prepared if not isinstance(item, InvalidInput)]))
        return [item if isinstance(item, InvalidInput) else next(receipts) for item in prepared]

    async def queue(self) -> dict[str, Any]:
        """What `/api/queue` and `gapless queue status` show."""
        return await self.database.read(self._queue)

    def _queue(self, reader: Reader) -> dict[str, Any]:
        now = now_ms()
        depth = inspection.depth(reader, now=now)
        provider = providers.report(reader, self.settings.provider, self.budget, now=now)
        index = watermarks.report(reader, now=now) if self.vectors else watermarks.NOT_IN_USE
        waiting, rejected = spooled(self.configuration.home)
        return {**depth, **provider, "spool": waiting, "rejected": rejected, "index": index}

    def _spool(self) -> list[str]:
        return spool.pending(str(self.configuration.home))

    def _prepared(self, incoming: Incoming) -> Event | Skip:
        return intake.prepare(incoming.payload, incoming.size, incoming.envelope, self._house, now=now_ms())

    @cached_property
    def _house(self) -> House:
        return House(
            own_folder=str(self.configuration.home), skip_tools=self.settings.skipped_tools, locate=self._locate
        )

    def _locate(self, ref: ProjectRef) -> ProjectRef | None:
        """With what the folder itself says, where the hook did not say it; None when the folder is excluded."""
        if not ref.folder:
            return ref
        known = self._folders.get(ref.folder)
        if known is None or known[0] < time.monotonic():
            if len(self._folders) > FOLDERS_REMEMBERED:
                self._folders.clear()
            facts = read_folder(ref.folder, self.settings.excluded_globs)
            known = self._folders[ref.folder] = (time.monotonic() + FOLDER_FACTS_S, facts)
        facts = known[1]
        if facts is None or ref.key or facts.key is None:
            return None if facts is None else ref
        return ProjectRef(override=ref.override, key=facts.key, name=facts.name, folder=ref.folder)

    async def _write(self, prepared: Sequence[Event | Skip]) -> list[Receipt]:
        policy = self.policy
        return await self.database.write(lambda tx: [_accept(tx, item, policy) for item in prepared])


def spooled(home: Path) -> tuple[int, int]:
    """How many events wait in the spool, and how many were set aside as unreadable."""
    return len(spool.pending(str(home))), len(spool.rejected(str(home)))


def _accept(tx: Tx, item: Event | Skip, policy: FlushPolicy) -> Receipt:
    if isinstance(item, Skip):
        receipt = Receipt(status="skipped", event_key=item.event_key, reason=item.reason)
    else:
        receipt = intake.accept(tx, item, policy, now=now_ms())
    if receipt.status == "skipped" and receipt.reason:
        inspection.count_not_queued(tx, receipt.reason)
    return receipt


def prepare_database(path: Path, *, settings: Settings, backups: Path) -> bool:
    """Migrate, repair and index the file; a database with data is backed up before an upgrade. Whether it has FTS5.

    Raises `SchemaError` when the file can't be used by this code, `StoreError` when it can't be used at all.
    """
    try:
        with closing(open_writable(path)) as connection:
            return _brought_up_to_date(connection, fts=settings.fts == "on", backups=backups)
    except runner.MigrationError as error:
        raise SchemaError(str(error)) from error
    except sqlite3.Error as error:
        raise translated(error) from error


def _brought_up_to_date(connection: sqlite3.Connection, *, fts: bool, backups: Path) -> bool:
    due = runner.due(connection)
    if due and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        _back_up(connection, backups / f"before-{due[0].number:04d}-{now_ms()}.db")
    runner.migrate(connection, now=now_ms())
    fulltext.ensure(connection, wanted=fts)
    return fts and fulltext.available(connection)


def _back_up(connection: sqlite3.Connection, path: Path) -> None:
    copy = open_writable(path)
    connection.backup(copy)
    copy.close()


def flush_policy(settings: Settings) -> FlushPolicy:
    return FlushPolicy(
        by_turn=settings.provider == "rules",
        silence_ms=TURN_SILENCE_MS,
        batch_events=settings.batch_events,
        batch_tokens=settings.batch_tokens,
        wait_ms=round(settings.batch_wait_s * 1000),
    )


def read_folder(folder: str, exclude: Sequence[str]) -> ProjectRef | None:
    """What a folder on this machine says about its project; None when it is excluded."""
    try:
        if folders.is_excluded(folder, list(exclude)):
            return None
        found = folders.identify(folder)
    except (OSError, ValueError):
        found = None
    if found is None:
        return ProjectRef(folder=folder)
    return ProjectRef(key=found.key, name=found.name, folder=folder)
