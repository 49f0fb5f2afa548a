"""Public entry points of tracing: trace, trace_module, is_tracing. Implementations load on first use."""

from __future__ import annotations

import functools
from typing import Any

from .._settings.jit_state import STATE

__all__ = ["is_tracing", "trace", "trace_module"]


def is_tracing() -> bool:
    """True if the calling function is being traced."""
    return STATE.recorder is not None


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the program of a function's or module's run on example inputs: `torch.jit.trace`.

    func: a function or Module. example_inputs: a tensor or tuple of inputs. check_trace: compare with a second run and
    give a TracerWarning if they differ. strict: refuse lists and dictionaries as outputs.
    Values that Python reads from tensors become constants, with a TracerWarning; sizes stay dynamic. Raise RuntimeError
    for unsupported inputs and outputs.
    """
    from . import _trace_to_script

    return _trace_to_script.trace(func, example_inputs, *args, **kwargs)


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Trace several methods of a module: `inputs` has example inputs by method name."""
    from . import _trace_to_script

    return _trace_to_script.trace_module(mod, inputs, *args, **kwargs)


def _script_if_tracing(fn: Any) -> Any:
    """Return the function; PyTorch scripts it at the first traced call."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: Any = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> Any:
    """Return a run of a module or function as an operator graph, and its outputs, for tools that count operators.

    The graph has `nodes()`, `inputs()` and `outputs()`. A node has `kind()`, such as "aten::linear", typed values, and
    `scopeName()`, set by hooks on `torch._C._get_tracing_state()`. return_inputs: also return the inputs.
    """
    from . import _trace_graph

    return _trace_graph.trace_graph(f, args, kwargs, return_inputs or _return_inputs_states)
