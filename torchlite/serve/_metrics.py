"""Figures for Prometheus: `/metrics`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from ._statistics import STAGES, StageTimes

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class _Counts:
    """How many values lie below each bound, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._counts, self._sum = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def describe(self) -> tuple[list[tuple[str, float]], float]:
        """Return the bounds with the numbers of values up to them, and the sum."""
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True)), self._sum


class _Histogram:
    """A histogram that one thread counts, in a tenth of the time of prometheus-client's, which takes locks."""

    def __init__(
        self, name: str, about: str, labels: tuple[str, ...], bounds: tuple[float, ...], registry: CollectorRegistry
    ) -> None:
        self._about, self._bounds = (name, about, labels), bounds
        self._found: dict[tuple[str, ...], _Counts] = {}
        registry.register(self)  # type: ignore[arg-type]

    def labels(self, *values: str) -> _Counts:
        """Return the counts of some labels."""
        return self._found.setdefault(values, _Counts(self._bounds))

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield what prometheus-client writes."""
        name, about, labels = self._about
        family = HistogramMetricFamily(name, about, labels=labels)
        for values, counts in self._found.items():
            family.add_metric(values, *counts.describe())
        yield family


class Metrics:
    """The figures of one server. Memory, processor time and open files of the process are among them."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[Any, ...], Any] = {}
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        by_model = ("model", "version")
        self.requests = Counter(
            "torchlite_requests", "Inference requests by protocol and status", (*by_model, "protocol", "status"),
            registry=self.registry,
        )  # fmt: skip
        self.seconds = _Histogram(
            "torchlite_request_seconds", "Time from a request's arrival to its answer", by_model, _SECONDS,
            self.registry,
        )  # fmt: skip
        self.stage_seconds = _Histogram(
            "torchlite_stage_seconds", "Time in the queue, and of a model's stages", (*by_model, "stage"), _SECONDS,
            self.registry,
        )  # fmt: skip
        self.batch_rows = _Histogram(
            "torchlite_batch_rows", "Rows of a model's call", by_model, _ROWS, self.registry
        )  # fmt: skip
        self.errors = Counter(
            "torchlite_errors", "Failed requests by their reason", ("model", "reason"), registry=self.registry
        )
        self.queue = Gauge("torchlite_queue_length", "Requests that wait", by_model, registry=self.registry)
        self.running = Gauge("torchlite_calls_running", "Calls of a model that run", by_model, registry=self.registry)
        self.ready = Gauge("torchlite_ready", "1 while the server is ready", registry=self.registry)
        self.workers = Gauge("torchlite_workers", "Worker processes", by_model, registry=self.registry)
        self.worker_deaths = Counter(
            "torchlite_worker_deaths", "Worker processes that ended, or did not start, and were replaced", by_model,
            registry=self.registry,
        )  # fmt: skip
        self.worker_memory = Gauge(
            "torchlite_workers_memory_bytes", "Memory of a model's processes; shared pages count once", by_model,
            registry=self.registry,
        )  # fmt: skip
        self.handler = Gauge(
            "torchlite_handler_figure", "Last value of a handler's own figure", ("model", "name", "unit"),
            registry=self.registry,
        )  # fmt: skip

    def _child(self, family: Any, *labels: str) -> Any:
        """Return the figure of some labels. prometheus-client takes longer to find it than to count."""
        key = (family, *labels)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = family.labels(*labels)
        return found

    def count_batch(self, name: str, version: str, rows: int, waited: Sequence[float], times: StageTimes) -> None:
        """Count a call of a model; `waited` are the seconds that its requests waited."""
        queue = self._child(self.stage_seconds, name, version, "queue")
        for seconds in waited:
            queue.observe(seconds)
        for stage in STAGES[1:]:
            self._child(self.stage_seconds, name, version, stage).observe(getattr(times, stage))
        self._child(self.batch_rows, name, version).observe(rows)

    def count_request(self, name: str, version: str, protocol: str, status: int | str, seconds: float) -> None:
        """Count an answered request of a loaded model."""
        self._child(self.requests, name, version, protocol, str(status)).inc()
        self._child(self.seconds, name, version).observe(seconds)

    def recorder(self, model: str) -> Callable[[str, float, str], None]:
        """Return the function by which a handler records figures."""
        return lambda name, value, unit: self.handler.labels(model, str(name), str(unit)).set(float(value))

    async def render(self, entries: Sequence[Any], ready: bool) -> bytes:
        """Return the text for Prometheus. `entries` are the loaded versions, whose queues are read now."""
        memory = {(e.name, e.version): await e.workers.memory() for e in entries if e.workers is not None}
        for gauge in (self.queue, self.running, self.workers, self.worker_memory):
            gauge.clear()
        for entry in entries:
            if entry.workers is not None:
                self.workers.labels(entry.name, entry.version).set(len(entry.workers.processes))
                self.worker_memory.labels(entry.name, entry.version).set(memory[entry.name, entry.version])
            self.queue.labels(entry.name, entry.version).set(entry.scheduler.queue_length)
            self.running.labels(entry.name, entry.version).set(entry.scheduler.in_flight)
        self.ready.set(ready)
        return generate_latest(self.registry)
