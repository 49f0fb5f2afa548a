"""Metrics, their handlers by group, and a decorator that measures a function."""

from __future__ import annotations

import abc
import functools
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler",
    "configure", "getStream", "get_elapsed_time_ms", "prof", "profile", "publish_metric", "put_metric",
]  # fmt: skip


class MetricData(NamedTuple):
    """A value of a metric.

    Args:
        timestamp: The time, in seconds.
        group_name: The group.
        name: The name in the group.
        value: The value.

    Example:
        >>> from torchlite.distributed.elastic.metrics import MetricData
        >>> MetricData(1.5, "app", "steps", 3).value
        3
    """

    timestamp: float
    group_name: str
    name: str
    value: int


class MetricsConfig:
    """Parameters by name.

    Args:
        params: The parameters. Default: none.

    Example:
        >>> from torchlite.distributed.elastic.metrics import MetricsConfig
        >>> MetricsConfig({"rate": "1"}).params
        {'rate': '1'}
    """

    __slots__ = ("params",)

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Interface of an object that gets metrics.

    Example:
        >>> from torchlite.distributed.elastic.metrics import MetricHandler
        >>> sorted(MetricHandler.__abstractmethods__)
        ['emit']
    """

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Gets a value.

        Args:
            metric_data: The value.
        """


class ConsoleMetricHandler(MetricHandler):
    """Handler that prints metrics.

    Example:
        >>> from torchlite.distributed.elastic.metrics import ConsoleMetricHandler, MetricData
        >>> ConsoleMetricHandler().emit(MetricData(1.5, "app", "steps", 3))
        [1.5][app]: steps=3
    """

    def emit(self, metric_data: MetricData) -> None:
        """Prints a value.

        Args:
            metric_data: The value.
        """
        print(f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}={metric_data.value}")


class NullMetricHandler(MetricHandler):
    """Handler that drops metrics.

    Example:
        >>> from torchlite.distributed.elastic.metrics import MetricData, NullMetricHandler
        >>> NullMetricHandler().emit(MetricData(1.5, "app", "steps", 3))
    """

    def emit(self, metric_data: MetricData) -> None:
        """Drops a value.

        Args:
            metric_data: The value.
        """


class MetricStream:
    """The metrics of a group.

    Args:
        group_name: The group.
        handler: Gets the values.

    Example:
        >>> from torchlite.distributed.elastic.metrics import MetricStream, NullMetricHandler
        >>> MetricStream("app", NullMetricHandler()).add_value("steps", 3)
    """

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Gives the handler a value, with the present time.

        Args:
            metric_name: The name.
            metric_value: The value.
        """
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: dict[str | None, MetricHandler] = {None: NullMetricHandler()}  # by group; None: of the other groups


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Sets the handler of a group, or of all groups that have none.

    Args:
        handler: The handler.
        group: The group. Default: the others.

    Example:
        >>> from torchlite.distributed.elastic.metrics import NullMetricHandler, configure
        >>> configure(NullMetricHandler())
    """
    _handlers[group] = handler


def getStream(group: str) -> MetricStream:
    """Returns the metrics of a group.

    Args:
        group: The group.

    Example:
        >>> from torchlite.distributed.elastic.metrics import getStream
        >>> getStream("app").group_name
        'app'
    """
    return MetricStream(group, _handlers.get(group, _handlers[None]))


def _name_of(function: Callable[..., Any]) -> str:
    """Return the class and name of a method, or the module and name of a function."""
    if "." in function.__qualname__ or not function.__module__:
        return function.__qualname__
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def prof(fn: Callable[..., Any] | None = None, group: str = "torchelastic") -> Any:
    """Decorator: each call of a function gives metrics of its duration, and of its success or failure.

    Their names end in ``.duration.ms``, ``.success`` and ``.failure``.

    Args:
        fn: The function. Default: the decorator is returned.
        group: The group of the metrics. Default: "torchelastic".

    Example:
        >>> from torchlite.distributed.elastic.metrics import prof
        >>> @prof
        ... def twice(x):
        ...     return 2 * x
        >>> twice(3)
        6
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = _name_of(function)

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            began = time.time()
            try:
                result = function(*args, **kwargs)
            except Exception:
                put_metric(f"{name}.failure", 1, group)
                raise
            finally:
                put_metric(f"{name}.duration.ms", get_elapsed_time_ms(began), group)
            put_metric(f"{name}.success", 1, group)
            return result

        return measured

    return decorate if fn is None else decorate(fn)


def profile(group: str | None = None) -> Callable[..., Any]:
    """The former name of `prof`, with the group alone.

    Args:
        group: The group. Default: "torchelastic".

    Example:
        >>> import warnings
        >>> from torchlite.distributed.elastic.metrics import profile
        >>> with warnings.catch_warnings(record=True) as found:
        ...     warnings.simplefilter("always")
        ...     _ = profile("app")
        >>> found[0].category.__name__
        'FutureWarning'
    """
    warnings.warn("Deprecated, use `@prof` instead", FutureWarning, stacklevel=2)
    return prof(group="torchelastic" if group is None else group)  # type: ignore[no-any-return]


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Gives the handler of a group a value.

    Args:
        metric_name: The name.
        metric_value: The value.
        metric_group: The group. Default: "torchelastic".

    Example:
        >>> from torchlite.distributed.elastic.metrics import put_metric
        >>> put_metric("steps", 3, "app")
    """
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """The former name of `put_metric`, with the group first.

    Args:
        metric_group: The group.
        metric_name: The name.
        metric_value: The value.

    Example:
        >>> import warnings
        >>> from torchlite.distributed.elastic.metrics import publish_metric
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     publish_metric("app", "steps", 3)
    """
    warnings.warn("Deprecated, use put_metric(metric_group)(metric_name, metric_value) instead", FutureWarning,
                  stacklevel=2)  # fmt: skip
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Returns the milliseconds since a time of `time.time`.

    Args:
        start_time_in_seconds: The time.

    Example:
        >>> import time
        >>> from torchlite.distributed.elastic.metrics import get_elapsed_time_ms
        >>> get_elapsed_time_ms(time.time() - 2) >= 2000
        True
    """
    return int((time.time() - start_time_in_seconds) * 1000)
