"""The source of compiled programs: `torch._inductor.utils.run_and_get_code`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dynamo.compiled_function import reset
from .._settings.compiler_state import THREAD_STATE

__all__ = ["run_and_get_code"]


def run_and_get_code(fn: Callable, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """Call a function once, and collect the sources of the programs that `torch.compile` makes in this call.

    `torch._dynamo.reset()` is called first, so everything is compiled anew. A program is Python source in torchlite.
    It calls the kernels of the function's ops, and it has the name of the compiled function.

    Args:
        fn: A compiled function, or a function that calls some.
        *args: Its arguments.
        **kwargs: Its keyword arguments.

    Returns:
        The function's result, and a list of sources: one for each different program.

    Example:
        >>> import torchlite as torch
        >>> result, (source,) = torch._inductor.utils.run_and_get_code(torch.compile(torch.exp), torch.zeros(2))
        >>> result, source.startswith("def exp(")
        (tensor([1., 1.]), True)
    """
    before, THREAD_STATE.programs = THREAD_STATE.programs, []
    try:
        reset()
        result = fn(*args, **kwargs)
        return result, list(dict.fromkeys(THREAD_STATE.programs))
    finally:
        THREAD_STATE.programs = before
