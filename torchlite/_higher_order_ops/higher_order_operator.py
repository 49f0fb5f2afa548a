"""`torch.ops.higher_order`: higher-order ops that graphs of exported programs call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

OPERATORS: dict[str, HigherOrderOperator] = {}


class HigherOrderOperator:
    """Op with function arguments: `torch.ops.higher_order.cond(pred, true_fn, false_fn, operands)`."""

    def __init__(self, name: str, run: Callable) -> None:
        self._name, self._run = name, run
        self.__name__, self.__qualname__, self.__module__ = name, name, "torch.ops.higher_order"
        self.namespace = "higher_order"
        OPERATORS[name] = self

    def name(self) -> str:
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<HigherOrderOperator: higher_order.{self._name}>"

    def __deepcopy__(self, memo: Any) -> HigherOrderOperator:
        return self

    def __reduce__(self) -> Any:
        return _find_operator, (self._name,)


def _find_operator(name: str) -> HigherOrderOperator:
    return OPERATORS[name]


class _Namespace:
    """Higher-order ops by name."""

    __name__ = "torch.ops.higher_order"

    def __getattr__(self, name: str) -> HigherOrderOperator:
        if name not in OPERATORS:
            raise AttributeError(f"'_HigherOrderNamespace' 'higher_order' object has no attribute '{name}'")
        return OPERATORS[name]

    def __dir__(self) -> list[str]:
        return sorted(OPERATORS)

    def __repr__(self) -> str:
        return "<module 'torch.ops.higher_order' from 'torch.ops'>"


def _make_operator(run: Callable) -> HigherOrderOperator:
    return HigherOrderOperator(run.__name__.strip("_"), run)


def as_tuple(result: Any) -> tuple:
    """Return a graph's result as a tuple."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


@_make_operator
def _cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Any = ()) -> tuple:
    return as_tuple((true_fn if pred else false_fn)(*operands))


@_make_operator
def _while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: Any, additional_inputs: Any = ()) -> tuple:
    values = tuple(carried_inputs)
    while True:
        again = cond_fn(*values, *additional_inputs)
        if not (again[0] if isinstance(again, (tuple, list)) else again):
            return values
        values = as_tuple(body_fn(*values, *additional_inputs))


@_make_operator
def _map_impl(f: Callable, xs: Any, pos_args: Any = ()) -> tuple:
    rows = [as_tuple(f(*row, *pos_args)) for row in zip(*xs, strict=True)]
    return tuple(torch.stack(parts) for parts in zip(*rows, strict=True))


@_make_operator
def _scan(combine_fn: Callable, init: Any, xs: Any, additional_inputs: Any = ()) -> tuple:
    carry: Any = tuple(init)
    rows = []
    for place in range(xs[0].shape[0] if xs else 0):
        out = as_tuple(combine_fn(*carry, *(x[place] for x in xs), *additional_inputs))
        carry, row = out[: len(carry)], out[len(carry) :]
        rows.append(row)
    return (*carry, *(torch.stack(parts) for parts in zip(*rows, strict=True)))


@_make_operator
def _wrap_with_set_grad_enabled(enable_grad: bool, wrapped_func: Callable, *args: Any, **kwargs: Any) -> Any:
    with torch.set_grad_enabled(enable_grad):
        return wrapped_func(*args, **kwargs)


@_make_operator
def _wrap_with_autocast(
    device_type: str, dtype: Any, enabled: bool, cache_enabled: Any, wrapped_func: Callable, *args: Any, **kwargs: Any
) -> Any:
    with torch.autocast(device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled):
        return wrapped_func(*args, **kwargs)


@_make_operator
def _strict_mode(callable: Callable, operands: Any = ()) -> Any:
    return callable(*operands)


higher_order = _Namespace()


def higher_order_class() -> type:
    """Return the class of operators that take functions."""
    return HigherOrderOperator


def higher_order_namespace() -> Any:
    """`torch.ops.higher_order`."""
    return higher_order
