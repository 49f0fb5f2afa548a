"""Memory layout of results: PyTorch's stride rules, which a record names (`Op.layout`) and kernels can ignore.

Shapes and strides are tuples; strides count elements. `apply_stride_rule` applies a rule after a kernel: a result with
other strides is copied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar

from .._settings.backend_flags import warn_once
from .op_record import POINTWISE, REGISTRY
from .shapes import contiguous_strides

Ints = tuple[int, ...]


def strides_of(raw) -> Ints:
    """The strides of a raw array in elements, as PyTorch counts them."""
    size = raw.dtype.itemsize or 1
    strides = tuple([s // size for s in raw.strides])
    return canonical_strides(raw.shape, strides) if 0 in strides else strides


@functools.lru_cache(8192)
def canonical_strides(shape: Ints, strides: Ints) -> Ints:
    """PyTorch's strides for a NumPy array. NumPy has stride 0 for all dimensions of an empty array, and for new
    dimensions of length one; PyTorch has those of a contiguous array.
    """
    if not any(strides) and 0 in shape:
        return contiguous_strides(shape)
    if 1 in shape:
        out = list(strides)
        for d in reversed(range(len(shape))):
            if shape[d] == 1 and out[d] == 0:
                out[d] = 1 if d + 1 == len(shape) else out[d + 1] * max(shape[d + 1], 1)
        return tuple(out)
    return strides


# -- orders of memory ------------------------------------------------------------------------------


def channels_last_strides(shape: Ints) -> Ints:
    """The strides of a batch of images (4 dimensions) or volumes (5) whose channels lie innermost."""
    order = (1, *range(len(shape) - 1, 1, -1), 0)
    out, step = [0] * len(shape), 1
    for d in order:
        out[d] = step
        step *= shape[d]
    return tuple(out)


@functools.lru_cache(4096)
def is_channels_last(shape: Ints, strides: Ints) -> bool:
    """True if elements lie with their channels innermost and without gaps; dimensions of length one do not count."""
    if len(shape) not in (4, 5):
        return False
    expected = channels_last_strides(shape)
    return all(n == 1 or s == e for n, s, e in zip(shape, strides, expected, strict=True))


@functools.lru_cache(4096)
def suggests_channels_last(shape: Ints, strides: Ints) -> bool:
    """True if ops that preserve memory format treat a tensor with these strides as channels last: strides grow in that
    order, dimensions of length one included, gaps allowed.
    """
    if len(shape) not in (4, 5) or strides[1] == 0:
        return False
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or strides[d] < least or d == 0 and least == strides[1]:
            return False
        least = strides[d] * max(shape[d], 1)
    return True


@functools.lru_cache(4096)
def is_dense(shape: Ints, strides: Ints) -> bool:
    """True if elements fill a block of memory, none twice."""
    if 0 in shape:
        return True
    expected = 1
    for step, n in sorted(zip(strides, shape, strict=True)):
        if n != 1:
            if step != expected:
                return False
            expected *= n
    return True


def _sorted_dims(shape: Ints, operands) -> list[int]:
    """The dimensions from the innermost outwards, as PyTorch's iterator orders them: each pair by the first operand
    whose strides tell.
    """

    def compare_dims(first: int, second: int) -> int:
        for strides in operands:
            a, b = strides[first], strides[second]
            if a == 0 or b == 0:
                continue
            if a != b:
                return -1 if a < b else 1
            if shape[first] > shape[second]:
                return 1
        return 0

    dims = list(reversed(range(len(shape))))
    for i in range(1, len(dims)):
        at = i
        for before in reversed(range(i)):
            found = compare_dims(dims[before], dims[at])
            if found > 0:
                dims[before], dims[at] = dims[at], dims[before]
                at = before
            elif found < 0:
                break
    return dims


def strides_from_dim_order(dims, shape: Ints) -> Ints:
    """The strides of memory in which the dimensions lie in an order, from the innermost outwards."""
    if list(dims) == list(reversed(range(len(shape)))):
        return contiguous_strides(shape)
    out, step = [0] * len(shape), 1
    for d in dims:
        out[d] = step
        step *= shape[d]
    return tuple(out)


@functools.lru_cache(4096)
def infer_dense_strides(shape: Ints, strides: Ints) -> Ints:
    """Strides of a new tensor like another one (`preserve_format`): the same if they are dense, else dense ones in the
    same order.
    """
    return strides if is_dense(shape, strides) else strides_from_dim_order(_sorted_dims(shape, (strides,)), shape)


def dim_order_of(shape: Ints, strides: Ints) -> Ints:
    """The dimensions from the outermost to the innermost in memory."""
    usual, last = is_contiguous(shape, strides), len(shape) == 4 and is_channels_last(shape, strides)
    if usual and not last:
        return tuple(range(len(shape)))
    return (0, 2, 3, 1) if last and not usual else tuple(reversed(_sorted_dims(shape, (strides,))))


@functools.lru_cache(8192)
def elementwise_output_strides(shape: Ints, operands: tuple[tuple[Ints, Ints], ...]) -> Ints:
    """The strides of a pointwise op's result of `shape` over operands of (shape, strides)."""
    alike = all(own == shape for own, _ in operands)
    if alike:
        contiguous = contiguous_strides(shape)
        if all(is_contiguous(shape, strides) for _, strides in operands):
            return contiguous
        if len(shape) == 4 and all(is_channels_last(shape, strides) for _, strides in operands):
            return channels_last_strides(shape)
        first = operands[0][1]
        if all(strides == first for _, strides in operands) and is_dense(shape, first):
            return first
    walks = []
    for own, strides in operands:
        lead = len(shape) - len(own)
        walks.append(
            (0,) * lead
            + tuple([0 if n == 1 and m != 1 else s for n, m, s in zip(own, shape[lead:], strides, strict=True)])
        )
    return strides_from_dim_order(_sorted_dims(shape, walks), shape)


def warn_of_strides_in_search(*operands: Any) -> None:
    """PyTorch's warning, once in a process, for boundaries or values that `searchsorted` has to copy."""
    for raw, name in zip(operands, ("boundary", "input value", "sorter"), strict=False):
        if getattr(raw, "ndim", 0) and not is_contiguous(
            raw.shape, tuple(s // raw.dtype.itemsize for s in raw.strides)
        ):
            warn_once(
                f"torch.searchsorted(): {name} tensor is non-contiguous, this will lower the performance due to extra "
                f"data copy when converting non-contiguous tensor to contiguous, please use contiguous {name} tensor "
                "if possible. This message will only appear once per program.",
                stacklevel=5,
            )


def is_contiguous(shape: Ints, strides: Ints) -> bool:
    """True if elements lie in row-major order without gaps; dimensions of length one do not count."""
    if 0 in shape:
        return True
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != expected:
                return False
            expected *= n
    return True


@functools.lru_cache(4096)
def f_contiguous_strides(shape: Ints) -> Ints:
    """The strides of a batch of matrices that are stored column by column, as LAPACK has them."""
    if len(shape) < 2:
        return contiguous_strides(shape)
    *batch, rows, columns = shape
    *outer, last, first = contiguous_strides((*batch, columns, rows))
    return (*outer, first, last)


def to_leaf_strides(table, gradient, leaf):
    """The gradient of a leaf with the leaf's strides if they are dense, else in row-major order. Dimensions of length
    one do not count.
    """
    shape, wanted = leaf.shape, strides_of(leaf)
    if not is_dense(shape, wanted):
        wanted = contiguous_strides(shape)
    have = strides_of(gradient)
    return (
        gradient
        if all(n == 1 or a == b for n, a, b in zip(shape, have, wanted, strict=True))
        else with_strides(table, gradient, wanted)
    )


# -- rules: (the call's arguments as raw arrays, a raw result, its number) -> strides ----------------


class StrideRule:
    """Rule for the strides of an op's results. None in place of strides leaves a result unchanged."""

    def __init__(self, strides: Callable):
        self.strides = strides
        self.__doc__ = strides.__doc__

    def wrap_composite(self, composite: Callable) -> Callable:
        """A composite over Tensors with its results laid out by the rule."""

        def run_composite(F, *args):
            out = composite(F, *args)
            raw = [getattr(a, "_tl_array", a) for a in args]
            if isinstance(out, tuple):
                return type(out)([self._apply_to_result(F, raw, each, at) for at, each in enumerate(out)])
            return self._apply_to_result(F, raw, out, 0)

        run_composite.__wrapped__ = composite  # type: ignore[attr-defined]
        return run_composite

    def _apply_to_result(self, F, args, out, at: int):
        data = getattr(out, "_tl_array", None)
        if data is None:
            return out
        if self in (like_first, pointwise) and 1 not in data.shape:
            row_major = _contiguity_test_for(data.__class__)
            if row_major(data) and all(row_major(a) for a in args if a.__class__ is data.__class__):
                return out
        strides = self.strides(args, data, at)
        return out if strides is None or strides == strides_of(data) else F._with_strides(out, strides)


@StrideRule
def contiguous(args, out, at) -> Ints:
    """Row-major."""
    return contiguous_strides(out.shape)


@StrideRule
def like_first(args, out, at) -> Ints:
    """The strides of the first argument, if the result has its shape."""
    first = args[0]
    return (
        infer_dense_strides(first.shape, strides_of(first))
        if first.shape == out.shape
        else contiguous_strides(out.shape)
    )


def _channels_last_strides_if(arrays, out) -> Ints:
    shape = out.shape
    last = any(x.ndim == len(shape) and suggests_channels_last(x.shape, strides_of(x)) for x in arrays)
    return channels_last_strides(shape) if last else contiguous_strides(shape)


@StrideRule
def suggest_memory_format(args, out, at) -> Ints:
    """Channels last if the first argument is."""
    return _channels_last_strides_if(args[:1], out)


@StrideRule
def preserve_channels_last(args, out, at) -> Ints:
    """Channels last if the first argument is dense in that order and not row-major, regardless of strides of length-one
    dimensions.
    """
    shape, strides = args[0].shape, strides_of(args[0])
    last = is_channels_last(shape, strides) and not is_contiguous(shape, strides)
    return channels_last_strides(out.shape) if last and out.ndim == len(shape) else contiguous_strides(out.shape)


@StrideRule
def pooling(args, out, at) -> Ints:
    """Channels last if the first argument is. For volumes also if only strides of length-one dimensions differ, or
    without a batch; 1-d results are row-major.
    """
    if _is_1d(args, out):
        return contiguous_strides(out.shape)
    if _is_unbatched_3d(args, out):
        shape, strides = args[0].shape, strides_of(args[0])
        whole, held = (1, *shape), (1, *strides)
        last = is_channels_last(whole, held) and not is_contiguous(shape, strides)
        return channels_last_strides((1, *out.shape))[1:] if last else contiguous_strides(out.shape)
    return (preserve_channels_last if len(out.shape) == 5 else suggest_memory_format).strides(args, out, at)


@StrideRule
def pooling_with_indices(args, out, at) -> Ints:
    """Like `pooling`, but 1-d inputs count as images of one row."""
    return _suggest_memory_format_1d(args[:1], out) if _is_1d(args, out) else pooling.strides(args, out, at)


@StrideRule
def upsampling(args, out, at) -> Ints | None:
    """Channels last if the first argument is; 1-d results stay as their ops return them."""
    return suggest_memory_format.strides(args, out, at) if len(out.shape) > 3 else None


def _window_ndim(args) -> int:
    """Number of spatial dimensions of the window or size in the second argument."""
    return len(args[1]) if args[1].__class__ in (tuple, list) else 0


def _is_unbatched_3d(args, out) -> bool:
    """True if the pooled input is a volume without a batch dimension."""
    return len(out.shape) == 4 and _window_ndim(args) == 3


def _is_1d(args, out) -> bool:
    """True if the pooled input is a batch of 1-d signals."""
    return len(out.shape) == 3 and _window_ndim(args) == 1


def _suggest_memory_format_1d(arrays, out) -> Ints:
    """PyTorch treats 1-d signals as images of one row."""

    def suggests(x) -> bool:
        (count, channels, length), (s, c, each) = x.shape, strides_of(x)
        return suggests_channels_last((count, channels, 1, length), (s, c, length * each, each))

    _, channels, length = out.shape
    last = any(x.ndim == 3 and suggests(x) for x in arrays)
    return (channels * length, 1, channels) if last else contiguous_strides(out.shape)


@StrideRule
def suggest_memory_format_2d(args, out, at) -> Ints:
    """Channels last if the first argument is a batch of 1-d signals or images (not volumes) in that format."""
    if _is_1d(args, out):
        return _suggest_memory_format_1d(args[:1], out)
    return _channels_last_strides_if(args[:1] if len(out.shape) == 4 and not _is_unbatched_3d(args, out) else (), out)


@StrideRule
def convolution(args, out, at) -> Ints:
    """Channels last if a convolution's input or weight is. Volumes of transposed ones (the seventh argument) are
    row-major. For 1-d ones only the weight counts.
    """
    transposed = args[6]
    if len(out.shape) == 3:
        return _suggest_memory_format_1d(args[1:2], out)
    return _channels_last_strides_if(() if transposed and len(out.shape) == 5 else args[:2], out)


def _sort_by_stride(dims, strides: Ints) -> list[int]:
    """Dimensions from the largest stride to the smallest."""
    return sorted(dims, key=lambda d: -strides[d])


def _fft_strides(shape: Ints, strides: Ints, dims) -> Ints:
    """The strides of a Fourier transform along `dims`, the last one innermost, over an input of some strides."""
    others = _sort_by_stride((d for d in range(len(shape)) if d not in dims), strides)
    return strides_from_dim_order([*reversed(dims), *reversed(others)], shape)


@StrideRule
def fft(args, out, at) -> Ints:
    """The transformed dimensions (the second argument) innermost, each kind in the order of the input's strides."""
    strides, dims = strides_of(args[0]), args[1]
    return _fft_strides(out.shape, strides, _sort_by_stride(dims, strides))


@StrideRule
def fft_real_input(args, out, at) -> Ints:
    """Like `fft`, with the last dimension innermost, because half of it is computed."""
    strides, dims = strides_of(args[0]), args[1]
    return _fft_strides(out.shape, strides, [*_sort_by_stride(dims[:-1], strides), dims[-1]])


@StrideRule
def fft_real_output(args, out, at) -> Ints:
    """Along all dimensions but the last one like `fft`, then along the last."""
    (first, *_), dims = args, args[1]
    strides = strides_of(first)
    if len(dims) > 1:
        strides = _fft_strides(first.shape, strides, _sort_by_stride(dims[:-1], strides))
    return _fft_strides(out.shape, strides, dims[-1:])


@StrideRule
def solve_left(args, out, at) -> Ints:
    """Column-major if a system is solved from the left (the fourth argument)."""
    return (f_contiguous if args[3] else contiguous).strides(args, out, at)


@StrideRule
def cat(args, out, at) -> Ints:
    """Channels last if all arrays of a list are."""
    last = all(x.ndim == out.ndim and suggests_channels_last(x.shape, strides_of(x)) for x in args[0])
    return channels_last_strides(out.shape) if last else contiguous_strides(out.shape)


@StrideRule
def stack(args, out, at) -> Ints:
    """The order of a list's arrays, one after the other, if all are channels last."""
    tensors, dim = args[0], args[1] if len(args) > 1 else 0
    first = tensors[0]
    dim = dim + first.ndim + 1 if dim < 0 else dim
    if dim == first.ndim or not all(suggests_channels_last(x.shape, strides_of(x)) for x in tensors):
        return contiguous_strides(out.shape)
    shape = first.shape
    strides = channels_last_strides((*shape[:dim], len(tensors) * shape[dim], *shape[dim + 1 :]))
    return (*strides[:dim], strides[dim] * shape[dim], *strides[dim:])


@StrideRule
def pointwise(args, out, at) -> Ints:
    """PyTorch's iterator layout for all tensor arguments."""
    arrays = tuple([(a.shape, strides_of(a)) for a in args if hasattr(a, "strides")])
    if not arrays or len(out.shape) < max([len(shape) for shape, _ in arrays]):  # reduced afterwards
        return contiguous_strides(out.shape)
    return elementwise_output_strides(out.shape, arrays)


@StrideRule
def f_contiguous(args, out, at) -> Ints:
    """Matrices column by column."""
    return f_contiguous_strides(out.shape)


@StrideRule
def nonzero_indices(args, out, at) -> Ints | None:
    """A table of indices, a column for each dimension."""
    return (1, *out.shape[:1]) if len(out.shape) == 2 else None


@StrideRule
def padding(args, out, at) -> Ints:
    """Depends on the mode, the third argument: circular padding allocates a new result."""
    return (contiguous if args[2] == "circular" else suggest_memory_format).strides(args, out, at)


@StrideRule
def indexing(args, out, at) -> Ints | None:
    """Row-major if the indexed array is; else the order of its dimensions, and of those of the index arrays."""
    first, index = args[0], args[1]
    strides = strides_of(first)
    if is_contiguous(first.shape, strides):
        return contiguous_strides(out.shape)
    kept: list[tuple[int, ...]] = [()]  # strides of the dimensions that no array takes, between those that arrays take
    arrays, axis = [], 0
    for item in index:
        if not hasattr(item, "dtype"):
            kept[-1] += strides[axis : axis + 1]
            axis += 1
            continue
        mask = item.dtype.kind == "b"
        arrays.append(((out.size,), (1,)) if mask else (item.shape, strides_of(item)))
        axis += item.ndim if mask else 1
        kept.append(())
    if not arrays:  # a basic index, of which the derivative of a write takes the elements
        return None
    kept[-1] += strides[axis:]
    count = max(len(shape) for shape, _ in arrays)
    if any(kept[1:-1]):  # arrays that other dimensions separate come first
        before, after = kept[0][:0], tuple([s for part in kept for s in part])
    else:
        before, after = kept[0], kept[-1]
    operands = [before + (0,) * count + after]
    for shape, steps in arrays:
        steps = tuple([0 if n == 1 else s for n, s in zip(shape, steps, strict=True)])
        operands.append((0,) * (len(before) + count - len(shape)) + steps + (0,) * len(after))
    return strides_from_dim_order(_sorted_dims(out.shape, operands), out.shape)


def f_contiguous_outputs(*which: int) -> StrideRule:
    """The outputs of these numbers column by column, the others row-major."""
    return StrideRule(lambda args, out, at: (f_contiguous if at in which else contiguous).strides(args, out, at))


# -- ops under a rule ------------------------------------------------------------------------------


def mark_strides_applied(kernel: Callable) -> Callable:
    """Mark a kernel that applies the record's stride rule itself."""
    kernel.is_laid_out = True  # type: ignore[attr-defined]
    return kernel


def apply_stride_rule(rule: StrideRule, kernel: Callable, table) -> Callable:
    """The kernel with its results laid out by a rule."""
    if getattr(kernel, "is_laid_out", False):
        return kernel
    array = table.array
    row_major = _contiguity_test_for(array)
    # Row-major arrays give a row-major result by these rules, so no further test is needed.
    simple, alone = rule in (like_first, pointwise, indexing), rule is contiguous
    of_list = rule in (cat, stack)

    def run(*args, **keywords):
        out = kernel(*args, **keywords)
        if out.__class__ is array:
            shape = out.shape
            plain = 1 not in shape
            if row_major(out) and (plain or _is_exactly_contiguous(shape, out.strides, out.dtype.itemsize)):
                if alone:
                    return out
                if simple:
                    for a in args:
                        if a.__class__ is array and not (
                            row_major(a) and (plain or a.shape == shape and a.strides == out.strides)
                        ):
                            break
                    else:
                        return out
                elif of_list:
                    if len(shape) < 4:  # none is channels last
                        return out
                    for a in args[0]:
                        steps = a.strides  # channels do not lie innermost, or the whole test tells
                        if 0 < steps[-1] < steps[1] or not suggests_channels_last(a.shape, strides_of(a)):
                            return out
            return with_strides(table, out, rule.strides(args, out, 0))
        if out.__class__ is tuple:
            return tuple(
                [
                    with_strides(table, each, rule.strides(args, each, at))
                    if each.__class__ is array
                    and not (alone and _is_exactly_contiguous(each.shape, each.strides, each.dtype.itemsize))
                    else each
                    for at, each in enumerate(out)
                ]
            )
        return out

    run.__name__ = getattr(kernel, "__name__", "kernel")
    # For callers that pass the array to write, whose strides are given, and for those whose arrays are all row-major.
    run.__wrapped__ = run.without_rule = kernel  # type: ignore[attr-defined]
    return run


@functools.lru_cache(8192)
def _is_exactly_contiguous(shape: Ints, strides: Ints, itemsize: int) -> bool:
    """True if strides in bytes are exactly row-major, including those of dimensions of length one."""
    return strides == tuple([step * itemsize for step in contiguous_strides(shape)])


class _UfuncRule:
    """True if ufuncs follow the rule too: from the first use of channels last in a program. Other programs do not pay
    for it.
    """

    asked = False
    tables: ClassVar[list] = []


def apply_rule_to_ufuncs(table=None) -> None:
    """Apply the iterator's stride rule to all pointwise kernels with several operands: in a new table if channels last
    was used before, and in all tables at its first use.
    """
    if table is not None:
        _UfuncRule.tables.append(table)
        if not _UfuncRule.asked:
            return
    elif _UfuncRule.asked:
        return
    else:
        _UfuncRule.asked = True
    for each in _UfuncRule.tables if table is None else [table]:
        for op in REGISTRY.values():
            kernel = getattr(each, op.name)
            if op.tags & POINTWISE and op.layout is None and len(op.tensor_params) > 1 and not op.is_implicit:
                setattr(each, op.name, apply_stride_rule(pointwise, kernel, each))


@functools.cache
def _contiguity_test_for(array: type) -> Callable:
    """Fastest is-C-contiguous test for an array class."""
    if hasattr(array, "contiguous"):
        return attrgetter("contiguous")
    return attrgetter("flags.c_contiguous") if hasattr(array, "flags") else lambda raw: False


def with_strides(table, raw, strides: Ints | None):
    """The elements of a raw array in memory with these dense strides; the array itself if it has them, or if strides is
    None.
    """
    have = strides_of(raw)
    if have == strides or strides is None:
        return raw
    shape = raw.shape
    if any(n > 1 and a != b for n, a, b in zip(shape, have, strides, strict=True)):
        dims = sorted(range(len(shape)), key=lambda d: (-strides[d], shape[d] != 1, d))
        raw = table.contiguous(table.permute(raw, tuple(dims)))
        raw = table.permute(raw, tuple([dims.index(d) for d in range(len(dims))]))
        if strides_of(raw) == strides:
            return raw
    return table._as_strided(raw, shape, strides)
