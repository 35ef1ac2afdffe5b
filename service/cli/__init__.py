"""The command line: the composition root that starts the service, and a client of the core that needs no service."""

import os
import sqlite3
import sys
import warnings


def main() -> None:
    """`gapless`: exits 0 when it did what was asked, 1 when it failed, 2 on wrong usage; the reason is on stderr."""
    warnings.showwarning = _say_warning
    # Pydantic would look for plugins in the metadata of every package there is: a twentieth of a cold start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # noqa: TID251 - no setting of ours
    sys.exit(_run())


def _run() -> int:
    try:
        if sys.argv[1:] == ["serve"]:  # as `up` and `make run` start it: ready sooner without typer
            from service.cli.serving import serve

            serve(flags={}, with_workers=True)
        else:
            from service.cli.app import app

            app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost frame: no command ends in a stack trace
        return _explained(error)
    return 0


def _explained(error: Exception) -> int:
    """Say on stderr what is wrong; the exit code."""
    from service.cli.output import complain
    from service.errors import GaplessError, InvalidInput

    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    match error:
        case GaplessError():
            complain(error)
        case sqlite3.Error():
            from service.database import translated

            complain(translated(error))
        case OSError():
            complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        case _:
            complain(f"a bug in Gapless, please report it: {_described(error)}")
    return 2 if isinstance(error, InvalidInput) else 1


def _described(error: Exception) -> str:
    """With the place that raised it, which is what a report needs."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{place}"


def _say_warning(message: Warning | str, *_: object, **__: object) -> None:
    sys.stderr.write(f"gapless: warning: {message}\n")
