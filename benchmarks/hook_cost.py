"""What a hook process costs against the same interpreter doing nothing: `python benchmarks/hook_cost.py [ROUNDS]`.

Each round runs every row once, in turn, so that a busy machine is unfair to all of them alike.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOOK = ROOT / "hooks" / "gapless_hook.py"
PYTHON = os.path.realpath(sys.executable)
ISOLATED = [PYTHON, "-I", "-S"]
WARM_UP_ROUNDS = 3  # byte code gets cached, files get read
PAYLOAD_CHARS = 1_000  # of tool output; the median payload of real sessions has 1.6 kB in all
ANSWER_BODY = b'{"status":"queued","message_id":7,"event_key":"k"}'
ANSWER = b"HTTP/1.1 202 Accepted\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER_BODY), ANSWER_BODY)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        up, down = Path(folder, "up"), Path(folder, "down")
        (up / "run").mkdir(parents=True)
        threading.Thread(target=_serve, args=(str(up / "run" / "gapless.sock"),), daemon=True).start()
        rows = {
            "python -I -S -c pass": ([*ISOLATED, "-c", "pass"], up),
            "hook, service up (Unix socket)": ([*ISOLATED, str(HOOK)], up),
            "hook, service down (spool, fsync)": ([*ISOLATED, str(HOOK)], down),
        }
        times_ms: dict[str, list[float]] = {name: [] for name in rows}
        for round_number in range(-WARM_UP_ROUNDS, rounds):
            for name, (command, home) in rows.items():
                took_ms = _run_ms(command, home)
                if round_number >= 0:
                    times_ms[name].append(took_ms)
        spooled = [len(list(home.glob("spool/*.event"))) for home in (up, down)]
        if spooled != [0, WARM_UP_ROUNDS + rounds]:
            sys.exit(f"the hooks did not do what is measured here: {spooled} events were spooled")
    _print_table(times_ms)


def _run_ms(command: list[str], home: Path) -> float:
    payload = _payload()
    started = time.perf_counter()
    subprocess.run(command, input=payload, env={"GAPLESS_HOME": str(home), "PATH": os.defpath}, check=True)
    return (time.perf_counter() - started) * 1_000


def _payload() -> bytes:
    event = {
        "session_id": "11111111-2222-4333-8444-555555555555",
        "transcript_path": "/nowhere/transcript.jsonl",
        "cwd": str(ROOT),
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "x" * PAYLOAD_CHARS, "stderr": "", "interrupted": False},
        "tool_use_id": "toolu_1",
    }
    return json.dumps(event).encode()


def _serve(path: str) -> None:
    """The cheapest possible service: what is measured is the hook."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 20)
                connection.sendall(ANSWER)


def _print_table(times_ms: dict[str, list[float]]) -> None:
    base_ms = next(iter(times_ms.values()))
    print("| | median ms | p95 ms | median ratio, round by round |")
    print("|---|---|---|---|")
    for name, samples_ms in times_ms.items():
        ratio = statistics.median(mine / base for mine, base in zip(samples_ms, base_ms, strict=True))
        p95_ms = statistics.quantiles(samples_ms, n=20)[-1]
        print(f"| {name} | {statistics.median(samples_ms):.1f} | {p95_ms:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
