"""How notes and summaries read in a context: on one line each, or whole."""

from service.context.notes import DAY, Note, Summary
from service.context.texts import CUT, line

TYPE_UNITS, TITLE_UNITS, FIELD_UNITS = 20, 110, 280
FILE_UNITS, FILES_SHOWN = 100, 5


def row(note: Note, *, project: str, similar: int = 0) -> str:
    """About twenty tokens, to stand under its day. `project` is the reader's own, and goes without saying."""
    time = note.when[DAY + 1 :]
    repeated = f" ×{similar + 1}" if similar else ""
    foreign = "" if note.project == project else f" [{line(note.project, TYPE_UNITS)}]"
    return f"#{note.id} {time} {_type(note)} {line(note.title, TITLE_UNITS)}{foreign}{repeated} ~{note.tokens}"


def whole(note: Note, full_field: str) -> str:
    """Time, title, the field (the other one where it is empty), and the files it is about."""
    files = ", ".join(line(path, FILE_UNITS) for path in note.files[:FILES_SHOWN])
    more = f" and {len(note.files) - FILES_SHOWN} more" if len(note.files) > FILES_SHOWN else ""
    told = f"#{note.id} {note.when} {_type(note)} {substance(note, full_field)}"
    return f"{told} ({files}{more})" if files else told


def substance(note: Note, full_field: str) -> str:
    """Title and text on one line; a text that begins with its title stands alone, as a remembered one does."""
    title, narrative, facts = line(note.title), line(note.narrative), line("; ".join(note.facts))
    text = (facts or narrative) if full_field == "facts" else (narrative or facts)
    text = text or line(note.subtitle)
    if text.startswith(title.removesuffix(CUT).rstrip()):
        return text
    return f"{title}: {text}" if text else title


def summary(summed: Summary) -> str:
    fields = (
        ("asked", summed.request),
        ("learned", summed.learned),
        ("done", summed.completed),
        ("next", summed.next_steps),
    )
    told = " | ".join(f"{name}: {text}" for name, given in fields if (text := line(given, FIELD_UNITS)))
    return f"S{summed.id} {summed.when} {told}"


def _type(note: Note) -> str:
    return line(note.type, TYPE_UNITS)
