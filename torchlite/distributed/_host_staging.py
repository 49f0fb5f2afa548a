"""Tensors as the memory that engines read and write: flat, contiguous, on the host.

A contiguous tensor of the CPU is its own memory, and one of a device whose memory the host has is lent. Others (views
with gaps, other devices, conjugated ones) have a copy, which is written back when the messages have arrived.
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
# Of elements that NumPy has no arithmetic for (or too little room), what is reduced in their place.
_WIDER = {torch.complex32: torch.complex64}
_UINT_OF_SIZE = {1: np.uint8, 2: np.uint16, 4: np.uint32}  # elements of NumPy's that stand for others of their size


@functools.cache
def has_native_reduce(dtype: torch.dtype) -> bool:
    """Whether engines reduce elements of this dtype as they are: halves, bfloat16 and float8 are reduced as float32."""
    return dtype.np.kind in "biufc" and dtype is not torch.float16


def _raw(tensor: Any) -> np.ndarray:
    return tensor._tl_array


def _signs(tensor: Any) -> int:
    return tensor._tl_signs


def _cpu_array(tensor: torch.Tensor) -> np.ndarray | None:
    """The memory of a contiguous tensor of the CPU."""
    data = _raw(tensor)
    if type(data) is np.ndarray and data.flags.c_contiguous and not _signs(tensor):
        return data if data.ndim == 1 else data.reshape(-1)
    return None


def _host_memory(tensor: Any, write: bool) -> Any:
    """A block in which a contiguous tensor's memory is the host's; None where it is not."""
    host_view = getattr(tensor._tl_kernels.backend, "host_view", None)
    if host_view is None or not tensor.numel() or _signs(tensor) or not tensor.is_contiguous():
        return None
    return host_view(_raw(tensor), write)


def _transportable_view(flat: np.ndarray) -> np.ndarray:
    """The same memory with elements that every library of messages knows."""
    return flat if flat.dtype.kind in "biufc" else flat.view(_UINT_OF_SIZE[flat.itemsize])


def input_buffer(tensor: torch.Tensor) -> np.ndarray:
    """The elements, to be read."""
    own = _cpu_array(tensor)
    if own is None:
        lent = _host_memory(tensor, False)
        # What is lent to be read goes back with the last array on it: at once, since the message may begin later, when
        # the device's pool has given the memory of a tensor that the caller dropped to another.
        own = _copy_elements(tensor) if lent is None else lent.__enter__().reshape(-1).copy()
    return _transportable_view(own)


def _copy_elements(tensor: torch.Tensor) -> np.ndarray:
    return _raw(tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()).reshape(-1)


def output_buffer(tensor: torch.Tensor, read: bool = False) -> tuple[np.ndarray, Finish]:
    """Memory for a tensor's new elements (with `read` it has the old ones), and what to call when it has them."""
    if GLOBALS["WRITE_CHECKS"]:
        materialize(tensor)
    own = _cpu_array(tensor)
    if own is not None and own.flags.writeable:
        return _transportable_view(own), lambda: autograd_graph.bump_version(tensor)
    lent = _host_memory(tensor, True)
    if lent is not None:

        def give_back() -> None:
            lent.__exit__(None, None, None)
            autograd_graph.bump_version(tensor)

        return _transportable_view(lent.__enter__().reshape(-1)), give_back
    host = _copy_elements(tensor) if read else np.empty(tensor.numel(), tensor.dtype.np)
    if read and tensor.device.type == "cpu":
        host = host.copy() if np.may_share_memory(host, _raw(tensor)) else host
    return _transportable_view(host), lambda: write_elements(tensor, host)


def write_elements(tensor: torch.Tensor, host: np.ndarray) -> None:
    """Write flat elements into a tensor."""
    made = torch.empty(tensor.shape, dtype=tensor.dtype)
    flat = _raw(made).reshape(-1)
    flat[...] = host.view(flat.dtype)
    with torch.no_grad():
        tensor.detach().copy_(made)


def concat_input_buffer(tensors: Sequence[torch.Tensor]) -> np.ndarray:
    """The elements of tensors of one dtype, one after the other."""
    parts = [input_buffer(tensor) for tensor in tensors]
    return np.concatenate(parts) if len(parts) != 1 else parts[0].copy()


def split_output_buffer(tensors: Sequence[torch.Tensor]) -> tuple[np.ndarray, Finish]:
    """Memory for the new elements of tensors of one dtype, one after the other."""
    host = np.empty(sum(tensor.numel() for tensor in tensors), tensors[0].dtype.np)

    def finish() -> None:
        start = 0
        for tensor in tensors:
            write_elements(tensor, host[start : start + tensor.numel()])
            start += tensor.numel()

    return _transportable_view(host), finish


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """The elements with which a reduction computes."""
    return tensor if has_native_reduce(tensor.dtype) else tensor.detach().to(_WIDER.get(tensor.dtype, torch.float32))
