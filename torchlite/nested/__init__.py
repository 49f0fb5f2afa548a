"""Nested tensors: batches of tensors of different sizes, without padding.

With the layout `torch.jagged` one dimension differs. Ops run on the elements of all parts at once, and gradients flow
to the parts. The layout `torch.strided` allows several such dimensions, and few ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite._serialization.weights_only_unpickler import allow_library_globals

from ._internal import dispatch as _dispatch
from ._internal.nested_tensor import (
    NestedTensor,
    _rebuild_njt,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    nested_view_from_values_offsets,
    nested_view_from_values_offsets_lengths,
)
from ._internal.strided import StridedNestedTensor, strided_from_list

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip


allow_library_globals(NestedTensor, _rebuild_njt, StridedNestedTensor)


def _unknown_layout(layout: Any) -> RuntimeError:
    return RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Constructs a nested tensor with copies of the parts: a leaf without history.

    Args:
        tensor_list: The parts: tensors, arrays or lists of numbers.
        dtype: The dtype. Default: that of the first part.
        layout: `torch.jagged` or `torch.strided`. Default: `torch.strided`.
        device: The device. Default: that of the first part.
        requires_grad: Whether the tensor requires grad. Default: ``False``.
        pin_memory: Whether it is in page-locked memory. Default: ``False``.

    Returns:
        A nested tensor.

    Raises:
        RuntimeError: The parts differ in more than one dimension (with the layout `torch.jagged`), in their number of
            dimensions, dtype or device; or there is none.

    Example:
        >>> parts = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]
        >>> torch.nested.nested_tensor(parts, layout=torch.jagged).values()
        tensor([1., 2., 3.])

    See also:
        `as_nested_tensor`, which keeps the parts' history.
    """
    kind = torch.strided if layout is None else layout
    if kind not in (torch.jagged, torch.strided):
        raise _unknown_layout(kind)
    parts = [
        (t.detach() if isinstance(t, torch.Tensor) else torch.as_tensor(t)).to(dtype=dtype, device=device)
        for t in tensor_list
    ]
    with torch.no_grad():
        made = jagged_from_list(parts, None)[0] if kind is torch.jagged else strided_from_list(parts, dtype, device)
    made = made.pin_memory() if pin_memory else made
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """Constructs a nested tensor of parts, with their history.

    Args:
        ts: A list or tuple of tensors; or a tensor, whose parts along the first dimension have one size; or a nested
            tensor, which is returned if nothing changes.
        dtype: The dtype. Default: that of the parts.
        device: The device. Default: that of the parts.
        layout: `torch.jagged` or `torch.strided`. Default: `torch.strided`.

    Returns:
        A nested tensor.

    Raises:
        RuntimeError: A nested tensor has another layout, or the parts do not fit.
        TypeError: ``ts`` is no list, tuple or tensor.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> nt = torch.nested.as_nested_tensor([x, x[:1]], layout=torch.jagged)
        >>> nt.sum().backward()
        >>> x.grad
        tensor([2., 1.])
    """
    is_list = isinstance(ts, (list, tuple)) and all(isinstance(t, torch.Tensor) for t in ts)
    if not isinstance(ts, torch.Tensor) and not is_list:
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors but got "
            f"{type(ts)}"
        )
    kind = torch.strided if layout is None else layout
    if isinstance(ts, torch.Tensor):
        if ts.is_nested:
            if ts.layout is not kind:
                raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
            return ts.to(dtype=dtype, device=device) if dtype is not None or device is not None else ts
        if not ts.ndim:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 0")
        if kind is torch.jagged and ts.ndim > 1:
            ts = ts.to(dtype=dtype, device=device)
            count, length = ts.shape[:2]
            offsets = torch.arange(count + 1, device=ts.device) * length
            return nested_view_from_values_offsets(ts.contiguous().flatten(0, 1), offsets, 1, length, length)
        ts = ts.unbind()
    if kind is torch.jagged:
        return jagged_from_list(list(ts), None, dtype, device)[0]
    if kind is torch.strided:
        return strided_from_list(list(ts), dtype, device)
    raise _unknown_layout(kind)


def nested_tensor_from_jagged(
    values: torch.Tensor,
    offsets: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Constructs a nested tensor on the memory of its values.

    Args:
        values: The parts, one after the other along the ragged dimension.
        offsets: Where each part begins, and where the last one ends. Default: by ``lengths``, without holes.
        lengths: The lengths of the parts; with ``offsets`` there may be holes between them.
        jagged_dim: The ragged dimension of the nested tensor. Default: 1.
        min_seqlen: The least length, if it is known. Default: computed when it is needed.
        max_seqlen: The largest length, if it is known. Default: computed when it is needed.

    Returns:
        A nested tensor with the layout `torch.jagged` and the history of ``values``.

    Raises:
        RuntimeError: ``offsets`` and ``lengths`` are both missing.
        TypeError: ``values`` is no tensor.

    Example:
        >>> nt = torch.nested.nested_tensor_from_jagged(torch.arange(5), offsets=torch.tensor([0, 2, 5]))
        >>> nt.unbind()
        (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if not isinstance(values, torch.Tensor):
        raise TypeError(
            f"_nested_view_from_jagged(): argument 'input' (position 1) must be Tensor, not {type(values).__name__}"
        )
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        lengths = None
    place = 1 if jagged_dim is None else jagged_dim
    return nested_view_from_values_offsets_lengths(values, offsets, lengths, place, min_seqlen, max_seqlen)


def narrow(tensor: torch.Tensor, dim: int, start: Any, length: Any, layout: Any = torch.strided) -> Any:
    """Constructs a nested tensor of a part of each row of a tensor, on the tensor's memory.

    Args:
        tensor: The tensor.
        dim: The dimension in which the parts differ: 1 with the layout `torch.jagged`.
        start: Where each part begins: a tensor of numbers, or one number.
        length: The length of each part: a tensor of numbers, or one number.
        layout: `torch.jagged` or `torch.strided`. Default: `torch.strided`.

    Returns:
        A nested tensor with the history of ``tensor``. With the layout `torch.jagged` there are holes between its
        parts: `contiguous` copies them together.

    Raises:
        RuntimeError: ``dim`` is not 1, or with the layout `torch.strided` ``start`` and ``length`` are no numbers.

    Example:
        >>> starts, lengths = torch.tensor([0, 1]), torch.tensor([2, 1])
        >>> nt = torch.nested.narrow(torch.arange(6).reshape(2, 3), 1, starts, lengths, layout=torch.jagged)
        >>> nt.unbind()
        (tensor([0, 1]), tensor([4]))
    """
    if layout is torch.strided:
        if isinstance(start, torch.Tensor) or isinstance(length, torch.Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return strided_from_list(list(tensor.narrow(dim, start, length).unbind()), None, None)
    if layout is not torch.jagged:
        raise _unknown_layout(layout)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    start, length = (x if isinstance(x, torch.Tensor) else torch.tensor([x]) for x in (start, length))
    return jagged_from_tensor_and_lengths(tensor, start.to(torch.int64), length.to(torch.int64))[0]


def masked_select(tensor: torch.Tensor, mask: torch.Tensor) -> NestedTensor:
    """Constructs a nested tensor of the elements of each row of a tensor for which a mask is true.

    Args:
        tensor: The tensor.
        mask: The mask, a tensor of bools that broadcasts to ``tensor``.

    Returns:
        A nested tensor of two dimensions with the layout `torch.jagged`; its rows are those of the last dimension.

    Raises:
        RuntimeError: ``tensor`` is nested.

    Example:
        >>> x = torch.arange(6).reshape(2, 3)
        >>> torch.nested.masked_select(x, x % 2 == 0).unbind()
        (tensor([0, 2]), tensor([4]))
    """
    if tensor.is_nested or tensor.layout is not torch.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    mask = mask.expand(tensor.shape)
    lengths = mask.sum(-1).flatten()
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return nested_view_from_values_offsets(tensor.masked_select(mask), offsets)


def to_padded_tensor(
    input: Any, padding: float, output_size: Sequence[int] | None = None, out: Any = None
) -> torch.Tensor:
    """Returns the parts of a nested tensor as one dense tensor, each padded to the size of the largest.

    Args:
        input: A nested tensor.
        padding: The value of the added elements.
        output_size: A larger size of the result. Default: the least.
        out: A tensor that gets the result. Default: a new one.

    Raises:
        RuntimeError: ``output_size`` is too small, or there are holes between the parts.
        NotImplementedError: ``input`` is not nested.

    Example:
        >>> nt = torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged)
        >>> torch.nested.to_padded_tensor(nt, 0.0)
        tensor([[1., 1.],
                [1., 0.]])
    """
    if not isinstance(input, (NestedTensor, StridedNestedTensor)):
        raise NotImplementedError(f"to_padded_tensor takes a nested tensor, not one with the layout {input.layout}")
    made = input.to_padded_tensor(padding, output_size)
    return made if out is None else out.resize_(made.shape).copy_(made)
