"""What the real client's time grows by with hooks: `CLAUDE_BIN=… python -m benchmarks.client_time [PAIRS]`, as root.

The time of its process, and that which it tells of itself: that begins with the prompt, when hooks of the start have
run and servers of tools are connected.

Each pair runs one scenario without hooks and with them, in turn first and second, so that a busy machine is unfair to
both alike. The service runs; only loopback can be reached.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cli.command_line import run_process
from tests.client.real_client import RealClient, Session, binaries, loopback_only
from tests.client.scripted_model import ScriptedModel, Turn, Use
from tests.hooks.hook_process import ROOT

WARM_UP_PAIRS = 1
LATENCY_S = 1.0  # until the model's answer begins; interactive models take one to several seconds


def main(pairs: int) -> None:
    for binary in binaries():
        with tempfile.TemporaryDirectory() as folder, loopback_only(), _model().listening() as model:
            _measure(binary, Path(folder), model, pairs)


def _model() -> ScriptedModel:
    uses = [
        Use(tool_use_id="toolu_1", name="Bash", input={"command": "make --version", "description": "look"}),
        Use(tool_use_id="toolu_2", name="Write", input={"file_path": "/tmp/gapless-bench.txt", "content": "one\n"}),
        Use(tool_use_id="toolu_3", name="Read", input={"file_path": "/tmp/gapless-bench.txt"}),
    ]
    return ScriptedModel(
        script={"WORK": [*(Turn(uses=[use]) for use in uses), Turn(text="Done.")]}, latency_s=LATENCY_S
    )


def _measure(binary: str, folder: Path, model: ScriptedModel, pairs: int) -> None:
    without = RealClient(binary=binary, work=folder / "without", model=model)
    with _prepared(RealClient(binary=binary, work=folder / "with", model=model)) as hooked:
        without.prepare()
        times: list[tuple[Session, Session]] = []
        for number in range(-WARM_UP_PAIRS, pairs):
            order = (without, hooked) if number % 2 else (hooked, without)
            ran = {client.work.name: client.run("WORK") for client in order}
            if number >= 0:
                times.append((ran["without"], ran["with"]))
    print(f"{binary}, median of {pairs} pairs")
    print(_line("its process", [(before.took_s, after.took_s) for before, after in times]))
    print(_line("by its own account", [(before.own_s, after.own_s) for before, after in times]))


def _line(what: str, times: Sequence[tuple[float, float]]) -> str:
    alone_s, hooked_s = (statistics.median(column) for column in zip(*times, strict=True))
    growth = statistics.median(after / before for before, after in times) - 1
    return f"  {what}: {alone_s:.2f} s without hooks, {hooked_s:.2f} s with: {growth:+.1%}"


@contextmanager
def _prepared(client: RealClient) -> Iterator[RealClient]:
    client.prepare()
    client.data.mkdir(mode=0o700)
    (client.data / "settings.toml").write_text('PORT = 0\nCHROMA = "off"\n')
    client.command("plugin", "marketplace", "add", str(ROOT))
    client.command("plugin", "install", "gapless@gapless")
    if run_process(client.data, "up").code:
        sys.exit("the service does not start: run `gapless up` to see why")
    try:
        yield client
    finally:
        run_process(client.data, "down")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
