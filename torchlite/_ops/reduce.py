"""Reductions over dimensions."""

from __future__ import annotations

import math

from .._dispatch import NONDIFF, layouts, op
from .._dispatch.shapes import reduced, wrap_dims
from .._types.dtypes import bool_, int64, uint8


def spread(F, g, shape, dim, keepdim):
    """A reduction's gradient (or result) expanded to the input's shape."""
    if dim is not None and not keepdim and len(shape):
        dims = set(wrap_dims(dim, len(shape)))
        g = F.reshape(g, tuple(1 if d in dims else n for d, n in enumerate(shape)))
    return F.expand(g, shape)


def _count(shape, dim) -> int:
    return math.prod(shape[d] for d in wrap_dims(dim, len(shape))) if len(shape) else 1


def _sum_dtype(input, dtype):
    return dtype or (int64 if input.dtype.category < 2 else input.dtype)


def _extreme_vjp(F, g, input, dim, keepdim, out):
    """Spread equally over the places that hold the extreme value, or NaN where that is it."""
    value = spread(F, out, input.shape, dim, keepdim)
    hit = F.to(F.logical_or(F.eq(input, value), F.logical_and(F.isnan(input), F.isnan(value))), F.dtype_of(g))
    count = F.sum(hit, dim, True)
    return F.div(F.mul(spread(F, g, input.shape, dim, keepdim), hit), F.expand(count, input.shape))


op(
    "sum(Tensor input, dim=None, keepdim=False, *, dtype=None)",
    meta=lambda input, dim, keepdim, dtype: (reduced(input.shape, dim, keepdim), _sum_dtype(input, dtype)),
    vjp={
        "input": lambda F, g, input_shape, input_dtype, dim, keepdim, dtype: spread(
            F, g if dtype is None else F.to(g, input_dtype), input_shape, dim, keepdim
        )
    },
    doc="""The sum of all elements, or over `dim` (an int or several); integers and bools are summed as int64, or as
    `dtype`.

    >>> torch.sum(torch.tensor([[1, 2], [3, 4]]), 0)
    tensor([4, 6])
    """,
)
op(
    "mean(Tensor input, dim=None, keepdim=False, *, dtype=None)",
    meta=lambda input, dim, keepdim, dtype: (reduced(input.shape, dim, keepdim), dtype or input.dtype),
    vjp={
        "input": lambda F, g, input_shape, input_dtype, dim, keepdim: F.to(
            spread(F, F.div(g, max(_count(input_shape, dim), 1)), input_shape, dim, keepdim), input_dtype
        )
    },
    doc="""The mean of all elements, or over `dim` (an int or several). RuntimeError for integers unless `dtype` is a
    float one.

    >>> torch.mean(torch.tensor([1., 2.]))
    tensor(1.5000)
    """,
    layout=layouts.contiguous,
)


def _nonempty(name, kind, words, dtype=None):
    """The shape rule of reductions that choose an element: there must be one."""

    def rule(input, dim, keepdim):
        if 0 in input.shape:
            if dim is None or dim == ():
                raise kind(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.{words}")
            for d in wrap_dims(dim, len(input.shape)):
                if input.shape[d] == 0:
                    raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return reduced(input.shape, dim, keepdim), dtype or input.dtype

    return rule


for _name in ("amax", "amin"):
    op(
        f"{_name}(Tensor input, dim=(), keepdim=False)",
        vjp={"input": _extreme_vjp},
        meta=_nonempty(_name, RuntimeError, " Specify the reduction dim with the 'dim' argument."),
        doc=f"""The {"greatest" if _name == "amax" else "least"} element, of all or over `dim` (an int or several);
        its gradient is shared by equal ones. NaN wins.
        """,
        layout=layouts.contiguous,
    )
for _name in ("any", "all"):
    op(
        f"{_name}(Tensor input, dim=None, keepdim=False)",
        tags=NONDIFF,
        meta=lambda input, dim, keepdim: (
            reduced(input.shape, dim, keepdim),
            input.dtype if input.dtype is uint8 else bool_,
        ),
        doc=f"""Whether {_name} elements are true (not zero), of all or over `dim`: bool (uint8 for uint8).""",
        layout=layouts.contiguous,
    )
for _name in ("argmax", "argmin"):
    op(
        f"{_name}(Tensor input, dim=None, keepdim=False)",
        tags=NONDIFF,
        meta=_nonempty(_name, IndexError, "", int64),
        doc=f"""The index (int64) of the {"greatest" if _name == "argmax" else "least"} element: of the flattened
        tensor, or along `dim`; the first of equal ones.
        """,
    )
