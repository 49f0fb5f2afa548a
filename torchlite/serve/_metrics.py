"""Figures for Prometheus: `/metrics`."""

from __future__ import annotations

import functools
import importlib.util
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from ._statistics import STAGES, StageTimes

if importlib.util.find_spec("prometheus_client") is None:  # it is imported at the first request, for a short start
    raise ImportError("No module named 'prometheus_client'", name="prometheus_client")

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class _Figure:
    """A number of a counter or gauge."""

    def __init__(self) -> None:
        self._value = 0.0

    def inc(self) -> None:
        """Add one."""
        self._value += 1

    def set(self, value: float) -> None:
        """Take a value."""
        self._value = value

    def describe(self) -> tuple[float]:
        """Return the number."""
        return (self._value,)


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


class _Family:
    """Figures of one name by their labels. The event loop counts them, so they have no locks as prometheus-client's do.

    `kind` is "Counter", "Gauge" or "Histogram".
    """

    def __init__(self, kind: str, name: str, about: str, labels: tuple[str, ...], make: Callable[[], Any]) -> None:
        self._kind, self._about, self._make = kind, (name, about, labels), make
        self._found: dict[tuple[str, ...], Any] = {}

    def labels(self, *values: str) -> Any:
        """Return the figure of some labels."""
        return self._found.get(values) or self._found.setdefault(values, self._make())

    def clear(self) -> None:
        """Forget all figures."""
        self._found.clear()

    def collect(self) -> Iterator[Any]:
        """Yield what prometheus-client writes."""
        from prometheus_client import core

        name, about, labels = self._about
        family = getattr(core, f"{self._kind}MetricFamily")(name, about, labels=labels)
        for values, figure in list(self._found.items()):  # a handler's thread may add one
            family.add_metric(values, *figure.describe())
        yield family


class Metrics:
    """The figures of one server. Memory, processor time and open files of the process are among them."""

    def __init__(self) -> None:
        self._families: list[_Family] = []
        by_model = ("model", "version")
        counter = functools.partial(self._add, "Counter", make=_Figure)
        gauge = functools.partial(self._add, "Gauge", make=_Figure)
        seconds = functools.partial(self._add, "Histogram", make=lambda: _Counts(_SECONDS))
        self.requests = counter(
            "torchlite_requests", "Inference requests by protocol and status", (*by_model, "protocol", "status")
        )
        self.seconds = seconds("torchlite_request_seconds", "Time from a request's arrival to its answer", by_model)
        self.stage_seconds = seconds(
            "torchlite_stage_seconds", "Time in the queue, and of a model's stages", (*by_model, "stage")
        )
        self.batch_rows = self._add(
            "Histogram", "torchlite_batch_rows", "Rows of a model's call", by_model, lambda: _Counts(_ROWS)
        )
        self.errors = counter("torchlite_errors", "Failed requests by their reason", ("model", "reason"))
        self.queue = gauge("torchlite_queue_length", "Requests that wait", by_model)
        self.running = gauge("torchlite_calls_running", "Calls of a model that run", by_model)
        self.ready = gauge("torchlite_ready", "1 while the server is ready", ())
        self.workers = gauge("torchlite_workers", "Worker processes", by_model)
        self.worker_deaths = counter(
            "torchlite_worker_deaths", "Worker processes that ended, or did not start, and were replaced", by_model
        )
        self.worker_memory = gauge(
            "torchlite_workers_memory_bytes", "Memory of a model's processes; shared pages count once", by_model
        )
        self.handler = gauge(
            "torchlite_handler_figure", "Last value of a handler's own figure", ("model", "name", "unit")
        )

    def _add(self, kind: str, name: str, about: str, labels: tuple[str, ...], make: Callable[[], Any]) -> _Family:
        self._families.append(_Family(kind, name, about, labels, make))
        return self._families[-1]

    @property
    def content_type(self) -> str:
        """The media type of what `render` returns."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST

        return CONTENT_TYPE_LATEST

    @functools.cached_property
    def _registry(self) -> Any:
        from prometheus_client import CollectorRegistry
        from prometheus_client.gc_collector import GCCollector
        from prometheus_client.platform_collector import PlatformCollector
        from prometheus_client.process_collector import ProcessCollector

        registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        for family in self._families:
            registry.register(family)  # type: ignore[arg-type]
        return registry

    def count_batch(self, name: str, version: str, rows: int, waited: Sequence[float], times: StageTimes) -> None:
        """Count a call of a model; `waited` are the seconds that its requests waited."""
        queue = self.stage_seconds.labels(name, version, "queue")
        for seconds in waited:
            queue.observe(seconds)
        for stage in STAGES[1:]:
            self.stage_seconds.labels(name, version, stage).observe(getattr(times, stage))
        self.batch_rows.labels(name, version).observe(rows)

    def count_request(self, name: str, version: str, protocol: str, status: int | str, seconds: float) -> None:
        """Count an answered request of a loaded model."""
        self.requests.labels(name, version, protocol, str(status)).inc()
        self.seconds.labels(name, version).observe(seconds)

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
        self.ready.labels().set(ready)
        from prometheus_client import generate_latest

        return generate_latest(self._registry)
