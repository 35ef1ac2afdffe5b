"""Dates that a query names, as spans of time: what was done `on 25 May 2026` was stored then, and seldom says so."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
MONTH += r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
YEAR = r"(?:19|20)\d\d"
NAMED = re.compile(
    rf"\b(?:(?P<before>{DAY})\s+(?:of\s+)?)?(?P<month>{MONTH})(?:\s+(?P<after>{DAY})\b(?!\d))?(?:,?\s*(?P<year>{YEAR})\b)?",
    re.IGNORECASE,
)
ISO = re.compile(rf"\b(?P<year>{YEAR})-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>0[1-9]|[12]\d|3[01]))?\b")
ALSO_WORDS = frozenset({"may", "march"})
"""No months when they stand alone, nor is one that is cut short or has no capital."""
CUT_SHORT = 3
MOST = 4
READABLE_MS = 1 << 46
"""Times beyond the year 4199 are no dates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A day, or a month when `day` is None, in local time; of any year when `year` is None."""

    year: int | None
    month: int
    day: int | None

    def holds(self, at_epoch: int) -> bool:
        """`at_epoch` in ms."""
        if not 0 <= at_epoch < READABLE_MS:
            return False
        at = datetime.fromtimestamp(at_epoch / 1000, UTC).astimezone()
        return self.month == at.month and self.year in (None, at.year) and self.day in (None, at.day)


def moments(text: str) -> list[Moment]:
    """The dates of a query, in its order of spelling them: `25 May, 2026`, `May 25th`, `in June`, `2026-05`."""
    return list(islice(dict.fromkeys(_moments(text)), MOST))


def _moments(text: str) -> Iterator[Moment]:
    for match in NAMED.finditer(text):
        name = match["month"].rstrip(".")
        day, year = match["before"] or match["after"], match["year"]
        alone = day is None and year is None
        if year is None and not name[0].isupper():
            continue
        if alone and (len(name) <= CUT_SHORT or name.casefold() in ALSO_WORDS):
            continue
        month = next(number for number, month in enumerate(MONTHS, 1) if month.startswith(name.casefold()[:CUT_SHORT]))
        yield Moment(
            year=int(year) if year else None, month=month, day=int(day.casefold().rstrip("dhnrst")) if day else None
        )
    for match in ISO.finditer(text):
        day = match["day"]
        yield Moment(year=int(match["year"]), month=int(match["month"]), day=int(day) if day else None)
