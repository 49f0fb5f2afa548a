"""Variance, order statistics, counts, histograms and integrals: reductions other than sum, mean and extremes."""

import math
import warnings

from torchlite._dispatch import INT_TO_FLOAT, NONDIFF, Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.shape_and_value_checks import any_true
from torchlite._dispatch.shapes import reduced_shape, wrap_dim, wrap_dims

from .._dispatch.node_names import all_or_dim_name
from .._types.dtypes import BOOL, COMPLEX, float32, float64, int64
from ._gradient_helpers import count_of, keep_dims, share_gradient_evenly, shift_towards_end, to_chosen, to_named_tuple
from .node_graphs import extreme_graph, quantile_graph

# --- variance ------------------------------------------------------------------


def _var_rule(input, dim, correction, keepdim):
    return reduced_shape(input.shape, dim, keepdim), input.dtype.to_real()


def _subtract_mean(F, input, dim):
    return F.sub(input, F.mean(input, None if dim == () else dim, True))


def _var_vjp(F, g, input, input_shape, dim, correction, keepdim):
    free = count_of(input_shape, dim) - correction
    scale = 2.0 / free if free > 0 else math.inf
    g = F.to(keep_dims(F, g, input_shape, dim, keepdim), F.dtype_of(input))
    return F.mul(F.mul(g, scale), _subtract_mean(F, input, dim))


def _std_vjp(F, g, input, input_shape, out, dim, correction, keepdim):
    safe = F._where(F.eq(out, 0), F._ones_like(out), out)
    g = F._where(F.eq(out, 0), F._zeros_like(g), F.div(g, F.mul(safe, 2.0)))
    return _var_vjp(F, g, input, input_shape, dim, correction, keepdim)


op(
    "_var_correction(Tensor input, dim=None, correction=1, keepdim=False)",
    where="",
    shape_fn=_var_rule,
    vjp={"input": _var_vjp},
    layout=memory_layout.contiguous,
    node_name="VarBackward0",
)
op(
    "_std_correction(Tensor input, dim=None, correction=1, keepdim=False)",
    where="",
    shape_fn=_var_rule,
    vjp={"input": _std_vjp},
    layout=memory_layout.contiguous,
    node_name="StdBackward0",
)


def _spread_args(name, input, dim, unbiased, correction):
    """(dim, correction) of the overloads of var and std. `var(x, True)` means unbiased."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments: 'unbiased' and 'correction' exclude each other"
            )
        correction = 1 if unbiased else 0
    if name.endswith("_mean") and input.dtype.category < 2:
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    correction = 1 if correction is None else correction
    dims = wrap_dims(dim, input.ndim)
    count = 1
    for d in dims if input.ndim else ():
        count *= input.shape[d]
    if count - correction <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            UserWarning,
            stacklevel=4,
        )
    return dims if input.ndim else (), correction


_VAR_STD_SIGNATURE = "(Tensor input, dim=None, unbiased=None, keepdim=False, *, correction=None)"


@composite("var" + _VAR_STD_SIGNATURE, layout=memory_layout.contiguous, overlap=Overlap("allowed", "partial"))
def var(F, input, dim, unbiased, keepdim, correction):
    r"""Computes the variance.

    .. math::

        \frac{1}{n - c} \sum_i |x_i - \bar{x}|^2

    :math:`c` is `correction`. The result of a complex input is real.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        unbiased: Whether `correction` is 1, else 0.
        correction: The number subtracted from the count in the divisor. Default: 1.

    Raises:
        RuntimeError: The dtype is neither floating point nor complex.

    Example:
        >>> torch.var(torch.tensor([1.0, 2.0, 3.0]))
        tensor(1.)

    See also:
        `torch.std`, `torch.var_mean`.
    """
    return F._var_correction(input, *_spread_args("var", input, dim, unbiased, correction), keepdim)


@composite("std" + _VAR_STD_SIGNATURE, layout=memory_layout.contiguous, overlap=Overlap("allowed", "partial"))
def std(F, input, dim, unbiased, keepdim, correction):
    """Computes the standard deviation: the square root of the variance.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        unbiased: Whether `correction` is 1, else 0.
        correction: The number subtracted from the count in the divisor. Default: 1.

    Example:
        >>> torch.std(torch.tensor([1.0, 2.0, 3.0]))
        tensor(1.)

    See also:
        `torch.var`.
    """
    return F._std_correction(input, *_spread_args("std", input, dim, unbiased, correction), keepdim)


def _mean_over(F, input, dim, keepdim):
    return F.mean(input, None if dim == () else dim, keepdim)


def _mean_of_pair_vjp(F, g, input_shape, dim, keepdim):
    g = F.div(keep_dims(F, g, input_shape, dim, keepdim), float(count_of(input_shape, dim) or 1))
    return F.expand(g, input_shape)


def _var_mean_vjp(F, g, input, input_shape, dim, correction, keepdim):
    of_var = None if g[0] is None else _var_vjp(F, g[0], input, input_shape, dim, correction, keepdim)
    if g[1] is None:
        return of_var
    of_mean = _mean_of_pair_vjp(F, g[1], input_shape, dim, keepdim)
    return of_mean if of_var is None else F.add(of_var, of_mean)


def _std_mean_vjp(F, g, input, input_shape, out0, dim, correction, keepdim):
    of_std = None if g[0] is None else _std_vjp(F, g[0], input, input_shape, out0, dim, correction, keepdim)
    if g[1] is None:
        return of_std
    of_mean = _mean_of_pair_vjp(F, g[1], input_shape, dim, keepdim)
    return of_mean if of_std is None else F.add(of_std, of_mean)


for _name, _spread, _vjp in (("var", "_var_correction", _var_mean_vjp), ("std", "_std_correction", _std_mean_vjp)):
    op(
        f"_{_name}_mean(Tensor input, dim, correction, keepdim)",
        where="",
        outputs=(_name, "mean"),
        composite=lambda F, input, dim, correction, keepdim, spread=_spread: (
            getattr(F, spread)(input, dim, correction, keepdim),
            _mean_over(F, input, dim, keepdim),
        ),
        shape_fn=lambda input, dim, correction, keepdim: [
            _var_rule(input, dim, correction, keepdim),
            (reduced_shape(input.shape, dim, keepdim), input.dtype),
        ],
        vjp={"input": _vjp},
        layout=memory_layout.contiguous,
    )


@composite("var_mean" + _VAR_STD_SIGNATURE, where="torch", layout=memory_layout.contiguous)
def var_mean(F, input, dim, unbiased, keepdim, correction):
    """Computes the variance and the mean.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        unbiased: Whether `correction` is 1, else 0.
        correction: The number subtracted from the count in the divisor. Default: 1.

    Returns:
        A tuple ``(var, mean)``.

    Example:
        >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))

    See also:
        `torch.var`.
    """
    dim, correction = _spread_args("var_mean", input, dim, unbiased, correction)
    return tuple(F._var_mean(input, dim, correction, keepdim))


@composite("std_mean" + _VAR_STD_SIGNATURE, where="torch", layout=memory_layout.contiguous)
def std_mean(F, input, dim, unbiased, keepdim, correction):
    """Computes the standard deviation and the mean.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        unbiased: Whether `correction` is 1, else 0.
        correction: The number subtracted from the count in the divisor. Default: 1.

    Returns:
        A tuple ``(std, mean)``.

    Example:
        >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))

    See also:
        `torch.std`.
    """
    dim, correction = _spread_args("std_mean", input, dim, unbiased, correction)
    return tuple(F._std_mean(input, dim, correction, keepdim))


def _logsumexp_vjp(F, g, input, input_shape, out, dim, keepdim):
    weight = F.exp(F.sub(input, keep_dims(F, out, input_shape, dim, keepdim)))
    return F.mul(keep_dims(F, g, input_shape, dim, keepdim), F.conj(weight))


op(
    "logsumexp(Tensor input, dim, keepdim=False)",
    alias="special.logsumexp",
    promote=INT_TO_FLOAT,
    shape_fn=lambda input, dim, keepdim: (reduced_shape(input.shape, dim, keepdim), input.dtype),
    vjp={"input": _logsumexp_vjp},
    doc="""Computes the logarithm of the sum of exponentials, without overflow.

    Integers become the default float dtype.

    Args:
        dim: The dimension, or a tuple of them.

    Example:
        >>> torch.logsumexp(torch.tensor([0.0, 0.0]), 0)
        tensor(0.6931)

    See also:
        `torch.logaddexp`, `torch.logcumsumexp`.
    """,
    layout=memory_layout.contiguous,
    out=Out(message="logsumexp(): Expected floating point type for result tensor, but got: {got}"),
    overlap=Overlap(operands="partial"),
)

# --- one element along a dimension ------------------------------------------------

_PAIR = ("values", "indices")


def _make_pick_rule(name):
    def rule(input, dim, keepdim):
        shape = reduced_shape(input.shape, dim, keepdim) if input.shape else (wrap_dim(dim, 0), ())[1]
        if input.shape and input.shape[dim] == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim {wrap_dim(dim, len(input.shape))} to have non-zero size."
            )
        return [(shape, input.dtype), (shape, int64)]

    return rule


def _scatter_picked_gradient(F, g, out1, input_shape, dim, keepdim):
    return to_chosen(F, g[0], out1, input_shape, dim, keepdim)


_MEDIAN_REFUSES = {("input", COMPLEX): "median_cpu", ("input", BOOL): "median_cpu"}

for _name, _overload, _refuses in (
    ("max", 0, {}), ("min", 0, {}), ("median", 1, _MEDIAN_REFUSES), ("nanmedian", 1, _MEDIAN_REFUSES)
):  # fmt: skip
    op(
        f"_{_name}_dim(Tensor input, dim, keepdim=False)",
        where="",
        outputs=_PAIR,
        nondiff=(1,),
        shape_fn=_make_pick_rule(_name),
        vjp={"input": _scatter_picked_gradient},
        refuses=_refuses,
        node_name=f"{_name.title()}Backward{_overload}",
        layout=memory_layout.contiguous,
    )
for _name in ("median", "nanmedian"):
    op(
        f"_{_name}_all(Tensor input)",
        where="",
        shape_fn=lambda input: ((), input.dtype),
        vjp={"input": share_gradient_evenly},
        refuses=_MEDIAN_REFUSES,
        node_name=f"{_name.title()}Backward0",
    )

op(
    "mode(Tensor input, dim=-1, keepdim=False)",
    outputs=_PAIR,
    nondiff=(1,),
    shape_fn=_make_pick_rule("mode"),
    vjp={"input": _scatter_picked_gradient},
    doc="""Computes the most frequent value along a dimension, and an index of it.

    Among values of equal frequency it is the least.

    Args:
        dim: The dimension. Default: the last.

    Returns:
        A named tuple ``(values, indices)``; `indices` is int64.

    Example:
        >>> torch.mode(torch.tensor([1, 2, 2])).values
        tensor(2)
    """,
    layout=memory_layout.contiguous,
    out=Out(
        "same",
        (
            "expected scalar type '{want}' but got '{got}' for values output",
            "expected scalar type '{want}' but got '{got}' for indices output",
        ),
    ),
    refuses={("input", COMPLEX): "mode_cpu"},
)


def _check_keepdim(name, dim, keepdim):
    if keepdim and dim is None:
        raise TypeError(f"{name}() got an unexpected keyword argument 'keepdim'")


def _max_or_min(F, name, input, dim, keepdim, other):
    if other is None and hasattr(dim, "_tl_array"):
        dim, other = None, dim
    if other is not None:
        if dim is not None or keepdim:
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got ({type(input).__name__}, "
                f"{type(other).__name__}, {type(dim if dim is not None else keepdim).__name__}), but expected one "
                "of:\n"
                " * (Tensor input)\n"
                " * (Tensor input, Tensor other)\n"
                " * (Tensor input, int dim, bool keepdim)"
            )
        return getattr(F, name + "imum")(input, other)
    if dim is not None:
        if input.dtype.is_complex:
            raise RuntimeError(f"{name}(): does not support complex input")
        return to_named_tuple(name, getattr(F, f"_{name}_dim")(input, dim, keepdim))
    _check_keepdim(name, dim, keepdim)
    if not input.numel():
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"{name}_all\" not implemented for '{input.dtype.scalar_name}'")
    return getattr(F, "a" + name)(input)


@composite(
    "max(Tensor input, dim=None, keepdim=False, *, other=None)",
    outputs=_PAIR,
    out=Out("same"),
    node_name=extreme_graph("Max"),
)
def max(F, input, dim, keepdim, other):
    """Computes the greatest element, or the maximum of two tensors.

    ``max(input)`` is over all elements, and ``max(input, dim)`` along a dimension. ``max(input, other)`` compares
    elementwise. NaN is the result where there is one.

    Args:
        dim: The dimension, or the second tensor.
        other: The second tensor, which broadcasts with `input`.

    Returns:
        A tensor, or with `dim` a named tuple ``(values, indices)``.

    Raises:
        RuntimeError: There are no elements.

    Example:
        >>> torch.max(torch.tensor([1, 3, 2]))
        tensor(3)
        >>> torch.max(torch.tensor([[1, 3, 2]]), dim=1).indices
        tensor([1])

    See also:
        `torch.amax`, `torch.maximum`, `torch.argmax`.
    """
    return _max_or_min(F, "max", input, dim, keepdim, other)


@composite(
    "min(Tensor input, dim=None, keepdim=False, *, other=None)",
    outputs=_PAIR,
    out=Out("same"),
    node_name=extreme_graph("Min"),
)
def min(F, input, dim, keepdim, other):
    """Computes the least element, or the minimum of two tensors.

    ``min(input)`` is over all elements, and ``min(input, dim)`` along a dimension. ``min(input, other)`` compares
    elementwise. NaN is the result where there is one.

    Args:
        dim: The dimension, or the second tensor.
        other: The second tensor, which broadcasts with `input`.

    Returns:
        A tensor, or with `dim` a named tuple ``(values, indices)``.

    Raises:
        RuntimeError: There are no elements.

    Example:
        >>> torch.min(torch.tensor([1, 3, 2]))
        tensor(1)
        >>> torch.min(torch.tensor([[1, 3, 2]]), dim=1).indices
        tensor([0])

    See also:
        `torch.amin`, `torch.minimum`, `torch.argmin`.
    """
    return _max_or_min(F, "min", input, dim, keepdim, other)


@composite(
    "median(Tensor input, dim=None, keepdim=False)", outputs=_PAIR, layout=memory_layout.contiguous, out=Out("same")
)
def median(F, input, dim, keepdim):
    """Computes the median: the lower one of two middle elements.

    NaN is the result where there is one.

    Args:
        dim: The dimension. Default: all elements.

    Returns:
        A tensor, or with `dim` a named tuple ``(values, indices)``.

    Example:
        >>> torch.median(torch.tensor([3, 1, 2]))
        tensor(2)

    See also:
        `torch.quantile`, which interpolates.
    """
    _check_keepdim("median", dim, keepdim)
    return F._median_all(input) if dim is None else to_named_tuple("median", F._median_dim(input, dim, keepdim))


@composite(
    "nanmedian(Tensor input, dim=None, keepdim=False)", outputs=_PAIR, layout=memory_layout.contiguous, out=Out("same")
)
def nanmedian(F, input, dim, keepdim):
    """Computes the median of the elements that are not NaN: the lower one of two middle elements.

    Args:
        dim: The dimension. Default: all elements.

    Returns:
        A tensor, or with `dim` a named tuple ``(values, indices)``.

    Example:
        >>> torch.nanmedian(torch.tensor([3.0, float("nan"), 2.0]))
        tensor(2.)

    See also:
        `torch.median`.
    """
    _check_keepdim("nanmedian", dim, keepdim)
    return (
        F._nanmedian_all(input) if dim is None else to_named_tuple("nanmedian", F._nanmedian_dim(input, dim, keepdim))
    )


@composite(
    "aminmax(Tensor input, *, dim=None, keepdim=False)",
    outputs=("min", "max"),
    layout=memory_layout.contiguous,
    out=Out("same"),
    node_name="AminmaxBackward0(input)",
)
def aminmax(F, input, dim, keepdim):
    """Computes the least and the greatest element.

    Args:
        dim: The dimension. Default: all elements.

    Returns:
        A named tuple ``(min, max)``.

    Example:
        >>> torch.aminmax(torch.tensor([1, 3, 2])).max
        tensor(3)

    See also:
        `torch.amin`, `torch.amax`.
    """
    if dim is not None and input.ndim and not input.shape[dim]:
        raise IndexError(f"aminmax: Expected reduction dim {wrap_dim(dim, input.ndim)} to have non-zero size.")
    if dim is None and not input.numel():
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{input.dtype.scalar_name}'")
    dims = None if dim is None else (wrap_dim(dim, input.ndim),)
    if dim is None and keepdim:
        shape = (1,) * input.ndim
        return to_named_tuple("aminmax", (F.amin(input).reshape(shape), F.amax(input).reshape(shape)))
    if not input.ndim:
        dims = None
    return to_named_tuple(
        "aminmax",
        (F.amin(input, dims, keepdim), F.amax(input, dims, keepdim)) if dims else (F.amin(input), F.amax(input)),
    )


# --- product ---------------------------------------------------------------------------


def _prod_rule(input, dim, keepdim, dtype):
    return reduced_shape(input.shape, dim, keepdim), dtype or (int64 if input.dtype.category < 2 else input.dtype)


def _prod_vjp(F, g, input, input_shape, input_dtype, dim, keepdim):
    """The product of all others: of those before times those after, so that zeros are no special case."""
    if not input_shape or 0 in input_shape:
        return F.to(
            F.reshape(g, ())
            if not input_shape
            else F.mul(keep_dims(F, g, input_shape, dim, keepdim), F._ones_like(input)),
            input_dtype,
        )
    x = F.conj(F.to(input, F.dtype_of(g)))
    flat = F.reshape(x, (-1,)) if dim is None else x
    along = 0 if dim is None else dim
    before = shift_towards_end(F, F.cumprod(flat, along), along, 1)
    after = F.flip(shift_towards_end(F, F.cumprod(F.flip(flat, (along,)), along), along, 1), (along,))
    others = F.reshape(F.mul(before, after), input_shape)
    return F.to(F.mul(keep_dims(F, g, input_shape, dim, keepdim), others), input_dtype)


op(
    "prod(Tensor input, dim=None, keepdim=False, *, dtype=None)",
    shape_fn=_prod_rule,
    vjp={"input": _prod_vjp},
    doc="""Computes the product of the elements.

    Args:
        dim: The dimension. Default: all elements.
        dtype: The dtype of the result. Default: int64 for bools and integers, else the input's.

    Example:
        >>> torch.prod(torch.tensor([2, 3]))
        tensor(6)

    See also:
        `torch.cumprod`.
    """,
    layout=memory_layout.contiguous,
    out=Out(dtype_param=True),
    overlap=Overlap(operands="partial"),
    node_name=all_or_dim_name("Prod"),
)

# --- without NaN -------------------------------------------------------------------


def _nansum(F, input, dim=None, keepdim=False, dtype=None):
    if F.dtype_of(input).category == 2:
        input = F.where(F.isnan(input), F._zeros_like(input), input)
    return F.sum(input, dim, keepdim, dtype=dtype)


def _nansum_rule(input, dim, keepdim, dtype):
    return reduced_shape(input.shape, dim, keepdim), dtype or (int64 if input.dtype.category < 2 else input.dtype)


op(
    "nansum(Tensor input, dim=None, keepdim=False, *, dtype=None)",
    composite=_nansum,
    shape_fn=_nansum_rule,
    vjp={
        "input": lambda F, g, input, input_shape, dim, keepdim: F.masked_fill(
            F.expand(F.to(keep_dims(F, g, input_shape, dim, keepdim), F.dtype_of(input)), input_shape),
            F.isnan(input),
            0,
        )
    },
    refuses={("input", COMPLEX): RuntimeError("nansum on CPU does not support complex inputs")},
    doc="""Computes the sum of the elements that are not NaN.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        dtype: The dtype of the result. Default: int64 for bools and integers, else the input's.

    Example:
        >>> torch.nansum(torch.tensor([1.0, float("nan")]))
        tensor(1.)

    See also:
        `torch.sum`.
    """,
    layout=memory_layout.contiguous,
    out=Out(dtype_param=True),
    overlap=Overlap(operands="partial"),
    node_name="NansumBackward0",
)


@composite(
    "nanmean(Tensor input, dim=None, keepdim=False, *, dtype=None)", node_name="DivBackward0(NansumBackward0(input), -)"
)
def nanmean(F, input, dim, keepdim, dtype):
    """Computes the mean of the elements that are not NaN.

    Args:
        dim: The dimension, or a tuple of them. Default: all.
        dtype: The dtype of the mean. Default: the input's.

    Example:
        >>> torch.nanmean(torch.tensor([1.0, float("nan"), 2.0]))
        tensor(1.5000)

    See also:
        `torch.mean`.
    """
    if input.dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_name}"
        )
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    nan = F.isnan(input)
    kept = F.where(nan, F._zeros_like(input), input)
    return F.sum(kept, dim, keepdim, dtype=dtype) / F.sum(~nan, dim, keepdim)


def _count_nonzero_keepdims(function, given, keepdims):
    """`count_nonzero(keepdims=)`."""
    result, x, dim = function(**given), given["input"], given.get("dim")
    if not keepdims:
        return result
    dims = range(x.ndim) if dim is None else [d % x.ndim for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    return result.reshape([1 if d in dims else n for d, n in enumerate(x.shape)])


op(
    "count_nonzero(Tensor input, dim=None)",
    tags=NONDIFF,
    shape_fn=lambda input, dim: (reduced_shape(input.shape, dim), int64),
    doc="""Counts the elements that are not zero.

    Args:
        dim: The dimension, or a tuple of them. Default: all.

    Returns:
        An int64 tensor.

    Example:
        >>> torch.count_nonzero(torch.tensor([0, 5, 6]))
        tensor(2)

    See also:
        `torch.nonzero`.
    """,
    layout=memory_layout.contiguous,
    kwarg_aliases={"keepdims": _count_nonzero_keepdims},
)


def _interpolate_ranks(F, ranked, rank, interpolation):
    """Values of `ranked` (sorted along its last dimension) at fractional places `rank`."""
    if interpolation in ("lower", "higher", "nearest"):
        rank = (
            F.floor(rank) if interpolation == "lower" else F.ceil(rank) if interpolation == "higher" else F.round(rank)
        )
        return F.gather(ranked, -1, F.to(rank, int64))
    low = F.to(rank, int64)
    below = F.gather(ranked, -1, low)
    above = F.gather(ranked, -1, F.to(F.ceil(rank), int64))
    weight = (
        0.5 * F.to(F.ceil(rank) != rank, rank.dtype) if interpolation == "midpoint" else rank - F.to(low, rank.dtype)
    )
    return F.lerp(below, above, weight)


def _quantile(F, name, input, q, dim, keepdim, interpolation, ignore_nan):
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not input.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not hasattr(q, "_tl_array"):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        q = F._new_full(input.detach(), (), float(q))
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.numel() and any_true((q < 0) | (q > 1)):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    ndim = input.ndim
    where = wrap_dim(dim, ndim) if dim is not None else None
    x = input.reshape(-1) if dim is None or not ndim else F.movedim(input, where, -1)
    ranked = F.sort(x, -1)[0]
    fractions, last = q.reshape(-1), x.shape[-1] - 1
    nan = F.isnan(x.detach())
    if ignore_nan:
        counted = F.to(F.sum(~nan, -1, True), x.dtype)
        rank = F.clamp(fractions * (counted - 1), min=0)
    else:
        rank = F.masked_fill(
            (fractions * last).expand(*x.shape[:-1], fractions.shape[0]), F.any(nan, -1, True), float(last)
        )
    out = _interpolate_ranks(F, ranked, rank, interpolation)
    if keepdim and ndim:
        out = F.unsqueeze(out, -2)
        out = out.reshape((1,) * ndim + (-1,)) if dim is None else F.movedim(out, -2, where)
    return F.movedim(out, -1, 0) if q.ndim else F.squeeze(out, -1)


@composite(
    "quantile(Tensor input, q, dim=None, keepdim=False, *, interpolation='linear')",
    out=Out("same", "quantile() out tensor must be same dtype as the input tensor"),
    node_name=quantile_graph,
)
def quantile(F, input, q, dim, keepdim, interpolation):
    """Computes quantiles.

    NaN is the result where there is one.

    Args:
        q: A number from 0 to 1, or a 1-d tensor of them, which makes a new first dimension.
        dim: The dimension. Default: all elements.
        interpolation: Between two elements: ``"linear"`` (default), ``"lower"``, ``"higher"``, ``"nearest"`` or
            ``"midpoint"``.

    Example:
        >>> torch.quantile(torch.tensor([1.0, 2.0, 3.0]), 0.25)
        tensor(1.5000)

    See also:
        `torch.nanquantile`, `torch.median`.
    """
    return _quantile(F, "quantile", input, q, dim, keepdim, interpolation, False)


@composite(
    "nanquantile(Tensor input, q, dim=None, keepdim=False, *, interpolation='linear')",
    out=Out("same", "quantile() out tensor must be same dtype as the input tensor"),
    node_name=quantile_graph,
)
def nanquantile(F, input, q, dim, keepdim, interpolation):
    """Computes quantiles of the elements that are not NaN.

    Args:
        q: A number from 0 to 1, or a 1-d tensor of them, which makes a new first dimension.
        dim: The dimension. Default: all elements.
        interpolation: Between two elements: ``"linear"`` (default), ``"lower"``, ``"higher"``, ``"nearest"`` or
            ``"midpoint"``.

    Example:
        >>> torch.nanquantile(torch.tensor([1.0, float("nan"), 3.0]), 0.5)
        tensor(2.)

    See also:
        `torch.quantile`.
    """
    return _quantile(F, "nanquantile", input, q, dim, keepdim, interpolation, True)
