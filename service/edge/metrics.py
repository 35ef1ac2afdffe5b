"""`/metrics` in the Prometheus text format: the queue from the database, the rest from this process."""

import asyncio
import importlib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from starlette.responses import Response

from service.edge.operations import Call, Nothing
from service.edge.traffic import SECONDS, Latencies, Traffic

Family = Any
"""A metric family of prometheus_client."""


async def metrics(call: Call[Nothing, Nothing]) -> object:
    queue = await call.edge.core.queue()
    # here and not above: it is imported for the first scrape, not for a start
    client = await asyncio.to_thread(importlib.import_module, "prometheus_client")
    core = importlib.import_module("prometheus_client.core")
    registry = client.CollectorRegistry()
    registry.register(_Snapshot([*_of_queue(core, queue), *_of_process(core, call.edge.traffic)]))
    return Response(client.generate_latest(registry), media_type=client.CONTENT_TYPE_LATEST)


class _Snapshot:
    """A custom collector: the families of one scrape."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        yield from self._families


def _of_queue(core: Any, queue: dict[str, Any]) -> Iterator[Family]:
    states = core.GaugeMetricFamily("gapless_messages", "Messages by state.", labels=["state"])
    for state, number in queue["states"].items():
        states.add_metric([state], number)
    yield states
    yield core.CounterMetricFamily("gapless_accepted", "Messages ever accepted.", sum(queue["states"].values()))
    oldest = queue["oldest_pending_age_s"] or 0
    yield core.GaugeMetricFamily("gapless_oldest_pending_age_seconds", "Age of the oldest unfinished message.", oldest)
    skipped = core.CounterMetricFamily("gapless_not_queued", "Events that left no row.", labels=["reason"])
    for reason, number in queue["not_queued"].items():
        skipped.add_metric([reason], number)
    yield skipped
    yield core.GaugeMetricFamily("gapless_paused", "1 while nothing is compressed.", int(queue["paused"] is not None))
    yield core.GaugeMetricFamily("gapless_spool_files", "Events that hooks had to spool.", queue["spool"])
    yield core.GaugeMetricFamily("gapless_rejected_files", "Events set aside as unreadable.", queue["rejected"])
    index = queue["index"]
    yield core.GaugeMetricFamily("gapless_index_lag", "Records that wait for the vector index.", index["lag"])
    yield core.GaugeMetricFamily("gapless_index_gaps", "Records the vector index failed on.", index["gaps"])
    yield core.GaugeMetricFamily("gapless_index_given_up", "… that are not tried again.", index["given_up"])
    failures = index["failing"]["failures"] if index["failing"] else 0
    yield core.GaugeMetricFamily("gapless_index_failures", "Failures of the vector index, in a row.", failures)
    budget = queue["budget"]
    for unit in ("calls", "tokens"):
        yield core.GaugeMetricFamily(f"gapless_spent_today_{unit}", f"Model {unit} of this UTC day.", budget[unit])
        limit = budget[f"daily_{unit}"]
        yield core.GaugeMetricFamily(f"gapless_budget_{unit}", f"Model {unit} allowed a day, 0 = no limit.", limit)


def _of_process(core: Any, traffic: Traffic) -> Iterator[Family]:
    yield core.CounterMetricFamily("gapless_completed", "Messages that came to an end here.", traffic.completed)
    events = core.CounterMetricFamily("gapless_events", "Events taken here, by receipt.", labels=["status"])
    for status, number in traffic.events.items():
        events.add_metric([status], number)
    yield events
    latency = core.HistogramMetricFamily(
        "gapless_request_seconds", "Time until an answer began.", labels=["method", "status"]
    )
    for (method, code), latencies in traffic.requests.items():
        latency.add_metric([method, str(code)], _buckets(latencies), sum_value=latencies.total_s)
    yield latency


def _buckets(latencies: Latencies) -> list[tuple[str, int]]:
    """Cumulative, as Prometheus wants them."""
    bounds = [*(str(bound) for bound in SECONDS), "+Inf"]
    return list(zip(bounds, accumulate(latencies.counts), strict=True))
