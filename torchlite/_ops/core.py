"""Ops that the core itself calls: histories of in-place writes through views, picks of one view among several, moves
between devices.
"""

from __future__ import annotations

import math

from .._dispatch import MODE, NONDIFF, VIEW, call, composite, op, table_of
from .._dispatch.slots import SLOTS


def _hole(F, g, index):
    """g with zeros at the flat positions `index`."""
    flat = F.reshape(F.contiguous(g), (-1,))
    return F.reshape(F._setitem(flat, (index,), 0), g.shape)


# `base` after the elements at the flat positions `index` were replaced by `view`.
SLOTS.copy_slices = op(
    "_copy_slices(Tensor base, Tensor view, index)",
    where="",
    vjp={"base": _hole, "view": lambda F, g, index: F._index(F.reshape(F.contiguous(g), (-1,)), (index,))},
)
# The elements at flat positions, which a view takes from its base's new history. It holds no tensor of the program's.
op(
    "_of_base(Tensor input, index)",
    where="",
    composite=lambda F, input, index: F._index(input, (index,)),
    vjp={"input": lambda F, g, input_shape, index: F._index_backward(g, input_shape, (index,))},
)
# The input itself: how the engine ties a tensor to the history of another.
op("_through(Tensor input)", where="", vjp={"input": lambda F, g: g})
_moved = op("_moved(Tensor input, where, source)", where="", vjp={"input": lambda F, g, source: F._move(g, source)})


@composite("_move(Tensor input, where)", where="")
def move(F, input, where):
    """The tensor on another device; its gradient moves back."""
    target = table_of(where)
    source = input._table
    if target is source:
        return input
    out = call.wrap(target, source.move_to(target, input._data), input.dtype)
    if MODE.grad and input._node is not None:
        call.record(_moved, target, [input, where, source.device], (out,))
    return out


def move_tensor(tensor, where):
    return move(SLOTS.F, tensor, where)


@composite("alias(Tensor input)", where="Tensor", tags=VIEW)
def alias(F, input):
    """A view of the whole tensor."""
    return F._slice_index(input, (...,))


SLOTS.move = move_tensor

# Creation kernels (no tensor argument; `call.create` finds their device) and creation beside an existing array, which
# formulas use. The public torch.zeros, torch.zeros_like … are composites over these in creation.py.
op("_empty(size, dtype)", where="", meta=lambda size, dtype: (size, dtype))
op("_full(size, value, dtype)", where="", meta=lambda size, dtype: (size, dtype))
op(
    "_arange(start, end, step, dtype)",
    where="",
    meta=lambda start, end, step, dtype: ((max(0, math.ceil((end - start) / step)),), dtype),
)
for _name in ("zeros_like", "ones_like"):
    op(f"{_name}(Tensor input)", where="", tags=NONDIFF, meta=lambda input: (input.shape, input.dtype))
op("full_like(Tensor input, value)", where="", tags=NONDIFF, meta=lambda input: (input.shape, input.dtype))
op("new_zeros(Tensor input, shape)", where="", tags=NONDIFF, meta=lambda input, shape: (shape, input.dtype))
op("new_full(Tensor input, shape, value)", where="", tags=NONDIFF, meta=lambda input, shape: (shape, input.dtype))
op(
    "new_arange(Tensor input, start, end, step, dtype)",
    where="",
    tags=NONDIFF,
    meta=lambda start, end, step, dtype: ((max(0, math.ceil((end - start) / step)),), dtype),
)
