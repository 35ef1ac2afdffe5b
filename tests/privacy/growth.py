"""How the time of a function grows with its input: in CPU time, as other work runs beside the tests."""

import time
from collections.abc import Callable

TIMES = 8
MOST = 3.5
"""Eight times the input takes eight times as long; 64 times would be quadratic."""
UNMEASURABLE_S = 0.002


def is_linear(work: Callable[[int], object], *, least: int) -> bool:
    work(least)  # what is loaded at first use
    small = max(min(_cost_s(work, least) for _ in range(3)), UNMEASURABLE_S)
    return _cost_s(work, least * TIMES) < small * TIMES * MOST


def _cost_s(work: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    work(size)
    return time.process_time() - began
