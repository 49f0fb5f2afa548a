"""Staging of tensors for a host transport: flat, contiguous host memory.

A contiguous CPU tensor is used in place, and so is a device tensor with host-accessible memory. Others (strided views,
other devices, conjugate views) are copied, and written back when the messages have arrived.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import torchlite as torch
from torchlite._dispatch import autograd_graph
from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite._tensor.copy_on_write import materialize

Finish = Callable[[], None]
SUMMED_HALVES = (torch.float16, torch.bfloat16)  # transports add them as they are
# Reduction dtypes that replace those without NumPy arithmetic, or with too small a range.
_WIDER = {torch.complex32: torch.complex64}
_UINT_OF_SIZE = {1: np.uint8, 2: np.uint16, 4: np.uint32}  # integer dtypes of the same size, for transfers


@functools.cache
def has_native_reduce(dtype: torch.dtype) -> bool:
    """True if transports have all reductions of a dtype. Others are float32 meanwhile, but for `SUMMED_HALVES`."""
    return dtype.np.kind in "biufc" and dtype is not torch.float16


def _array_of(tensor: Any) -> np.ndarray:
    return tensor._tl_array


def _conj_neg_bits(tensor: Any) -> int:
    return tensor._tl_signs


def _cpu_array(tensor: torch.Tensor) -> np.ndarray | None:
    """Return the memory of a contiguous CPU tensor."""
    data = _array_of(tensor)
    if type(data) is np.ndarray and data.flags.c_contiguous and not _conj_neg_bits(tensor):
        return data if data.ndim == 1 else data.reshape(-1)
    return None


def _host_memory(tensor: Any, write: bool) -> Any:
    """Return a context manager for a contiguous tensor's host memory; None if there is none."""
    host_view = getattr(tensor._tl_kernels.backend, "host_view", None)
    if host_view is None or not tensor.numel() or _conj_neg_bits(tensor) or not tensor.is_contiguous():
        return None
    return host_view(_array_of(tensor), write)


def _transportable_view(flat: np.ndarray) -> np.ndarray:
    """View the memory with a dtype that every message library supports."""
    return flat if flat.dtype.kind in "biufc" else flat.view(_UINT_OF_SIZE[flat.itemsize])


def input_buffer(tensor: torch.Tensor) -> np.ndarray:
    """Return a buffer with the elements, for reading."""
    own = _cpu_array(tensor)
    if own is None:
        lent = _host_memory(tensor, False)
        # A mapping for reading ends with the last array on it, since the message may start later, when the device's
        # pool has given the memory of a tensor that the caller dropped to another.
        own = _copy_elements(tensor) if lent is None else lent.__enter__().reshape(-1).copy()
    return _transportable_view(own)


def _copy_elements(tensor: torch.Tensor) -> np.ndarray:
    return _array_of(tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()).reshape(-1)


def output_buffer(tensor: torch.Tensor, read: bool = False) -> tuple[np.ndarray, Finish]:
    """Return a buffer for a tensor's new elements (initialised with `read`), and the function that writes them back."""
    if GLOBALS["WRITE_CHECKS"]:
        materialize(tensor)
    own = _cpu_array(tensor)
    if own is not None and own.flags.writeable:
        return _transportable_view(own), lambda: autograd_graph.bump_version(tensor)
    mapping = _host_memory(tensor, True)
    if mapping is not None:

        def copy_back() -> None:
            mapping.__exit__(None, None, None)
            autograd_graph.bump_version(tensor)

        return _transportable_view(mapping.__enter__().reshape(-1)), copy_back
    host = _copy_elements(tensor) if read else np.empty(tensor.numel(), tensor.dtype.np)
    if read and tensor.device.type == "cpu":
        host = host.copy() if np.may_share_memory(host, _array_of(tensor)) else host
    return _transportable_view(host), lambda: write_elements(tensor, host)


def write_elements(tensor: torch.Tensor, host: np.ndarray) -> None:
    """Write flat elements into a tensor."""
    made = torch.empty(tensor.shape, dtype=tensor.dtype)
    flat = _array_of(made).reshape(-1)
    flat[...] = host.view(flat.dtype)
    with torch.no_grad():
        tensor.detach().copy_(made)


def concat_input_buffer(tensors: Sequence[torch.Tensor]) -> np.ndarray:
    """Return a buffer with the concatenated elements of tensors of one dtype."""
    parts = [input_buffer(tensor) for tensor in tensors]
    return np.concatenate(parts) if len(parts) != 1 else parts[0].copy()


def split_output_buffer(tensors: Sequence[torch.Tensor]) -> tuple[np.ndarray, Finish]:
    """Return a buffer for the concatenated new elements of tensors of one dtype."""
    host = np.empty(sum(tensor.numel() for tensor in tensors), tensors[0].dtype.np)

    def copy_back() -> None:
        start = 0
        for tensor in tensors:
            write_elements(tensor, host[start : start + tensor.numel()])
            start += tensor.numel()

    return _transportable_view(host), copy_back


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Convert a tensor to the dtype of its reduction."""
    return tensor if has_native_reduce(tensor.dtype) else tensor.detach().to(_WIDER.get(tensor.dtype, torch.float32))
