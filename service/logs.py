"""Logging: JSON lines to logs/ and, at a terminal, readable ones to stderr. Never payloads, prompts or keys."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

import orjson

if "rich" not in sys.modules:  # structlog would load it for a renderer that is not used here: a tenth of a cold start
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog

    del sys.modules["rich"]
else:
    import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from service.private_files import PRIVATE_FILE, make_folder

FILE_BYTES = 5 * 1024 * 1024
OLD_FILES = 3
"""The newest 20 MB are kept."""
SHARED: tuple[Processor, ...] = (
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)

TRACEBACKS = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
"""Without the values of variables: they would be payloads and keys."""


@contextmanager
def logging_to(home: Path) -> Iterator[None]:
    """Log to logs/gapless.log of the data folder, and to stderr when that is a terminal, until the end of the block.

    What libraries log through the standard library, from WARNING on, goes the same way.
    """
    handlers: list[logging.Handler] = [_to_file(make_folder(home / "logs") / "gapless.log")]
    if sys.stderr.isatty():
        handlers.append(_to_terminal())
    root = logging.getLogger()
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: logging.getLogger("gapless"),
        cache_logger_on_first_use=False,
    )
    logging.getLogger("gapless").setLevel(logging.INFO)
    for handler in handlers:
        root.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
        structlog.reset_defaults()


class _PrivateFile(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        file = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        return os.fdopen(file, "a", encoding="utf-8")


def _to_file(path: Path) -> logging.Handler:
    handler = _PrivateFile(path, maxBytes=FILE_BYTES, backupCount=OLD_FILES)
    handler.setFormatter(_formatter(TRACEBACKS, _as_json))
    return handler


def _to_terminal() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(_formatter(structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)))
    return handler


def _formatter(*renderers: Processor) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=SHARED,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
    )


def _as_json(_: WrappedLogger, __: str, event: EventDict) -> str:
    return orjson.dumps(event, default=str).decode()
