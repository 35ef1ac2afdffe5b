"""The price of a hook process, measured in pairs by the benchmark that the documentation quotes."""

import subprocess
import sys

import pytest
from hook_process import ROOT

RATIO_MAX = 2.5  # against the same interpreter doing nothing


@pytest.mark.slow
def test_a_hook_costs_little_more_than_its_interpreter_whether_the_service_is_up_or_down() -> None:
    benchmark = [sys.executable, str(ROOT / "benchmarks" / "hook_cost.py"), "15"]
    table = subprocess.run(benchmark, capture_output=True, text=True, check=True).stdout
    ratios = [float(row.rstrip(" |").rpartition(" ")[2]) for row in table.splitlines()[2:]]
    assert len(ratios) == 3, table
    assert max(ratios) <= RATIO_MAX, table
