"""Staging of device tensors for a device transport: flat, contiguous tensors on the device.

The counterpart of `_host_staging` for memory that is not a NumPy array. Copies run in the current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._dispatch import autograd_graph

Finish = Callable[[], None]
SUMMED_HALVES = ()  # transports have all reductions of halves
# Reduction dtypes that replace those without arithmetic in device transports.
_WIDER = {
    torch.bool: torch.int32, torch.int16: torch.int32, torch.uint16: torch.int32, torch.complex32: torch.complex64,
}  # fmt: skip


def has_native_reduce(dtype: torch.dtype) -> bool:
    """True if a dtype is reduced without conversion."""
    return dtype not in _WIDER and not _is_small(dtype)


def _is_small(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point and dtype.itemsize == 1


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Convert a tensor to the dtype of its reduction."""
    if has_native_reduce(tensor.dtype):
        return tensor
    return tensor.detach().to(torch.float32 if _is_small(tensor.dtype) else _WIDER[tensor.dtype])


def _flatten_to_real(tensor: torch.Tensor) -> Any:
    """Flatten a contiguous tensor; complex numbers become pairs."""
    tensor = tensor.detach()
    return (torch.view_as_real(tensor) if tensor.dtype.is_complex else tensor).reshape(-1)


def input_buffer(tensor: torch.Tensor) -> Any:
    """Return a buffer with the elements, for reading."""
    return _flatten_to_real(tensor.detach().resolve_conj().resolve_neg().contiguous())


def output_buffer(tensor: torch.Tensor, read: bool = False) -> tuple[Any, Finish]:
    """Return a buffer for a tensor's new elements (initialised with `read`), and the function that copies them back."""
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return _flatten_to_real(tensor), lambda: autograd_graph.bump_version(tensor)
    made = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if read:
        made.copy_(tensor.detach())
    return _flatten_to_real(made), lambda: write_elements(tensor, made)


def write_elements(tensor: torch.Tensor, made: torch.Tensor) -> None:
    """Write elements into a tensor."""
    with torch.no_grad():
        tensor.detach().copy_(made.reshape(tensor.shape))


def concat_input_buffer(tensors: Sequence[torch.Tensor]) -> Any:
    """Return a buffer with the concatenated elements of tensors of one dtype."""
    return torch.cat([input_buffer(tensor) for tensor in tensors])


def split_output_buffer(tensors: Sequence[torch.Tensor]) -> tuple[Any, Finish]:
    """Return a buffer for the concatenated new elements of tensors of one dtype."""
    made = torch.empty(sum(t.numel() for t in tensors), dtype=tensors[0].dtype, device=tensors[0].device)

    def copy_back() -> None:
        for tensor, part in zip(tensors, made.split([t.numel() for t in tensors]), strict=True):
            write_elements(tensor, part)

    return _flatten_to_real(made), copy_back
