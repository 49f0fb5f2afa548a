"""Cumulative sums, products and extremes.

The derivatives of cumprod and logcumsumexp are linear recurrences (each gradient is the next one times a factor, plus a
term). In this form they need no division, so zeros in the input are no special case, and exponents never overflow.
"""

from torchlite._dispatch import INPLACE, Out, memory_layout, op

from .._types.dtypes import BOOL, COMPLEX, INT, int64
from ._gradient_helpers import shift_towards_end


def _sum_dtype(input, dtype):
    return dtype or (int64 if input.dtype.category < 2 else input.dtype)


def _flip_dim(F, x, dim):
    return F.flip(x, (dim,)) if x.ndim else x


def _shift_towards_front(F, x, dim, fill):
    """`x` shifted by one towards the front along `dim`; `fill` enters at the end."""
    size = x.shape[dim]
    tail = F._full_like(F._slice(x, dim, 0, 1, 1), fill)
    return F.cat([F._slice(x, dim, 1, size, 1), tail], dim)


def _backward_recurrence(F, factor, term, dim):
    """r[last] = term[last], r[i] = term[i] + factor[i+1] * r[i+1]."""
    return _flip_dim(
        F,
        F._linear_recurrence(_flip_dim(F, _shift_towards_front(F, factor, dim, 0), dim), _flip_dim(F, term, dim), dim),
        dim,
    )


def _is_empty(x):
    return x.ndim == 0 or 0 in x.shape


def _recurrence_vjp(F, g, factor, out, dim):
    if _is_empty(out):
        return F._zeros_like(g), g
    term = _backward_recurrence(F, F.conj(factor), g, dim)
    return F.mul(term, F.conj(shift_towards_end(F, out, dim, 0))), term


op(
    "_linear_recurrence(Tensor factor, Tensor term, dim)",
    where="",
    shape_fn=lambda factor, term, dim: (term.shape, term.dtype),
    vjp={("factor", "term"): _recurrence_vjp},
    doc="out[0] = term[0], out[i] = term[i] + factor[i] * out[i-1] along `dim`.",
)


def _cumsum_vjp(F, g, input_dtype, dim):
    return F.to(_flip_dim(F, F.cumsum(_flip_dim(F, g, dim), dim), dim), input_dtype)


op(
    "cumsum(Tensor input, dim, *, dtype=None)",
    shape_fn=lambda input, dim, dtype: (input.shape, _sum_dtype(input, dtype)),
    vjp={"input": _cumsum_vjp},
    tags=INPLACE,
    doc="""Computes the running sum along a dimension.

    Args:
        dtype: The dtype of the result. Default: int64 for bools and integers, else the input's.

    Example:
        >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
        tensor([1, 3, 6])

    See also:
        `torch.logcumsumexp`.
    """,
    layout=memory_layout.contiguous,
    out=Out("unchecked", dtype_param=True),
    refuses={("dtype", BOOL): "cumsum_out_cpu"},
)


def _cumprod_vjp(F, g, input, input_dtype, dim):
    """d out[k] / d x[i] is the product of all x[j], j <= k, but x[i]: what came before i, times a recurrence over what
    follows.
    """
    if input.ndim == 0:
        return F.to(g, input_dtype)
    if 0 in input.shape:
        return F.to(g, input_dtype)
    x = F.conj(F.to(input, F.dtype_of(g)))
    before = shift_towards_end(F, F.cumprod(x, dim), dim, 1)
    return F.to(F.mul(before, _backward_recurrence(F, x, g, dim)), input_dtype)


op(
    "cumprod(Tensor input, dim, *, dtype=None)",
    shape_fn=lambda input, dim, dtype: (input.shape, _sum_dtype(input, dtype)),
    vjp={"input": _cumprod_vjp},
    tags=INPLACE,
    doc="""Computes the running product along a dimension.

    Args:
        dtype: The dtype of the result. Default: int64 for bools and integers, else the input's.

    Example:
        >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
        tensor([1, 2, 6])
    """,
    layout=memory_layout.contiguous,
    out=Out("unchecked", dtype_param=True),
    refuses={("dtype", BOOL): "cumprod_out_cpu"},
)


def _running_vjp(F, g, input_shape, out1, dim):
    zeros = F._new_zeros(g[0], input_shape)
    return F.scatter_add(zeros, dim, out1, g[0]) if input_shape else g[0]


for _name, _word in (("cummax", "greatest"), ("cummin", "least")):
    op(
        f"{_name}(Tensor input, dim)",
        outputs=("values", "indices"),
        nondiff=(1,),
        vjp={"input": _running_vjp},
        shape_fn=lambda input, dim: [(input.shape, input.dtype), (input.shape, int64)],
        doc=f"""Computes the {_word} element so far along a dimension, and its index.

        The index is that of the last of equal elements. NaN counts as beyond all others.

        Returns:
            A named tuple ``(values, indices)``, both of the input's shape; `indices` is int64.

        Example:
            >>> torch.{_name}(torch.tensor([2, 3, 1]), 0).values
            tensor({"[2, 3, 3]" if _name == "cummax" else "[2, 2, 1]"})
        """,
        out=Out("same", "expected scalar_type {want} but found {got}"),
        layout=memory_layout.contiguous,
        refuses={("input", COMPLEX): f"{_name}_cpu"},
    )


def _logcumsumexp_vjp(F, g, input, out, dim):
    """Sum over k >= i of g[k] exp(x[i] - out[k]), computed through exp(out[i] - out[i+1]) so that no exponent is
    positive.
    """
    if _is_empty(input):
        return F.mul(g, F.conj(F.exp(F.sub(input, out))))

    def ratio(a, b):
        gap = F.sub(a, b)
        equal = F.logical_and(F.isnan(gap), F.logical_not(F.isnan(F.add(a, b))))  # infinities of one sign, not a NaN
        return F.conj(F.exp(F._where(equal, F._zeros_like(gap), gap)))

    first = F._slice(out, dim, 0, 1, 1)  # as long as the others, so that its unused factor is 1
    before = F.cat([first, F._slice(out, dim, 0, out.shape[dim] - 1, 1)], dim) if out.ndim else out
    total = _backward_recurrence(F, ratio(before, out), g, dim)
    return F.mul(ratio(input, out), total)


op(
    "logcumsumexp(Tensor input, dim)",
    shape_fn=lambda input, dim: (input.shape, input.dtype),
    vjp={"input": _logcumsumexp_vjp},
    doc="""Computes the logarithm of the running sum of exponentials along a dimension, without overflow.

    Raises:
        NotImplementedError: `input` is a tensor of integers or bools.

    Example:
        >>> torch.logcumsumexp(torch.tensor([0.0, 0.0]), 0)
        tensor([0.0000, 0.6931])

    See also:
        `torch.logsumexp`.
    """,
    layout=memory_layout.contiguous,
    out=Out("same", "expected scalar_type {want} but found {got}"),
    refuses={("input", INT): "logcumsumexp_out_cpu", ("input", BOOL): "logcumsumexp_out_cpu"},
)
