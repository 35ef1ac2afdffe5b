"""A page with room for so many UTF-16 units: items go in whole or not at all."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from service.context.texts import CLOSING, OPENING, units, wrapped

WRAPPER_UNITS = units(f"{OPENING}\n\n{CLOSING}")
LINE_END_UNITS = 1


@dataclass(slots=True)
class Section:
    """Items under a heading, which is only there when one of them is."""

    heading: str = ""
    items: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        if self.items and self.heading:
            yield self.heading
        yield from self.items


class Page:
    """Sections stand in the order in which they were made, whichever is filled first."""

    def __init__(self, budget: int) -> None:
        """`budget`: units of the whole text, its wrapper included."""
        self.left = budget - WRAPPER_UNITS
        self._sections: list[Section] = []

    def section(self, heading: str = "") -> Section:
        made = Section(heading)
        self._sections.append(made)
        return made

    def add(self, section: Section, item: str, *, within: int | None = None) -> bool:
        """Put an item in if it fits, here and in the part of the page that is left `within` for its kind."""
        needed = self.cost(section, item)
        if needed > (self.left if within is None else min(within, self.left)):
            return False
        section.items.append(item)
        self.left -= needed
        return True

    def cost(self, section: Section, item: str) -> int:
        """Units that the item would take, with the heading if it is the first."""
        heading = units(section.heading) + LINE_END_UNITS if section.heading and not section.items else 0
        return heading + units(item) + LINE_END_UNITS

    def text(self) -> str:
        """'' when nothing is on it."""
        lines = [line for section in self._sections for line in section.lines()]
        return wrapped(lines) if lines else ""
