"""Tracing: the names of `torch.jit` that are there before a program is traced."""

from __future__ import annotations

import functools
from typing import Any

from ._state import STATE

__all__ = ["is_tracing", "trace", "trace_module"]


def is_tracing() -> bool:
    """Whether the function that calls this is being traced."""
    return STATE.recorder is not None


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The program of what a function or module does with example inputs: `torch.jit.trace`.

    func: a function or Module. example_inputs: a tensor or a tuple of inputs. check_trace: whether the program is
    compared with another run (a TracerWarning where they differ). strict: whether lists and dicts are refused as
    outputs.
    Values that Python reads of tensors are as they were for the example, with a TracerWarning; sizes are asked of the
    inputs. RuntimeError for inputs and outputs that no program has.
    """
    from . import _trace_to_script

    return _trace_to_script.trace(func, example_inputs, *args, **kwargs)


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """As `trace`, for several methods of a module: `inputs` has example inputs by the methods' names."""
    from . import _trace_to_script

    return _trace_to_script.trace_module(mod, inputs, *args, **kwargs)


def _script_if_tracing(fn: Any) -> Any:
    """A function that would be scripted when it is first traced."""

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
    """A run of a module or function as a graph of operators, and what it gave: for tools that count them.

    The graph has `nodes()`, `inputs()` and `outputs()`; a node its `kind()`, such as "aten::linear", the `scopeName()`
    that hooks pushed on `torch._C._get_tracing_state()`, and values with types. return_inputs: also the inputs.
    """
    from . import _trace_graph

    return _trace_graph.trace_graph(f, args, kwargs, return_inputs or _return_inputs_states)
