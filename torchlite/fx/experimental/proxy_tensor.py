"""Tracing by tensors: nothing is traced yet."""

from __future__ import annotations

from typing import Any

from .._later import later

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """The trace that is being recorded: none."""


def make_fx(f: Any, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: torchlite does not trace programs yet."""
    raise later("experimental.proxy_tensor.make_fx")
