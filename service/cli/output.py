"""What commands print: JSON for programs, tables for people, trouble on stderr."""

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from service.errors import GaplessError

WIDTH_OF_A_PIPE = 160
"""Columns where there is no terminal to ask."""


def print_json(value: Any) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Cells are plain text; what a terminal would obey in them is made visible."""
    from rich import box

    _print(columns, rows, title=title, box=box.SIMPLE_HEAD)


def print_pairs(rows: Iterable[tuple[str, object]], *, title: str | None = None) -> None:
    """Names and their values, a line or more each."""
    _print(("", ""), rows, title=title, box=None, show_header=False)


def _print(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None, **form: Any) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if title is not None:  # not the table's own, which breaks lines at the width of the rows
        print_line(title)
    table = Table(*columns, pad_edge=False, **form)
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE, highlight=False).print(table)


def print_line(text: str = "") -> None:
    sys.stdout.write(printable(text) + "\n")


def complain(message: object) -> None:
    sys.stderr.write(f"gapless: {printable(message)}\n")


def in_words(error: Exception) -> str:
    """What is wrong and what to do, for whoever gave a command."""
    match error:
        case GaplessError():
            return str(error)
        case sqlite3.Error():
            from service.database import translated

            return str(translated(error))
        case OSError():
            return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    return f"a bug in Gapless, please report it: {_described(error)}"


def _described(error: Exception) -> str:
    """With the place that raised it, which is what a report needs."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{place}"


def printable(value: object) -> str:
    """Without control characters: stored text comes from anywhere and must not drive the reader's terminal."""
    text = str(value)
    if text.isprintable():
        return text
    kept = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return kept.encode("utf-8", "replace").decode()


def local_time(epoch_ms: int | None) -> str:
    """For tables, as `2026-11-30 14:05:09`, in local time."""
    from datetime import UTC, datetime

    if epoch_ms is None:
        return ""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
