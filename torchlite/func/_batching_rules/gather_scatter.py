"""Batching rules of gather, scatter and index ops."""

from __future__ import annotations

import math

from ..._dispatch import F
from ..._dispatch.interceptors import ReenabledInterceptor
from ..._dispatch.shapes import wrap_dim
from ..._tensor import Tensor
from .._batched_tensor import batch_dim_first, is_batched_at
from .rule_helpers import (
    align_ndim,
    composite_rule,
    elementwise_rule,
    flatten_examples,
    logical_ndim,
    promote_operands,
    rule,
    run_below_level,
    to_batch,
)

rule("_masked_fill", kind="pointwise")(elementwise_rule)


@rule("_masked_fill_tensor", kind="pointwise")
def _masked_fill_tensor(level, op, values):
    x, mask, value = values
    if not is_batched_at(value, level):
        return elementwise_rule(level, op, values)
    with ReenabledInterceptor(level):
        return F.where(mask, F.to(value, x.dtype), x)


def _unsqueeze_numbers(tensor):
    """Return scalar examples as vectors of length one."""
    return F.unsqueeze(tensor, 1) if tensor.ndim == 1 else tensor


@rule("gather", "scatter", "scatter_add", "scatter_reduce", kind="index")
def _along_dim_rule(level, op, values):
    """Move all batch dimensions first and shift the dimension argument."""
    x, dim = values[:2]
    ndim = logical_ndim(x)
    made = [_unsqueeze_numbers(to_batch(level, v)) if isinstance(v, Tensor) else v for v in values]
    made[1] = wrap_dim(dim, ndim) + 1
    out = run_below_level(op, made)
    return level.wrap(F.squeeze(out, 1) if out.ndim == 2 and not logical_ndim(values[2]) and not ndim else out)


@rule("index_select", kind="index")
def _index_select(level, op, values):
    x, dim, index = values
    ndim = logical_ndim(x)
    place = wrap_dim(dim, ndim)
    if not is_batched_at(index, level):
        out = F.index_select(_unsqueeze_numbers(batch_dim_first(x)), place + 1, index)
        return level.wrap(F.squeeze(out, 1) if not ndim else out)
    rows = _unsqueeze_numbers(batch_dim_first(index))
    if not is_batched_at(x, level):
        base = F.unsqueeze(x, 0) if not ndim else x
        out = F.index_select(base, place, F.reshape(rows, (rows.shape[0] * rows.shape[1],)))
        shape = tuple(out.shape)
        out = F.reshape(out, (*shape[:place], *rows.shape, *shape[place + 1 :]))
        out = F.permute(out, place, *(d for d in range(out.ndim) if d != place))
        return level.wrap(F.squeeze(out, place + 1) if not ndim else out)
    base = _unsqueeze_numbers(batch_dim_first(x))
    out = F.gather(base, place + 1, _expand_row_indices(rows, base, place))
    return level.wrap(F.squeeze(out, 1) if not ndim else out)


def _expand_row_indices(rows, like, place: int):
    """Return batched row numbers expanded over the other dimensions."""
    shape = tuple(like.shape)
    for _ in range(place):
        rows = F.unsqueeze(rows, 1)
    for _ in range(len(shape) - rows.ndim):
        rows = F.unsqueeze(rows, -1)
    return F.expand(rows, (*shape[: place + 1], rows.shape[place + 1], *shape[place + 2 :]))


@rule("index_add", "index_copy", "index_fill", kind="index")
def _index_write(level, op, values):
    x, dim, index, source, *rest = values
    ndim = logical_ndim(x)
    place = wrap_dim(dim, ndim)
    base = _unsqueeze_numbers(to_batch(level, x))
    filling = op.name == "index_fill"
    value = source if not isinstance(source, Tensor) or filling else _unsqueeze_numbers(to_batch(level, source))
    if not is_batched_at(index, level) and not (filling and is_batched_at(source, level)):
        out = run_below_level(op, [base, place + 1, index, value, *rest])
        return level.wrap(F.squeeze(out, 1) if not ndim else out)
    rows = _unsqueeze_numbers(to_batch(level, index))
    if filling:
        rows = F.where(F.lt(rows, 0), F.add(rows, base.shape[place + 1]), rows)
    rows = _expand_row_indices(rows, base, place)
    if filling:
        if isinstance(source, Tensor):
            value = F.to(align_ndim(level, source, max(ndim, 1)), x.dtype)
            out = F.scatter(base, place + 1, rows, F.expand(value, rows.shape))
        else:
            out = F.scatter(base, place + 1, rows, value=source)
    elif op.name == "index_add":
        alpha = rest[0] if rest else 1
        out = F.scatter_add(base, place + 1, rows, value if alpha == 1 else F.mul(value, alpha))
    else:
        out = F.scatter(base, place + 1, rows, value)
    return level.wrap(F.squeeze(out, 1) if not ndim else out)


@rule("take", kind="index")
def _take(level, op, values):
    x, index = values
    if not is_batched_at(x, level):
        return level.wrap(F.take(x, batch_dim_first(index)))
    base, places = flatten_examples(batch_dim_first(x)), to_batch(level, index)
    rows = flatten_examples(places)
    rows = F.where(F.lt(rows, 0), F.add(rows, base.shape[1]), rows)
    return level.wrap(F.reshape(F.gather(base, 1, rows), places.shape))


@rule("put", kind="index")
def _put(level, op, values):
    x, index, source, accumulate = values
    batched = to_batch(level, x)
    base, rows, value = (
        flatten_examples(batched),
        flatten_examples(to_batch(level, index)),
        flatten_examples(to_batch(level, source)),
    )
    rows = F.where(F.lt(rows, 0), F.add(rows, base.shape[1]), rows)
    out = F.scatter_add(base, 1, rows, value) if accumulate else F.scatter(base, 1, rows, value)
    return level.wrap(F.reshape(out, batched.shape))


@rule("_index_put", kind="index")
def _index_put(level, op, values):
    from .indexing import BatchedIndex, is_mask, write_item

    x, index, value, accumulate = values
    if (
        len(index) == 1
        and is_mask(index[0])
        and is_batched_at(index[0], level)
        and not accumulate
        and value.numel() == 1
    ):
        copied = F.clone(to_batch(level, x))
        write_item(level, level.wrap(copied), index, value)
        return level.wrap(copied)
    items = tuple(slice(None) if i is None else i for i in index) if index.__class__ in (tuple, list) else (index,)
    places = BatchedIndex(level, x.shape, items, x._tl_kernels, True)
    base = places.arranged(to_batch(level, x))
    value = align_ndim(level, value, places.ndim + len(places.rest))
    shape = F._index(base.detach(), places.arrays).shape
    target = list(places.placed(F.expand(F._new_zeros(base.detach(), ()), shape)).shape)
    value = places.unplaced(F.expand(value, tuple(target)))
    return level.wrap(places.back(F._index_put(base, places.arrays, value, accumulate)))


@rule("embedding", kind="index")
def _embedding(level, op, values):
    weight, indices, padding, *rest = values
    if not is_batched_at(weight, level):
        return level.wrap(F.embedding(weight, batch_dim_first(indices), padding, *rest))
    table = batch_dim_first(weight)
    if padding is not None and padding >= 0:  # the padding row gets no gradient
        hidden = F.unsqueeze(
            F.eq(
                F._new_arange(
                    indices if not is_batched_at(indices, level) else batch_dim_first(indices),
                    0,
                    weight.shape[0],
                    1,
                    indices.dtype,
                ),
                padding,
            ),
            -1,
        )
        table = F.where(hidden, table.detach(), table)
    size, count, width = table.shape
    places = to_batch(level, indices)
    first = F.mul(F._new_arange(places, 0, size, 1, indices.dtype), count)
    places = F.add(places, F.reshape(first, (size, *[1] * (places.ndim - 1))))
    return level.wrap(F.embedding(F.reshape(table, (size * count, width)), places, -1, *rest))


@composite_rule("masked_scatter")
def _masked_scatter(F, input, mask, source):
    shape = tuple(F.add(F._zeros_like(input), F.to(mask, input.dtype)).shape)
    input, mask = F.expand(input, shape), F.expand(mask, shape)
    numel = math.prod(shape)
    from ..._types.dtypes import int64

    order = F.sub(F.cumsum(F.to(F.reshape(mask, (numel,)), int64), 0), 1)
    source = F.reshape(source, (math.prod(source.shape),))
    order = F.clamp(order, 0, max(source.shape[0] - 1, 0))
    return F.where(mask, F.reshape(F.gather(source, 0, order), shape), input)


@rule("searchsorted", kind="index")
def _searchsorted(level, op, values):
    sequence, found, *rest = values
    sorter = rest[-1]
    if not is_batched_at(sequence, level) and not is_batched_at(sorter, level) and logical_ndim(sequence) == 1:
        return level.wrap(run_below_level(op, [sequence, batch_dim_first(found), *rest]))
    if not isinstance(found, Tensor):
        found = F._new_full(sequence if not is_batched_at(sequence, level) else batch_dim_first(sequence), (), found)
    values_ = to_batch(level, found)
    shape = values_.shape
    if logical_ndim(sequence) == 1:
        values_ = flatten_examples(values_)
    rest[-1] = None if sorter is None else to_batch(level, sorter)
    return level.wrap(F.reshape(run_below_level(op, [to_batch(level, sequence), values_, *rest]), shape))


@composite_rule("isin")
def _isin(F, elements, test_elements, assume_unique, invert):
    if not isinstance(test_elements, Tensor):
        found = F.eq(elements, test_elements)
    else:
        tests = F.reshape(test_elements, (math.prod(test_elements.shape),))
        if isinstance(elements, Tensor):
            found = F.any(F.eq(F.unsqueeze(elements, -1), tests), -1)
        else:
            found = F.any(F.eq(tests, elements), 0)
    return F.logical_not(found) if invert else found


__all__ = ["promote_operands"]
