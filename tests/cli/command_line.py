"""What a run of `gapless` left, and running it as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = "boathouse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


Command = Callable[..., Outcome]


def environment(home: Path, **settings: str) -> dict[str, str]:
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("GAPLESS_")}
    return {**theirs, "GAPLESS_HOME": str(home), **settings}


def run_process(home: Path, *arguments: str, cwd: Path | None = None, **settings: str) -> Outcome:
    """Run `gapless` as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-I", "-m", "service.cli", *arguments],
        env=environment(home, **settings),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Outcome(code=done.returncode, stdout=done.stdout, stderr=done.stderr)
