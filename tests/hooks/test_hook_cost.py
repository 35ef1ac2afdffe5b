"""The price of a hook process, measured in pairs by the benchmark that the documentation quotes."""

import json
import subprocess
import sys

import pytest

from tests.hooks.hook_process import ROOT

RATIO_MAX = 2.5  # against the same interpreter doing nothing

ORDINARY = {
    "session_id": "s",
    "tool_input": {"command": "make test | grep -c key"},
    "tool_response": {"stdout": "3 passed, 1 failed\nfunc Token(key string) (author *User)\n\x1b[1mpassword: string"},
}


def test_to_see_that_an_ordinary_event_holds_no_secret_a_hook_loads_neither_a_parser_nor_regular_expressions() -> None:
    program = f"""import sys
sys.path.append({str(ROOT)!r})
from hooks.secrets import may_hold_secret
print(may_hold_secret(sys.stdin.buffer.read()), [name for name in ("re", "json") if name in sys.modules])"""
    event = json.dumps(ORDINARY).encode()
    told = subprocess.run([sys.executable, "-I", "-S", "-c", program], input=event, capture_output=True, check=True)
    assert told.stdout.split() == [b"False", b"[]"]


@pytest.mark.slow
def test_a_hook_costs_little_more_than_its_interpreter_whether_the_service_is_up_or_down() -> None:
    benchmark = [sys.executable, str(ROOT / "benchmarks" / "hook_cost.py"), "15"]
    table = subprocess.run(benchmark, capture_output=True, text=True, check=True).stdout
    ratios = [float(row.rstrip(" |").rpartition(" ")[2]) for row in table.splitlines()[2:]]
    assert len(ratios) == 3, table
    assert max(ratios) <= RATIO_MAX, table
