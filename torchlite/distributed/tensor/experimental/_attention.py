"""Context parallelism: attention of sequences that are cut over the ranks of a mesh."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn._functional_attention import REPLACEMENT

from ..._functional_collectives import all_gather_tensor
from ...device_mesh import DeviceMesh
from .._api import DTensor
from ..placement_types import Shard
from ._load_balancer import _HeadTailLoadBalancer, _LoadBalancer, reorder
from ._ring_attention import RingAttention, Settings

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]

_SEQ_DIM = 2  # of queries, keys and values


class _RotateMethod(enum.Enum):
    ALL_TO_ALL = enum.auto()
    ALL_GATHER = enum.auto()


@dataclass
class _ContextParallelOptions:
    """Options of the process: whether causal attention is balanced, and how keys and values travel."""

    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


def _create_default_load_balancer(seq_length: int, world_size: int, device: Any) -> _LoadBalancer | None:
    if _cp_options.enable_load_balance and seq_length % (2 * world_size) == 0:
        return _HeadTailLoadBalancer(seq_length, world_size, device)
    return None


def _local(tensor: torch.Tensor) -> torch.Tensor:
    if not isinstance(tensor, DTensor):
        return tensor
    if tensor.placements != (Shard(_SEQ_DIM),):
        raise AssertionError(f"a DTensor must be placed by (Shard({_SEQ_DIM}),), not {tensor.placements}")
    return tensor.to_local()


def _make_ring_function(group: Any) -> Any:
    """Return the function that stands for `scaled_dot_product_attention`."""

    def scaled_dot_product_attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if attn_mask is not None:
            raise NotImplementedError("attn_bias is not supported yet")
        query, key, value = (_local(tensor) for tensor in (query, key, value))
        _check(query, key, value, is_causal, enable_gqa)
        how = Settings(
            group=group,
            is_causal=is_causal,
            scale=query.shape[-1] ** -0.5 if scale is None else scale,
            dropout_p=dropout_p,
            seed=int(torch.randint(2**40, ())) if dropout_p else 0,
            is_balanced=_cp_options.enable_load_balance,
            gathers=_cp_options.rotate_method is _RotateMethod.ALL_GATHER,
        )
        return RingAttention.apply(query, key, value, how)

    return scaled_dot_product_attention


def _check(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, is_causal: bool, enable_gqa: bool) -> None:
    if not query.ndim == key.ndim == value.ndim == 4:
        raise RuntimeError(
            "context_parallel: query, key and value must have 4 dimensions (batch, heads, sequence, width), but have "
            f"{query.ndim}, {key.ndim} and {value.ndim}"
        )
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    heads, others = query.shape[1], key.shape[1]
    if key.shape[:3] != value.shape[:3] or query.shape[0] != key.shape[0] or query.shape[3] != key.shape[3]:
        raise RuntimeError(
            f"context_parallel: query, key and value do not fit: {query.shape}, {key.shape} and {value.shape}"
        )
    if heads != others and (not enable_gqa or heads % others):
        raise RuntimeError(f"context_parallel: {heads} heads of the query do not fit {others} of key and value")
    if is_causal and query.shape[2] != key.shape[2]:
        raise NotImplementedError("is_causal requires the same query and context sequence lengths")
    if not is_causal and _cp_options.enable_load_balance:
        raise RuntimeError("Load balancing requires `is_causal=True`.")


def _shard(mesh: DeviceMesh, buffer: torch.Tensor, dim: int, balancer: _LoadBalancer | None) -> torch.Tensor:
    """Return this rank's part of a buffer."""
    if buffer.shape[dim] % mesh.size():
        raise ValueError(
            f"context_parallel: a sequence of {buffer.shape[dim]} positions cannot be cut into {mesh.size()} equal "
            "parts"
        )
    indices = balancer._generate_indices() if balancer is not None else None
    return reorder(buffer, dim, indices).chunk(mesh.size(), dim)[mesh.get_local_rank()]


@contextlib.contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: list[torch.Tensor] | None = None,
    buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: set[torch.Tensor] | None = None,
) -> Iterator[None]:
    """Cuts sequences over the ranks of a mesh, within a block.

    In the block each buffer holds this rank's part of its sequence, and `scaled_dot_product_attention` computes
    attention to the keys of all ranks. Backward belongs into the block too. If the sequence can be cut into 2n pieces
    for n ranks, rank r gets piece r and piece 2n - 1 - r, so that causal attention is as much work on all. Attention
    must then be causal; ``_attention._cp_options.enable_load_balance = False`` cuts into n pieces.

    The function ``torch.nn.functional.scaled_dot_product_attention`` is replaced, for all threads. So layers that
    compute attention otherwise see their own part only, such as `MultiheadAttention` with ``need_weights=True``.

    Args:
        mesh: A mesh of one dimension.
        buffers: Tensors with a sequence, such as tokens, labels and positions. They are changed in place.
        buffer_seq_dims: The dimension of the sequence of each.
        no_restore_buffers: The buffers that keep this rank's part after the block. The others are restored.

    Raises:
        ValueError: The two lists differ in length, ``no_restore_buffers`` has another tensor, or a sequence cannot
            be cut into equal parts.
        RuntimeError: Attention is not causal although the order is balanced. Raised by the attention.
        NotImplementedError: Attention has a mask. Raised by the attention.

    Source:
        Liu, Zaharia, Abbeel, Ring attention with blockwise transformers (2023).

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.tensor.experimental import context_parallel
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([[[[1.0], [3.0]]]])
        >>> with context_parallel(dist.init_device_mesh("cpu", (1,)), buffers=[x], buffer_seq_dims=[2]):
        ...     F.scaled_dot_product_attention(x, x, x, is_causal=True).flatten()
        tensor([1.0000, 2.9951])
        >>> dist.destroy_process_group()
    """
    buffers, dims, lasting = buffers or [], buffer_seq_dims or [], no_restore_buffers or set()
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if any(all(one is not buffer for buffer in buffers) for one in lasting):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    before = F.scaled_dot_product_attention, _cp_options.enable_load_balance, REPLACEMENT[:]
    group = mesh.get_group()
    balancer = None
    if buffers:
        balancer = _create_default_load_balancer(buffers[0].shape[dims[0]], mesh.size(), buffers[0].device)
    with torch.no_grad():
        parts = [_shard(mesh, buffer, dim, balancer).clone() for buffer, dim in zip(buffers, dims, strict=True)]
        originals = [None if any(b is one for one in lasting) else b.clone() for b in buffers]
        for buffer, part in zip(buffers, parts, strict=True):
            buffer.resize_(part.shape).copy_(part)
    if buffers:
        _cp_options.enable_load_balance = balancer is not None
    ring = _make_ring_function(group)
    F.scaled_dot_product_attention, REPLACEMENT[:] = ring, [ring]  # type: ignore[assignment]
    try:
        yield
    finally:
        F.scaled_dot_product_attention, _cp_options.enable_load_balance, REPLACEMENT[:] = before
        with torch.no_grad():
            for buffer, original in zip(buffers, originals, strict=True):
                if original is not None:
                    buffer.resize_(original.shape).copy_(original)


def context_parallel_unshard(
    mesh: DeviceMesh, buffers: list[torch.Tensor], seq_dims: list[int], load_balancer: _LoadBalancer | None = None
) -> list[torch.Tensor]:
    """Returns whole tensors, in the original order, of the parts that ranks computed within `context_parallel`.

    Args:
        mesh: The mesh.
        buffers: This rank's parts.
        seq_dims: The dimension of the sequence of each.
        load_balancer: The order of the sequence. Default: that of `context_parallel`.

    Returns:
        Tensors without a gradient.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.tensor.experimental._attention import context_parallel_unshard
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> context_parallel_unshard(dist.init_device_mesh("cpu", (1,)), [torch.ones(2, 2)], [1])
        [tensor([[1., 1.],
                [1., 1.]])]
        >>> dist.destroy_process_group()
    """
    balancer = load_balancer or _create_default_load_balancer(
        buffers[0].shape[seq_dims[0]] * mesh.size(), mesh.size(), buffers[0].device
    )
    indices = balancer._generate_indices(restore=True) if balancer is not None else None
    with torch.no_grad():
        return [
            reorder(all_gather_tensor(buffer, dim % buffer.ndim, mesh), dim, indices)
            for buffer, dim in zip(buffers, seq_dims, strict=True)
        ]


def set_rotate_method(rotate_method: str) -> None:
    """Sets how keys and values of other ranks arrive in `context_parallel`.

    Args:
        rotate_method: ``"allgather"``, the default: all at once, after the first step. ``"alltoall"``: a step at a
            time, which needs less memory.

    Raises:
        NotImplementedError: There is no such method.

    Example:
        >>> from torchlite.distributed.tensor.experimental._attention import set_rotate_method
        >>> set_rotate_method("allgather")
    """
    methods = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}
    if rotate_method not in methods:
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")
    _cp_options.rotate_method = methods[rotate_method]
