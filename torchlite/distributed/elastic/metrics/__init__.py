"""Metrics of agents: numbers with names, which a handler gets by their group.

Without `configure` nobody gets them.
"""

from __future__ import annotations

from . import api as api
from .api import (
    ConsoleMetricHandler,
    MetricData,
    MetricHandler,
    MetricsConfig,
    MetricStream,
    NullMetricHandler,
    configure,
    get_elapsed_time_ms,
    getStream,
    prof,
    profile,
    publish_metric,
    put_metric,
)

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler",
    "configure", "getStream", "get_elapsed_time_ms", "initialize_metrics", "prof", "profile", "publish_metric",
    "put_metric",
]  # fmt: skip


def initialize_metrics(cfg: MetricsConfig | None = None) -> None:
    """Does nothing: programs call `configure`.

    Args:
        cfg: Has no effect.

    Example:
        >>> from torchlite.distributed.elastic.metrics import initialize_metrics
        >>> initialize_metrics()
    """
