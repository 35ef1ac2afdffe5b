"""The command line: the composition root that starts the service, and a client of the core that needs no service."""

import os
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
        elif sys.argv[1:] == ["mcp"]:  # as clients start it: they wait for its first answer
            from service.cli.mcp import mcp

            mcp()
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
    from service.cli.output import complain, in_words
    from service.errors import InvalidInput

    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    complain(in_words(error))
    return 2 if isinstance(error, InvalidInput) else 1


def _say_warning(message: Warning | str, *_: object, **__: object) -> None:
    sys.stderr.write(f"gapless: warning: {message}\n")
