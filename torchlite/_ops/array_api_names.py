"""The Array API standard's names of arguments, which ops take beside PyTorch's own: `torch.flip(x, axis=0)`.

`axis` and `keepdims` for `dim` and `keepdim` PyTorch takes itself. The functions that PyTorch has not are in
`_tensor/array_api.py`.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import REGISTRY
from .._dispatch.public_functions import torch
from .._types.dtypes import get_default_dtype
from . import statistics  # noqa: F401  (has a record that is named here, and comes later)

# The op: its keyword of the standard, and the parameter that it is another name for.
_NAMES: dict[str, dict[str, str]] = {
    "flip": {"axis": "dims"},
    "roll": {"shift": "shifts", "axis": "dims"},
    "tensordot": {"axes": "dims"},
    "broadcast_to": {"shape": "size"},
    "_zeros": {"shape": "size"},
    "_ones": {"shape": "size"},
    "_new": {"shape": "size"},
    "_filled": {"shape": "size"},
    "arange": {"stop": "end"},
    "linspace": {"num": "steps"},
    "tril": {"k": "diagonal"},
    "triu": {"k": "diagonal"},
    **{f"fft_{name}": {"axes": "dim"} for name in ("fftn", "ifftn", "rfftn", "irfftn", "fftshift", "ifftshift")},
}
# What stands at the place of PyTorch's parameter in the signature, so that either may be given by position.
_FIRST = ("roll", "broadcast_to", "_zeros", "_ones", "_new", "_filled", "arange", "linspace")


def _reshape_copying(function: Any, given: dict[str, Any], copy: bool) -> Any:
    """`reshape(copy=)`: True copies, False raises ValueError where memory does not allow a view."""
    x, shape = given["input"], given.get("shape", ())
    if copy:
        return function(torch.clone(x), shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(copy=False): {error}") from None


def _take_along(function: Any, given: dict[str, Any], axis: int) -> Any:
    """`take(axis=)`: slices by indices, which may be negative."""
    x, indices = given["input"], given["index"]
    return torch.index_select(x, axis, torch.where(indices < 0, indices + x.shape[axis], indices))


def _eye_off_diagonal(function: Any, given: dict[str, Any], k: int) -> Any:
    """`eye(k=)`: the ones on another diagonal."""
    device, rows = given.get("device"), given["n"]
    columns = given.get("m", rows)
    k = min(max(k, -rows), columns)
    place = torch.arange(columns, device=device)
    return (place == torch.arange(rows, device=device).unsqueeze(1) + k).to(given.get("dtype") or get_default_dtype())


def _linspace_open(function: Any, given: dict[str, Any], endpoint: bool) -> Any:
    """`linspace(endpoint=)`: the end left out where it is False."""
    if endpoint or not given.get("steps"):
        return function(**given)
    return torch.clone(function(**{**given, "steps": given["steps"] + 1})[:-1])


def _counting(function: Any, given: dict[str, Any], keepdims: bool) -> Any:
    """`count_nonzero(keepdims=)`."""
    result, x, dim = function(**given), given["input"], given.get("dim")
    if not keepdims:
        return result
    dims = range(x.ndim) if dim is None else [d % x.ndim for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    return result.reshape([1 if d in dims else n for d, n in enumerate(x.shape)])


for _name, _also in _NAMES.items():
    REGISTRY[_name].kwarg_aliases = dict(_also)
    REGISTRY[_name].array_api_first = _name in _FIRST
for _name in ("squeeze", "reshape"):
    REGISTRY[_name].array_api_first = True
for _name, _keyword, _adapt in (
    ("reshape", "copy", _reshape_copying),
    ("take", "axis", _take_along),
    ("count_nonzero", "keepdims", _counting),
    ("eye", "k", _eye_off_diagonal),
    ("linspace", "endpoint", _linspace_open),
):
    REGISTRY[_name].kwarg_aliases = {**REGISTRY[_name].kwarg_aliases, _keyword: _adapt}
