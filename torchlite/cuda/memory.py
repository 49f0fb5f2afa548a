"""The memory of CUDA devices: allocated and reserved amounts, limits, pinned host memory."""

from __future__ import annotations

import collections
from typing import Any

from .._dispatch.backend import OutOfMemoryError
from ._accelerator import cuda, runtime_of

__all__ = [
    "OutOfMemoryError", "empty_cache", "get_per_process_memory_fraction", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip

memory_stats, mem_get_info, empty_cache = cuda.memory_stats, cuda.mem_get_info, cuda.empty_cache
memory_allocated, max_memory_allocated = cuda.memory_allocated, cuda.max_memory_allocated
memory_reserved, max_memory_reserved = cuda.memory_reserved, cuda.max_memory_reserved
reset_peak_memory_stats, reset_accumulated_memory_stats = (
    cuda.reset_peak_memory_stats,
    cuda.reset_accumulated_memory_stats,
)
_fractions: dict[int, float] = {}


def memory_cached(device: Any = None) -> int:
    """Returns `memory_reserved`, its newer name.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> torch.cuda.memory_cached() == torch.cuda.memory_reserved()
        True
    """
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """Returns `max_memory_reserved`, its newer name.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> torch.cuda.max_memory_cached() == torch.cuda.max_memory_reserved()
        True
    """
    return max_memory_reserved(device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """Calls `reset_peak_memory_stats`: resets all peaks.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.reset_max_memory_allocated()
    """
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """Calls `reset_peak_memory_stats`: resets all peaks.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.reset_max_memory_cached()
    """
    reset_peak_memory_stats(device)


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Returns `memory_stats` with a dictionary for each part of a name: ``["allocated_bytes"]["all"]["peak"]``.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> torch.cuda.is_initialized() or torch.cuda.memory_stats_as_nested_dict() == {}
        True
    """
    out: dict[str, Any] = {}
    for name, count in memory_stats(device).items():
        *path, last = name.split(".")
        inner = out
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = count
    return out


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limits this process's tensors to a fraction of the device's memory.

    An allocation beyond it raises `OutOfMemoryError`.

    Args:
        fraction: The fraction, a float in [0, 1]; 1 removes the limit.
        device: The device. Default: the current one.

    Raises:
        TypeError: ``fraction`` is not a float.
        ValueError: ``fraction`` is out of range.
        RuntimeError: There is no such device.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_per_process_memory_fraction(1.0)
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = cuda.index(device)
    runtime = runtime_of(index, "limit of memory", "set_memory_limit")
    runtime.set_memory_limit(0 if fraction == 1 else max(int(fraction * runtime.mem_get_info()[1]), 1))
    _fractions[index] = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Returns the fraction that `set_per_process_memory_fraction` set; 1.0 at the start.

    Args:
        device: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.cuda.is_available():
        ...     fraction = torch.cuda.get_per_process_memory_fraction()
    """
    index = cuda.index(device)
    cuda.runtime(index)
    return _fractions.get(index, 1.0)


def _format_bytes(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if abs(n) < 10240:
            return f"{n:.0f} {unit}"
        n /= 1024
    return f"{n:.0f} GiB"


_ROWS = {
    "allocated_bytes": "Allocated memory",
    "active_bytes": "Active memory",
    "requested_bytes": "Requested memory",
    "reserved_bytes": "GPU reserved memory",
    "inactive_split_bytes": "Non-releasable memory",
    "allocation": "Allocations",
    "active": "Active allocs",
    "inactive": "Inactive allocs",
    "segment": "GPU reserved segments",
}
_COLUMNS = {"current": "Cur Usage", "peak": "Peak Usage", "allocated": "Tot Alloc", "freed": "Tot Freed"}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Returns the allocator's statistics as a table of text; "-" stands for a count that the backend lacks.

    Args:
        device: The device. Default: the current one.
        abbreviated: Whether small and large blocks are left out. Default: ``False``.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> text = torch.cuda.memory_summary() if torch.cuda.is_available() else ""
    """
    index = cuda.index(device)
    cuda.runtime(index)
    stats: dict[str, int | None] = collections.defaultdict(lambda: None, memory_stats(index))  # type: ignore[arg-type]
    rule = "|" + "=" * 75 + "|"
    failures = [
        f"{word}: {stats[name] or 0}" for word, name in (("OOMs", "num_ooms"), ("retries", "num_alloc_retries"))
    ]
    lines = [
        rule,
        f"|{f'CUDA memory summary, device ID {index}':^75}|",
        "|" + "|".join(f"{text:^37}" for text in failures) + "|",
        rule,
        f"|{' Metric':<23}|" + "|".join(f" {title:<11}" for title in _COLUMNS.values()) + "|",
    ]
    pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    for key, title in _ROWS.items():
        for pool in pools:
            counts = [stats[f"{key}.{pool}.{column}"] for column in _COLUMNS]
            if counts != [None] * 4:
                shown = ["-" if n is None else _format_bytes(n) if "bytes" in key else str(n) for n in counts]
                name = title if pool == "all" else f"  from {pool.replace('_', ' ')}"
                lines.append(f"| {name:<22}|" + "|".join(f" {text:>10} " for text in shown) + "|")
    return "\n".join([*lines, rule]) + "\n"
