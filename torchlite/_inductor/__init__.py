"""Names of PyTorch's own compiler, which programs set and ask: torchlite's stands in `torchlite._dynamo`."""

from __future__ import annotations

import importlib
from typing import Any

from .._dynamo.compile_options import MODES, option_types

__all__ = ["compile", "list_mode_options", "list_options"]
_MODULES = (
    "compile_fx", "config", "constant_folding", "custom_graph_pass", "decomposition", "freezing_utils", "fx_passes",
    "ir", "lowering", "pattern_matcher", "utils", "virtualized",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def compile(gm: Any, example_inputs: list[Any], options: dict[str, Any] | None = None) -> Any:
    """A function that computes a graph module, compiled with `options` as `torch.compile` takes them.

    >>> import torchlite as torch
    >>> graph = torch.fx.symbolic_trace(lambda x: x + 1)
    >>> torch._inductor.compile(graph, [torch.ones(2)])(torch.ones(2))
    tensor([2., 2.])
    """
    from .._dynamo.eval_frame import compile

    return compile(gm.forward, options=options)


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """Return the options of each `mode` of `torch.compile`, or of one.

    >>> torchlite._inductor.list_mode_options("reduce-overhead")
    {'triton.cudagraphs': True}
    """
    return dict(MODES[mode]) if mode else {name: dict(found) for name, found in MODES.items()}


def list_options() -> list[str]:
    """The names that `options` of `torch.compile` may have."""
    return list(option_types())
