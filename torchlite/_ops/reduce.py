"""Reductions over dimensions."""

from __future__ import annotations

import math

from .._dispatch import NONDIFF, Out, Overlap, composite, memory_layout, op
from .._dispatch.node_names import all_or_dim_name
from .._dispatch.shapes import reduced_shape, wrap_dims
from .._types.dtypes import (
    BOOL,
    COMPLEX,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint64,
)


def expand_to_input(F, g, shape, dim, keepdim):
    """A reduction's gradient (or result) expanded to the input's shape."""
    if dim is not None and not keepdim and len(shape):
        dims = set(wrap_dims(dim, len(shape)))
        g = F.reshape(g, tuple(1 if d in dims else n for d, n in enumerate(shape)))
    return F.expand(g, shape)


def _reduced_numel(shape, dim) -> int:
    return math.prod(shape[d] for d in wrap_dims(dim, len(shape))) if len(shape) else 1


def _sum_dtype(input, dtype):
    return dtype or (int64 if input.dtype.category < 2 else input.dtype)


def _extreme_vjp(F, g, input, dim, keepdim, out):
    """Spread equally over the places that hold the extreme value, or NaN where that is it."""
    value = expand_to_input(F, out, input.shape, dim, keepdim)
    hit = F.to(F.logical_or(F.eq(input, value), F.logical_and(F.isnan(input), F.isnan(value))), F.dtype_of(g))
    count = F.sum(hit, dim, True)
    return F.div(F.mul(expand_to_input(F, g, input.shape, dim, keepdim), hit), F.expand(count, input.shape))


op(
    "sum(Tensor input, dim=None, keepdim=False, *, dtype=None)",
    shape_fn=lambda input, dim, keepdim, dtype: (reduced_shape(input.shape, dim, keepdim), _sum_dtype(input, dtype)),
    vjp={
        "input": lambda F, g, input_shape, input_dtype, dim, keepdim, dtype: expand_to_input(
            F, g if dtype is None else F.to(g, input_dtype), input_shape, dim, keepdim
        )
    },
    doc="""Computes the sum of the elements.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        dtype: The dtype of the sum. Default: int64 for bools and integers, else the input's.

    Example:
        >>> torch.sum(torch.tensor([[1, 2], [3, 4]]), 0)
        tensor([4, 6])

    See also:
        `torch.nansum`, `torch.cumsum`.
    """,
    out=Out(dtype_param=True),
    overlap=Overlap("allowed", "partial"),
    node_name=all_or_dim_name("Sum"),
)
op(
    "mean(Tensor input, dim=None, keepdim=False, *, dtype=None)",
    shape_fn=lambda input, dim, keepdim, dtype: (reduced_shape(input.shape, dim, keepdim), dtype or input.dtype),
    vjp={
        "input": lambda F, g, input_shape, input_dtype, dim, keepdim: F.to(
            expand_to_input(F, F.div(g, max(_reduced_numel(input_shape, dim), 1)), input_shape, dim, keepdim),
            input_dtype,
        )
    },
    doc="""Computes the mean of the elements.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        dtype: The dtype of the mean. Default: the input's.

    Raises:
        RuntimeError: The dtype is not floating point or complex.

    Example:
        >>> torch.mean(torch.tensor([1.0, 2.0]))
        tensor(1.5000)

    See also:
        `torch.nanmean`, `torch.median`.
    """,
    layout=memory_layout.contiguous,
    out=Out(dtype_param="float"),
    overlap=Overlap("allowed", "partial"),
    node_name=all_or_dim_name("Mean"),
)


def _make_nonempty_rule(name, kind, words, dtype=None):
    """The shape rule of reductions that choose an element: there must be one."""

    def rule(input, dim, keepdim):
        if 0 in input.shape:
            if dim is None or dim == ():
                raise kind(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.{words}")
            for d in wrap_dims(dim, len(input.shape)):
                if input.shape[d] == 0:
                    raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return reduced_shape(input.shape, dim, keepdim), dtype or input.dtype

    return rule


for _name in ("amax", "amin"):
    op(
        f"{_name}(Tensor input, dim=(), keepdim=False)",
        vjp={"input": _extreme_vjp},
        shape_fn=_make_nonempty_rule(_name, RuntimeError, " Specify the reduction dim with the 'dim' argument."),
        doc=f"""Computes the {"greatest" if _name == "amax" else "least"} element.

        Equal elements share the gradient. NaN is the result where there is one.

        Args:
            dim: The dimension, or a tuple of them. Default: all.

        Raises:
            RuntimeError: There are no elements.

        Example:
            >>> torch.{_name}(torch.tensor([[1, 3], [2, 4]]), 1)
            tensor({"[3, 4]" if _name == "amax" else "[1, 2]"})

        See also:
            `torch.{_name[1:]}`, which returns the index too.
        """,
        out=Out(
            "same",
            "Expected the dtype for input and out to match, but got {want} for input's dtype and {got} for out's "
            "dtype.",
        ),
        overlap=Overlap("allowed", "partial"),
        layout=memory_layout.contiguous,
    )
for _name in ("any", "all"):
    op(
        f"{_name}(Tensor input, dim=None, keepdim=False)",
        tags=NONDIFF,
        shape_fn=lambda input, dim, keepdim: (
            input.shape if dim == () else reduced_shape(input.shape, dim, keepdim),
            input.dtype if input.dtype is uint8 else bool_,
        ),
        doc=f"""Tests whether {_name} elements are true, that is not zero.

        Args:
            dim: The dimension, or a tuple of them; each element is tested if that is empty. Default: all.

        Returns:
            A bool tensor, or uint8 for uint8.

        Example:
            >>> torch.{_name}(torch.tensor([[False, True], [True, True]]), 1)
            tensor({"[True, True]" if _name == "any" else "[False,  True]"})
        """,
        out=Out("same", "{name} only supports bool tensor for result, got: {got}", accepts=("uint8",)),
        overlap=Overlap("allowed", "partial"),
        layout=memory_layout.contiguous,
    )
for _name in ("argmax", "argmin"):
    op(
        f"{_name}(Tensor input, dim=None, keepdim=False)",
        tags=NONDIFF,
        shape_fn=_make_nonempty_rule(_name, IndexError, "", int64),
        doc=f"""Returns the index (int64) of the {"greatest" if _name == "argmax" else "least"} element.

        It is the first of equal ones.

        Args:
            dim: The dimension. Default: none, the index into the flattened input.

        Raises:
            RuntimeError: The dtype is complex or bool.
            IndexError: There are no elements.

        Example:
            >>> torch.{_name}(torch.tensor([2, 3, 1]))
            tensor({1 if _name == "argmax" else 2})

        See also:
            `torch.{_name[3:]}`.
        """,
        out=Out("same"),
        overlap=Overlap("allowed", "partial"),
        refuses={
            ("input", COMPLEX): RuntimeError(f"{_name}(): does not support complex input"),
            ("input", BOOL): RuntimeError(f"{_name}(): does not support bool input"),
        },
    )


_HASHED = (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64)


@composite(
    "hash_tensor(Tensor input, dim=None, *, keepdim=False, mode=0)",
    out=Out("same", "Expected result to be of dtype uint64, but got {got}"),
)
def hash_tensor(F, input, dim, keepdim, mode):
    """Computes the exclusive or of the elements' bits.

    Floats are read as float64, others as int64.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        mode: 0, the exclusive or; there is no other.

    Returns:
        A uint64 tensor.

    Example:
        >>> torch.hash_tensor(torch.tensor([1, 2, 5]))
        tensor(6, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dims = wrap_dims(dim, input.ndim) if input.ndim else wrap_dims(dim, 1)[:0]
    if 0 in input.shape:
        if dim is None or dim == ():
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        for d in dims:
            if input.shape[d] == 0:
                raise RuntimeError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    if input.dtype not in _HASHED and input.device.type != "meta":
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{input.dtype.scalar_name}'")
    wide = input.detach().to(float64 if input.is_floating_point() else int64)
    bits = wide.view(int64) if input.is_floating_point() else wide
    for d in dims:
        while (size := bits.shape[d]) > 1:  # the halves onto each other, and the odd one to the first
            half = size // 2
            folded = F.bitwise_xor(bits.narrow(d, 0, half), bits.narrow(d, half, half))
            if size % 2:
                first = F.bitwise_xor(folded.narrow(d, 0, 1), bits.narrow(d, size - 1, 1))
                folded = F.cat([first, folded.narrow(d, 1, half - 1)], d)
            bits = folded
    return bits.reshape(reduced_shape(input.shape, dim if input.ndim else None, keepdim)).view(uint64)
