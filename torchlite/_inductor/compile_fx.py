"""The compiler as a backend of others."""

from __future__ import annotations

from typing import Any

from . import compile

__all__ = ["compile_fx"]


def compile_fx(
    model_: Any, example_inputs_: Any, *, config_patches: dict[str, Any] | None = None, **others: Any
) -> Any:
    """A function that computes a graph module: `torch._inductor.compile`."""
    return compile(model_, list(example_inputs_), config_patches)
