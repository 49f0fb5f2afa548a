"""Tensors of a device as the memory that an engine of devices reads and writes: flat, contiguous tensors of it.

The functions of `_staging.py`, for memory that is no NumPy array. What they begin runs in the current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._dispatch import autograd_graph

Finish = Callable[[], None]
# What is reduced in the place of dtypes that engines of devices have no arithmetic for.
_WIDER = {
    torch.bool: torch.int32, torch.int16: torch.int32, torch.uint16: torch.int32, torch.complex32: torch.complex64,
}  # fmt: skip


def has_native_reduce(dtype: torch.dtype) -> bool:
    """Whether elements are reduced as they are."""
    return dtype not in _WIDER and not _is_small(dtype)


def _is_small(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point and dtype.itemsize == 1


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """The elements with which a reduction computes."""
    if has_native_reduce(tensor.dtype):
        return tensor
    return tensor.detach().to(torch.float32 if _is_small(tensor.dtype) else _WIDER[tensor.dtype])


def _flat(tensor: torch.Tensor) -> Any:
    """A contiguous tensor as a row of elements; complex numbers as pairs."""
    tensor = tensor.detach()
    return (torch.view_as_real(tensor) if tensor.dtype.is_complex else tensor).reshape(-1)


def input_buffer(tensor: torch.Tensor) -> Any:
    """The elements, to be read."""
    return _flat(tensor.detach().resolve_conj().resolve_neg().contiguous())


def output_buffer(tensor: torch.Tensor, read: bool = False) -> tuple[Any, Finish]:
    """Memory for a tensor's new elements (with `read` it has the old ones), and what to call when it has them."""
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return _flat(tensor), lambda: autograd_graph.bump_version(tensor)
    made = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if read:
        made.copy_(tensor.detach())
    return _flat(made), lambda: write_elements(tensor, made)


def write_elements(tensor: torch.Tensor, made: torch.Tensor) -> None:
    """Write elements into a tensor."""
    with torch.no_grad():
        tensor.detach().copy_(made.reshape(tensor.shape))


def concat_input_buffer(tensors: Sequence[torch.Tensor]) -> Any:
    """The elements of tensors of one dtype, one after the other."""
    return torch.cat([input_buffer(tensor) for tensor in tensors])


def split_output_buffer(tensors: Sequence[torch.Tensor]) -> tuple[Any, Finish]:
    """Memory for the new elements of tensors of one dtype, one after the other."""
    made = torch.empty(sum(t.numel() for t in tensors), dtype=tensors[0].dtype, device=tensors[0].device)

    def finish() -> None:
        for tensor, part in zip(tensors, made.split([t.numel() for t in tensors]), strict=True):
            write_elements(tensor, part)

    return _flat(made), finish
