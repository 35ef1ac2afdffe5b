"""What all recordings have in common: odd JSON lines, and the events that are told from them."""

import gzip
import json
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from service.clock import epoch_ms

Record = dict[str, Any]
COMPRESSED = {".xz": lzma.open, ".gz": gzip.open}
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One hook event told from a recording. `delivery` names it for good: the same record gives the same one."""

    at: int
    payload: Record
    delivery: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A session in order of time. `unusable` are the places of lines that are no records, each with a reason."""

    platform: str
    session_id: str
    events: list[Recorded]
    unusable: list[str]


@dataclass(slots=True)
class Telling:
    """Collects a session's events: one open turn at a time, whose last words its stop repeats."""

    session_id: str
    cwd: str = ""
    events: list[Recorded] = field(default_factory=list)
    said: str = ""
    last_at: int = 0
    _open: str | None = None
    """What names the turn that is open."""

    def tell(self, event: str, at: int, delivery: str, **fields: Any) -> None:
        self.last_at = max(self.last_at, at)
        payload = {"hook_event_name": event, "session_id": self.session_id, "cwd": self.cwd, **fields}
        self.events.append(Recorded(at=at, payload=payload, delivery=f"{event}-{delivery}"))

    def prompt(self, text: str, at: int, delivery: str) -> None:
        self.stop()
        self.said, self._open = "", delivery
        self.tell("UserPromptSubmit", at, delivery, prompt=text)

    def say(self, text: str, at: int) -> None:
        self.last_at = max(self.last_at, at)
        self.said = text or self.said

    def interrupt(self) -> None:
        """No stop is told of a turn that was broken off."""
        self._open = None

    def stop(self, at: int | None = None) -> None:
        if self._open is not None:
            words = {"stop_hook_active": False, "last_assistant_message": self.said}
            self.tell("Stop", at or self.last_at, self._open, **words)
        self._open = None

    def ended(self, platform: str, unusable: list[str], *, started_at: int | None) -> Transcript:
        """The whole session, opened and closed. Without a time there is none."""
        self.stop()
        if self.events and started_at is not None:
            self.tell("SessionEnd", self.last_at, "end", reason="other")
            first = min(started_at, *(event.at for event in self.events))
            start = {"hook_event_name": "SessionStart", "session_id": self.session_id, "cwd": self.cwd}
            opening = Recorded(at=first, payload=start | {"source": "startup"}, delivery="SessionStart-start")
            self.events = [opening, *sorted(self.events, key=lambda event: event.at)]
        return Transcript(platform=platform, session_id=self.session_id, events=self.events, unusable=unusable)


def records(path: Path, unusable: list[str]) -> Iterator[tuple[str, Record]]:
    """Where each JSON object stands, and the object. A line may hold several, or half of one: a writer that died.

    A file that is one JSON document gives its items. Lines end at a newline alone: U+2028 is a character of JSON.
    """
    number = 0
    try:
        with _opened(path) as file:
            if whole := _document(file):
                yield from ((str(number), item) for number, item in enumerate(whole, 1) if isinstance(item, dict))
                return
            file.seek(0)
            for number, line in enumerate(file, 1):
                yield from _objects(line.strip("\ufeff \t\r\n"), f"{path}:{number}", unusable)
    except DAMAGE as error:
        unusable.append(f"{path}:{number + 1}: the archive is damaged from here: {error or 'it is cut off'}")


def at_of(record: Record, *names: str) -> int | None:
    return next((at for name in names or ("timestamp",) if (at := epoch_ms(record.get(name))) is not None), None)


def mapping(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(content: object) -> str:
    """The text of a message's content: a string, or its text blocks."""
    if isinstance(content, str):
        return content
    kinds = ("text", "input_text", "output_text")
    return "\n".join(str(block.get("text", "")) for block in map(mapping, items(content)) if block.get("type") in kinds)


def _opened(path: Path) -> IO[str]:
    opener = COMPRESSED.get(path.suffix, open)
    file: IO[str] = opener(path, "rt", encoding="utf-8", errors="replace", newline="\n")  # type: ignore[operator]
    return file


def _document(file: IO[str]) -> list[Any] | None:
    """An array, or one object over several lines; None for JSON lines."""
    head = file.readline().strip("\ufeff \t\r\n")
    if not head.startswith("[") and head != "{":
        return None
    try:
        whole = json.loads(head + file.read())
    except ValueError:
        return None
    return whole if isinstance(whole, list) else [whole]


def _objects(line: str, where: str, unusable: list[str]) -> Iterator[tuple[str, Record]]:
    decoder, start = json.JSONDecoder(), 0
    while start < len(line):
        try:
            found, end = decoder.raw_decode(line, start)
        except (ValueError, RecursionError):
            unusable.append(f"{where}: no JSON: {line[start : start + SHOWN]}")
            end = line.find('{"', start + 1)
            if end < 0:
                return
        else:
            if isinstance(found, dict):
                yield where, found
        start = end
        while start < len(line) and line[start] in " \t,":
            start += 1
