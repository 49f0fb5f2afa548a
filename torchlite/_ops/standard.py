"""The Array API standard's names of arguments, which ops take beside PyTorch's own: `torch.flip(x, axis=0)`.

`axis` and `keepdims` for `dim` and `keepdim` PyTorch takes itself (`Op.also`). The functions that PyTorch has not are in
`_tensor/array_api.py`.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import REGISTRY
from .._dispatch.public import torch
from .._types.dtypes import get_default_dtype

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
    **dict.fromkeys(("fft_fftn", "fft_ifftn", "fft_rfftn", "fft_irfftn"), {"axes": "dim"}),
    **dict.fromkeys(("fft_fftshift", "fft_ifftshift"), {"axes": "dim"}),
}
# What stands at the place of PyTorch's parameter in the signature, so that either may be given by position.
_FIRST = ("roll", "broadcast_to", "_zeros", "_ones", "_new", "_filled", "arange", "linspace")


def _reshape_copying(function: Any, args: tuple, kwargs: dict) -> Any:
    """`reshape(copy=)`: True copies, False raises ValueError where memory does not allow a view."""
    copy = kwargs.pop("copy")
    x, shape = args
    if copy:
        return function(torch.clone(x), shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(copy=False): {error}") from None


def _take_along(function: Any, args: tuple, kwargs: dict) -> Any:
    """`take(axis=)`: slices by indices, which may be negative."""
    axis = kwargs.pop("axis")
    x, indices = args
    return torch.index_select(x, axis, torch.where(indices < 0, indices + x.shape[axis], indices))


def _eye_off_diagonal(function: Any, args: tuple, kwargs: dict) -> Any:
    """`eye(k=)`: the ones on another diagonal."""
    k, dtype, device = kwargs.pop("k"), kwargs.get("dtype"), kwargs.get("device")
    rows, columns = args
    place = torch.arange(rows if columns is None else columns, device=device)
    return (place == torch.arange(rows, device=device).unsqueeze(1) + k).to(dtype or get_default_dtype())


def _linspace_open(function: Any, args: tuple, kwargs: dict) -> Any:
    """`linspace(endpoint=)`: the end left out where it is False."""
    endpoint = kwargs.pop("endpoint")
    if "num" in kwargs:
        args = (*args[:2], kwargs.pop("num"))
    if endpoint or not args[2]:
        return function(*args, **kwargs)
    return torch.clone(function(*args[:2], args[2] + 1, **kwargs)[:-1])


for _name, _also in _NAMES.items():
    REGISTRY[_name].also = dict(_also)
    REGISTRY[_name].standard_first = _name in _FIRST
for _name in ("squeeze", "reshape"):
    REGISTRY[_name].standard_first = True
for _name, _keyword, _adapt in (
    ("reshape", "copy", _reshape_copying),
    ("take", "axis", _take_along),
    ("eye", "k", _eye_off_diagonal),
    ("linspace", "endpoint", _linspace_open),
):
    REGISTRY[_name].also = {**REGISTRY[_name].also, _keyword: _adapt}
