"""`torch._foreach_*`: an op on each tensor of a list, or on corresponding tensors of several lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from .._dispatch import call, namespace_function
from .._dispatch.arg_parser import match_signature
from .._dispatch.public_functions import torch
from .._types.package_name import package_name

_UNARY = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round
    rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
""".split()
_BINARY = "add sub mul div clamp_max clamp_min maximum minimum pow".split()
_TERNARY_OPS = "addcdiv addcmul lerp".split()
_OUT_OF_PLACE = "clone max mm norm powsum".split()
_IN_PLACE = "copy zero".split()
NAMES = (
    *(f"_foreach_{name}{end}" for name in (*_UNARY, *_BINARY, *_TERNARY_OPS) for end in ("", "_")),
    *(f"_foreach_{name}" for name in _OUT_OF_PLACE),
    *(f"_foreach_{name}_" for name in _IN_PLACE),
)
# Of a tensor and a number what these are of two tensors.
_WITH_NUMBER = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _check_lengths(count: int, given: dict[str, Any]) -> None:
    """The lists are as long as the first one, which is not empty."""
    if not count:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for name, value in given.items():
        if _is_list(value) and len(value) != count:
            if name == "scalars":
                raise RuntimeError("Tensor list must have same number of elements as scalar list.")
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(value)}")


def _check_tensors(place: int, tensors: Any) -> None:
    for i, x in enumerate(tensors if _is_list(tensors) else ()):
        if not isinstance(x, call.Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument {place}, but got {type(x).__name__}")


def _tensor_to_numbers(scalars: Any, count: int) -> Any:
    """The numbers that a tensor with one dimension holds."""
    if not isinstance(scalars, call.Tensor):
        return scalars
    if scalars.ndim != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.ndim} instead.")
    if len(scalars) != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got {len(scalars)} instead."
        )
    return scalars.tolist()


def _check_number(other: Any) -> None:
    if isinstance(other, call.Tensor) and other.ndim:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other.numel()} elements."
        )


def _apply_binary(name: str, end: str, x: Any, other: Any, alpha: Any = 1) -> Any:
    if name in _WITH_NUMBER and not isinstance(other, call.Tensor):
        name = _WITH_NUMBER[name]
    elif name in _WITH_NUMBER and end:
        return x.copy_(getattr(torch, name)(x, other))
    if not isinstance(x, call.Tensor):
        return torch.pow(x, other)
    return getattr(x, name + end)(other) if alpha == 1 else getattr(x, name + end)(other, alpha=alpha)


def _apply_ternary(name: str, end: str, x: Any, one: Any, two: Any, value: Any = 1) -> Any:
    if name == "lerp":
        return getattr(x, name + end)(one, two)
    return getattr(x, name + end)(one, two, value=value)


def _apply_reduction(name: str, x: Any, ord: Any = 2, dtype: Any = None) -> Any:
    if name == "norm":
        return namespace_function("linalg", "vector_norm")(x, ord, dtype=dtype)
    if name == "powsum":
        return x.abs().pow(ord).sum(dtype=dtype)
    if not x.numel():
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )
    return x.max()


def _make_foreach_function(public: str) -> Callable[..., Any]:
    end = "_" if public.endswith("_") else ""
    name = public.removeprefix("_foreach_").removesuffix("_")

    def results(tensors: Any, given: dict[str, Any]) -> Any:
        lists = tensors if _is_list(tensors) else given["exponent"]
        _check_lengths(len(lists), given)
        if name in _BINARY:
            alpha = given.pop("alpha", 1)
            (other,) = given.values()
            _check_number(other)
            first = tensors if _is_list(tensors) else repeat(tensors)
            second = other if _is_list(other) else repeat(other, len(lists))
            return [_apply_binary(name, end, x, y, alpha) for x, y in zip(first, second, strict=False)]
        if name in _TERNARY_OPS:
            given = {
                key: _tensor_to_numbers(value, len(lists)) if key == "scalars" else value
                for key, value in given.items()
            }
            columns = [value if _is_list(value) else repeat(value) for value in given.values()]
            return [_apply_ternary(name, end, x, *rest) for x, *rest in zip(tensors, *columns, strict=False)]
        if name in ("norm", "max", "powsum"):
            return [_apply_reduction(name, x, **given) for x in tensors]
        if name == "mm":
            return [torch.mm(x, y) for x, y in zip(tensors, *given.values(), strict=True)]
        if name == "copy":
            return [x.copy_(y, given.get("non_blocking", False)) for x, y in zip(tensors, given["src"], strict=True)]
        return [getattr(x, name + end)() for x in tensors]

    def function(*args: Any, **kwargs: Any) -> Sequence[Any]:
        given = match_signature(public, args, kwargs)
        assert given is not None
        tensors = given.pop("self")
        _check_tensors(0, tensors)
        _check_tensors(1, given.get("src"))
        found = results(tensors, given)
        return tensors if end else tuple(found)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = (
        f"`Tensor.{name}{end}` of each tensor of a list, with the other arguments' lists side by side. "
        + ("The list itself." if end else "A tuple.")
        + " RuntimeError for an empty list, or lists of several lengths."
    )
    return function


def __getattr__(name: str) -> Any:
    if name in NAMES:
        found = globals().setdefault(name, _make_foreach_function(name))
        return found
    raise AttributeError(f"module '{package_name()}' has no attribute '{name}'")
