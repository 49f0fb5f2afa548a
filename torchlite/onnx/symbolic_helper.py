"""What functions that describe an op for ONNX are marked with."""

from __future__ import annotations

import functools
from typing import Any

from .errors import SymbolicValueError

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors: str) -> Any:
    """A decorator that says of which kind each argument is: "v" a value, "i" an integer, "none" nothing …"""

    def decorator(fn: Any) -> Any:
        fn._arg_descriptors = arg_descriptors
        return fn

    return decorator


def quantized_args(
    *arg_q_descriptors: bool, scale: Any = None, zero_point: Any = None, quantize_output: bool = True
) -> Any:
    """A decorator that says which arguments may be quantised. `arg_q_descriptors`, `scale`, `zero_point` and
    `quantize_output` have no effect: there are no quantised tensors.
    """

    def decorator(fn: Any) -> Any:
        @functools.wraps(fn)
        def wrapper(g: Any, *args: Any, **kwargs: Any) -> Any:
            return fn(g, *args, **kwargs)

        return wrapper

    return decorator


def _unimplemented(op: str, msg: str, value: Any = None) -> None:
    raise SymbolicValueError(f"Unsupported: ONNX export of operator {op}, {msg}.", value)
