"""The names of PyTorch's module of the processor."""

from __future__ import annotations

from typing import Any

from ..cpu._capabilities import cpu_capability


def _get_cpu_capability() -> dict[str, Any]:
    """Return what the processor has, by PyTorch's names."""
    return dict(cpu_capability())


def _init_amx() -> bool:
    """Return whether the process may use AMX: False, as no kernel here does."""
    return False
