"""Public entry points of tracing: trace, trace_module, is_tracing. Implementations load on first use."""

from __future__ import annotations

import functools
from typing import Any

from .._settings.jit_state import STATE

__all__ = ["is_tracing", "trace", "trace_module"]


def is_tracing() -> bool:
    """Returns whether the calling function is being traced by `torch.jit.trace`.

    Example:
        >>> torch.jit.is_tracing()
        False
    """
    return STATE.recorder is not None


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Runs a function or module on example inputs and returns the recorded ops as a program.

    Values that Python reads from tensors (`if x.sum() > 0`) become constants of the example, with a TracerWarning.
    Sizes stay dynamic.

    Args:
        func: A function or module.
        example_inputs: A tensor, or a tuple of inputs.
        *args: Further arguments in PyTorch's order: ``optimize`` (deprecated), ``check_trace``, ….
        **kwargs: ``check_trace`` (default ``True``) compares with a second run and gives a TracerWarning where it
            differs by more than ``check_tolerance`` (default 1e-5). ``check_inputs`` is a list of further inputs for
            that. ``strict`` (default ``True``) refuses lists and dicts as outputs. ``example_kwarg_inputs`` is a dict
            of inputs by name.

    Returns:
        A `ScriptFunction`, or a `ScriptModule` for a module.

    Raises:
        RuntimeError: An input or output is of an unsupported type.

    Example:
        >>> double = torch.jit.trace(lambda x: x * 2, torch.ones(2))
        >>> double(torch.arange(3.0))
        tensor([0., 2., 4.])

    See also:
        `torch.jit.script`, `torch.jit.trace_module`.
    """
    from . import _trace_to_script

    return _trace_to_script.trace(func, example_inputs, *args, **kwargs)


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Traces several methods of a module.

    Args:
        mod: A module.
        inputs: Example inputs by the name of the method.
        *args: Further arguments in PyTorch's order.
        **kwargs: Those of `trace`, and ``example_inputs_is_kwarg``, whether the values of ``inputs`` are dicts of
            inputs by name.

    Returns:
        A `ScriptModule`.

    Raises:
        AttributeError: ``mod`` is no module, or ``inputs`` is no dict.

    Example:
        >>> class Scaled(torch.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        ...     def undo(self, x):
        ...         return x / 2
        >>> traced = torch.jit.trace_module(Scaled(), {"forward": torch.ones(2), "undo": torch.ones(2)})
        >>> traced.undo(torch.ones(2))
        tensor([0.5000, 0.5000])
    """
    from . import _trace_to_script

    return _trace_to_script.trace_module(mod, inputs, *args, **kwargs)


def _script_if_tracing(fn: Any) -> Any:
    """Returns a function that calls the function; PyTorch scripts it at the first traced call.

    Args:
        fn: A function.

    Example:
        >>> @torch.jit.script_if_tracing
        ... def double(x):
        ...     return 2 * x
        >>> double(torch.ones(2))
        tensor([2., 2.])
    """

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
