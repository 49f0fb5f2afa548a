"""Counts and times of one model: what the protocol's statistics answer."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

STAGES = ("queue", "compute_input", "compute_infer", "compute_output")


@dataclass
class StageTimes:
    """Seconds that a batch spent in each stage of a model's call."""

    compute_input: float = 0.0
    compute_infer: float = 0.0
    compute_output: float = 0.0

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return self.compute_input + self.compute_infer + self.compute_output


@dataclass
class Duration:
    """How often something happened, and its nanoseconds in all."""

    count: int = 0
    ns: int = 0

    def add(self, seconds: float, count: int = 1) -> None:
        """Count `count` events that took `seconds` each."""
        self.count += count
        self.ns += int(seconds * 1e9) * count

    def describe(self) -> dict[str, int]:
        """Return the protocol's object."""
        return {"count": self.count, "ns": self.ns}


@dataclass
class Statistics:
    """Counts of one version of a model. Only the event loop changes them."""

    last_inference: int = 0  # milliseconds since 1970
    inference_count: int = 0
    execution_count: int = 0
    success: Duration = field(default_factory=Duration)
    fail: Duration = field(default_factory=Duration)
    stages: dict[str, Duration] = field(default_factory=lambda: {stage: Duration() for stage in STAGES})
    batches: dict[int, dict[str, Duration]] = field(
        default_factory=lambda: defaultdict(lambda: {stage: Duration() for stage in STAGES[1:]})
    )

    def add_batch(self, rows: int, requests: int, times: StageTimes) -> None:
        """Count a call of the model for a number of requests, with `rows` rows in all."""
        self.last_inference = int(time.time() * 1000)
        self.inference_count += rows
        self.execution_count += 1
        for stage in STAGES[1:]:
            seconds = getattr(times, stage)
            self.stages[stage].add(seconds, requests)
            self.batches[rows][stage].add(seconds)

    def describe(self, name: str, version: str) -> dict[str, Any]:
        """Return the protocol's object of a model."""
        stages = {stage: self.stages[stage].describe() for stage in STAGES}
        none = Duration().describe()
        return {
            "name": name,
            "version": version,
            "last_inference": self.last_inference,
            "inference_count": self.inference_count,
            "execution_count": self.execution_count,
            "inference_stats": {
                "success": self.success.describe(), "fail": self.fail.describe(), **stages, "cache_hit": none,
                "cache_miss": none,
            },
            "response_stats": {},
            "batch_stats": [
                {"batch_size": rows, **{stage: found.describe() for stage, found in stages.items()}}
                for rows, stages in sorted(self.batches.items())
            ],
            "memory_usage": [],
        }  # fmt: skip
