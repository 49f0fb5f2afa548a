"""Decorators of symbolic functions: parse_args, quantized_args."""

from __future__ import annotations

import functools
from typing import Any

from torchlite._settings.module_dir import make_module_dir

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors: str) -> Any:
    """Return a decorator that declares the kind of each argument: "v" a value, "i" an integer, "none" nothing …"""

    def decorator(fn: Any) -> Any:
        fn._arg_descriptors = arg_descriptors
        return fn

    return decorator


def quantized_args(
    *arg_q_descriptors: bool, scale: Any = None, zero_point: Any = None, quantize_output: bool = True
) -> Any:
    """Return a decorator that declares quantized arguments.

    `arg_q_descriptors`, `scale`, `zero_point` and `quantize_output` have no effect: there are no quantised tensors.
    """

    def decorator(fn: Any) -> Any:
        @functools.wraps(fn)
        def wrapper(g: Any, *args: Any, **kwargs: Any) -> Any:
            return fn(g, *args, **kwargs)

        return wrapper

    return decorator


__dir__ = make_module_dir(globals())
