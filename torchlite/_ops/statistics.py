"""Variance, order statistics, counts, histograms and integrals: reductions other than sum, mean and extremes."""

import builtins
import math
import warnings

from torchlite._dispatch import INT_TO_FLOAT, NONDIFF, Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.shape_and_value_checks import any_true
from torchlite._dispatch.shapes import reduced_shape, wrap_dim, wrap_dims

from .._types.dtypes import BOOL, COMPLEX, float32, float64, int64
from ._gradient_helpers import (
    count_of,
    keep_dims,
    make_missing_derivative_formula,
    share_gradient_evenly,
    shift_towards_end,
    to_chosen,
    to_named_tuple,
)

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
    """The variance over `dim` (an int, several, or all), dividing by the count less `correction` (1). Real dtype of
    `input`, which must be a float or complex.

    >>> torch.var(torch.tensor([1., 2., 3.]))
    tensor(1.)
    """
    return F._var_correction(input, *_spread_args("var", input, dim, unbiased, correction), keepdim)


@composite("std" + _VAR_STD_SIGNATURE, layout=memory_layout.contiguous, overlap=Overlap("allowed", "partial"))
def std(F, input, dim, unbiased, keepdim, correction):
    """The standard deviation over `dim`: the square root of `var`."""
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
    """`(var, mean)` over `dim`."""
    dim, correction = _spread_args("var_mean", input, dim, unbiased, correction)
    return tuple(F._var_mean(input, dim, correction, keepdim))


@composite("std_mean" + _VAR_STD_SIGNATURE, where="torch", layout=memory_layout.contiguous)
def std_mean(F, input, dim, unbiased, keepdim, correction):
    """`(std, mean)` over `dim`."""
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
    doc="""log(sum(exp(input))) over `dim` (an int or several), computed without overflow; integers become the default
    float dtype.

    >>> torch.logsumexp(torch.tensor([0., 0.]), 0)
    tensor(0.6931)
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
    doc="""The most frequent value along `dim` (the smallest of them) and an index of it: `(values, indices)`.

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
    if not input.numel():
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"{name}_all\" not implemented for '{input.dtype.scalar_name}'")
    return getattr(F, "a" + name)(input)


@composite("max(Tensor input, dim=None, keepdim=False, *, other=None)", outputs=_PAIR, out=Out("same"))
def max(F, input, dim, keepdim, other):
    """`max(input)`: the greatest element. `max(input, dim)`: the greatest along `dim` and its index, `(values,
    indices)`. `max(input, other)`: elementwise.

    NaN counts as the greatest. RuntimeError for an empty tensor.

    >>> torch.max(torch.tensor([1, 3, 2]))
    tensor(3)
    """
    return _max_or_min(F, "max", input, dim, keepdim, other)


@composite("min(Tensor input, dim=None, keepdim=False, *, other=None)", outputs=_PAIR, out=Out("same"))
def min(F, input, dim, keepdim, other):
    """`min(input)`: the least element. `min(input, dim)`: the least along `dim` and its index, `(values, indices)`.
    `min(input, other)`: elementwise.
    """
    return _max_or_min(F, "min", input, dim, keepdim, other)


@composite(
    "median(Tensor input, dim=None, keepdim=False)", outputs=_PAIR, layout=memory_layout.contiguous, out=Out("same")
)
def median(F, input, dim, keepdim):
    """The median (the lower of two) of all elements, or along `dim` with its index, `(values, indices)`. NaN when there
    is one.

    >>> torch.median(torch.tensor([3, 1, 2]))
    tensor(2)
    """
    return F._median_all(input) if dim is None else to_named_tuple("median", F._median_dim(input, dim, keepdim))


@composite(
    "nanmedian(Tensor input, dim=None, keepdim=False)", outputs=_PAIR, layout=memory_layout.contiguous, out=Out("same")
)
def nanmedian(F, input, dim, keepdim):
    """The median of the elements that are not NaN; otherwise as `median`."""
    return (
        F._nanmedian_all(input) if dim is None else to_named_tuple("nanmedian", F._nanmedian_dim(input, dim, keepdim))
    )


@composite(
    "aminmax(Tensor input, *, dim=None, keepdim=False)",
    outputs=("min", "max"),
    layout=memory_layout.contiguous,
    out=Out("same"),
)
def aminmax(F, input, dim, keepdim):
    """The least and the greatest element, of all or along `dim`: `(min, max)`."""
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
    doc="""The product of all elements, or along `dim`; integers and bools are multiplied as int64, or as `dtype`.

    >>> torch.prod(torch.tensor([2, 3]))
    tensor(6)
    """,
    layout=memory_layout.contiguous,
    out=Out(dtype_param=True),
    overlap=Overlap(operands="partial"),
)

# --- without NaN -------------------------------------------------------------------


@composite(
    "nansum(Tensor input, dim=None, keepdim=False, *, dtype=None)",
    out=Out(dtype_param=True),
    overlap=Overlap(operands="partial"),
)
def nansum(F, input, dim, keepdim, dtype):
    """The sum over `dim` with NaN counted as zero."""
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input.dtype.category == 2:
        input = F.where(F.isnan(input), F._zeros_like(input), input)
    return F.sum(input, dim, keepdim, dtype=dtype)


@composite("nanmean(Tensor input, dim=None, keepdim=False, *, dtype=None)")
def nanmean(F, input, dim, keepdim, dtype):
    """The mean over `dim` of the elements that are not NaN."""
    if input.dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_name}"
        )
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
    doc="""How many elements are not zero, of all or over `dim` (an int or several): int64.

    >>> torch.count_nonzero(torch.tensor([0, 5, 6]))
    tensor(2)
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
)
def quantile(F, input, q, dim, keepdim, interpolation):
    """The `q`-quantiles (a number, or a tensor of them, which makes a new first dimension) of all elements or along
    `dim`. NaN where there is one.

    >>> torch.quantile(torch.tensor([1., 2., 3.]), 0.25)
    tensor(1.5000)
    """
    return _quantile(F, "quantile", input, q, dim, keepdim, interpolation, False)


@composite(
    "nanquantile(Tensor input, q, dim=None, keepdim=False, *, interpolation='linear')",
    out=Out("same", "quantile() out tensor must be same dtype as the input tensor"),
)
def nanquantile(F, input, q, dim, keepdim, interpolation):
    """Like `quantile`, ignoring NaNs."""
    return _quantile(F, "nanquantile", input, q, dim, keepdim, interpolation, True)


# --- histograms -----------------------------------------------------------------------

op(
    "histc(Tensor input, bins=100, min=0, max=0)",
    tags=NONDIFF,
    shape_fn=lambda input, bins: ((bins,), input.dtype),
    doc="""How many elements fall into each of `bins` equal bins between `min` and `max` (the data's own when both are
    equal), in `input`'s dtype.

    >>> torch.histc(torch.tensor([1., 2., 2.]), bins=2)
    tensor([1., 2.])
    """,
    out=Out(
        "same",
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {c_want} and "
        "hist {c_got}",
    ),
    overlap=Overlap("allowed"),
)
op(
    "bincount(Tensor input, Tensor? weights=None, minlength=0)",
    vjp={"weights": make_missing_derivative_formula("bincount")},
    doc="""How often each of 0, 1, 2 ... comes in a vector of non-negative integers (or the sum of their weights): a
    vector of at least `minlength`.

    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """,
    node_name="NotImplemented",
)
op(
    "_histogram_counts(Tensor input, Tensor[] edges, Tensor? weight=None)",
    where="",
    vjp=dict.fromkeys(("input", "weight"), make_missing_derivative_formula("histogram")),
    node_name="NotImplemented",
)


def _histogram_edges(F, column, bins, limits):
    """The bin edges of one dimension: given ones, or `bins` equal bins between limits, by default the data's."""
    if hasattr(bins, "_tl_array"):
        return F.clone(bins)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if limits is not None:
        low, high = limits
    else:
        low, high = (float(F.amin(column)), float(F.amax(column))) if column.numel() else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogram(): dimension 0's range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogram(): min should not exceed max, but got min {low} max {high} for dimension 0"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = (high - low) / bins
    inner = F._new_arange(column, 0, bins, 1, column.dtype) * step + low
    return F.cat([inner, F._new_full(column, (1,), high)], 0)


def _to_density(F, hist, edges):
    volume = None
    for i, e in enumerate(edges):
        width = F.diff(e).reshape([-1 if a == i else 1 for a in range(len(edges))])
        volume = width if volume is None else volume * width
    return hist / (hist.sum() * volume)


@composite("histogram(Tensor input, bins, *, range=None, weight=None, density=False)", outputs=("hist", "bin_edges"))
def histogram(F, input, bins, range, weight, density):
    """Number of elements (or how much weight) fall into each bin: `(hist, bin_edges)`. `bins` is a count or a tensor of
    edges; the last bin is closed.

    >>> torch.histogram(torch.tensor([1., 2., 3.]), 2).hist
    tensor([1., 2.])
    """
    flat = input.reshape(-1)
    edges = [_histogram_edges(F, flat.detach(), bins, range)]
    hist = F._histogram_counts(flat.reshape(-1, 1), edges, weight)
    return to_named_tuple("histogram", (_to_density(F, hist, edges) if density else hist, edges[0]))


@composite(
    "histogramdd(Tensor input, bins, *, range=None, weight=None, density=False)",
    where="torch",
    outputs=("hist", "bin_edges"),
)
def histogramdd(F, input, bins, range, weight, density):
    """A histogram in several dimensions of points along the last dimension of `input`: `(hist, bin_edges)` with one
    vector of edges a dimension.
    """
    columns = input.shape[-1]
    each = [bins] * columns if isinstance(bins, int) else list(bins)
    if len(each) != columns:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    points = input.reshape(-1, columns)
    limits = [None] * columns if range is None else [(range[2 * i], range[2 * i + 1]) for i in builtins.range(columns)]
    edges = [_histogram_edges(F, points[:, i].detach(), b, limits[i]) for i, b in enumerate(each)]
    hist = F._histogram_counts(points, edges, weight)
    return to_named_tuple("histogramdd", (_to_density(F, hist, edges) if density else hist, tuple(edges)))


# --- differences and integrals -----------------------------------------------------------


@composite("diff(Tensor input, n=1, dim=-1, prepend=None, append=None)")
def diff(F, input, n, dim, prepend, append):
    """The `n`-th difference of neighbours along `dim` (of bools: whether they differ), with values put before and after
    first.

    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n and (prepend is not None or append is not None):
        input = F.cat([t for t in (prepend, input, append) if t is not None], dim)
    size_before = input.shape[dim]
    for _ in builtins.range(builtins.min(n, size_before)):
        size = input.shape[dim]
        ahead, behind = F.narrow(input, dim, 1, size - 1), F.narrow(input, dim, 0, size - 1)
        input = F.logical_xor(ahead, behind) if input.dtype.category == 0 else ahead - behind
    return input if n and size_before else F.clone(input)


def _sample_spacing(F, y, x, dx, dim, name):
    """The distances between sample points, shaped to multiply with slices of `y` along `dim`."""
    if x is None:
        return 1 if dx is None else dx
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        return F.diff(x).reshape([-1 if d == dim % y.ndim else 1 for d in builtins.range(y.ndim)])
    return F.diff(x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape)), 1, dim if dim < 0 else dim - y.ndim)


def _trapezoids(F, y, x, dx, dim, name):
    if y.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    size = y.shape[dim]
    pairs = F.narrow(y, dim, 1, size - 1) + F.narrow(y, dim, 0, size - 1)
    return pairs * _sample_spacing(F, y, x, dx, dim, name) / 2


@composite("trapezoid(Tensor y, x=None, *, dx=None, dim=-1)", where="torch", alias="trapz")
def trapezoid(F, y, x, dx, dim):
    """The integral of `y` along `dim` by the trapezoidal rule, for samples at `x` or `dx` apart.

    >>> torch.trapezoid(torch.tensor([1., 2., 3.]))
    tensor(4.)
    """
    if y.ndim and y.shape[dim] == 0:
        return F.sum(y / 2, dim)
    return F.sum(_trapezoids(F, y, x, dx, dim, "trapezoid"), dim)


@composite("cumulative_trapezoid(Tensor y, x=None, *, dx=None, dim=-1)", where="torch", layout=memory_layout.contiguous)
def cumulative_trapezoid(F, y, x, dx, dim):
    """The running integral of `y` along `dim` by the trapezoidal rule: one element fewer than `y`."""
    if y.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    return F.cumsum(_trapezoids(F, y, x, dx, dim, "cumulative_trapezoid") if y.shape[dim] else y / 2, dim)


def _gradient_along(F, x, dim, spacing, edge_order):
    """Central differences inside, one-sided ones of the given order at both ends."""
    size = x.shape[dim]
    if size < edge_order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")

    def slice_along_dim(start, length):
        return F.narrow(x, dim, start, length)

    if not hasattr(spacing, "_tl_array"):
        before = after = None
        inner = (slice_along_dim(2, size - 2) - slice_along_dim(0, size - 2)) / (2.0 * spacing) if size > 2 else None
        first_gap = second_gap = last_gap = gap_before_last = spacing
    else:
        shape = [-1 if d == dim % x.ndim else 1 for d in builtins.range(x.ndim)]
        gaps = F.diff(spacing)
        before, after = gaps[:-1].reshape(shape), gaps[1:].reshape(shape)
        inner = (
            (
                slice_along_dim(0, size - 2) * (-after / (before * (before + after)))
                + slice_along_dim(1, size - 2) * ((after - before) / (before * after))
                + slice_along_dim(2, size - 2) * (before / (after * (before + after)))
            )
            if size > 2
            else None
        )
        first_gap, second_gap, last_gap, gap_before_last = (
            gaps[0],
            gaps[1] if size > 2 else gaps[0],
            gaps[-1],
            gaps[-2] if size > 2 else gaps[-1],
        )
    if edge_order == 1:
        head, tail = (
            (slice_along_dim(1, 1) - slice_along_dim(0, 1)) / first_gap,
            (slice_along_dim(size - 1, 1) - slice_along_dim(size - 2, 1)) / last_gap,
        )
    else:
        h, k = first_gap, second_gap
        head = (
            slice_along_dim(0, 1) * (-(2.0 * h + k) / (h * (h + k)))
            + slice_along_dim(1, 1) * ((h + k) / (h * k))
            + slice_along_dim(2, 1) * (-h / (k * (h + k)))
        )
        h, k = gap_before_last, last_gap
        tail = (
            slice_along_dim(size - 3, 1) * (k / (h * (h + k)))
            + slice_along_dim(size - 2, 1) * (-(h + k) / (h * k))
            + slice_along_dim(size - 1, 1) * ((2.0 * k + h) / (k * (h + k)))
        )
    return F.cat([part for part in (head, inner, tail) if part is not None], dim)


@composite(
    "gradient(Tensor input, *, spacing=None, dim=None, edge_order=1)", where="torch", layout=memory_layout.contiguous
)
def gradient(F, input, spacing, dim, edge_order):
    """Numerical derivatives along each of `dim` (all by default) by second-order differences: a tuple of tensors like
    `input`.

    `spacing` is a number, one a dimension, or the samples' coordinates, a vector a dimension.
    """
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(builtins.range(input.ndim)) if dim is None else list(wrap_dims(dim, input.ndim))
    if spacing is None or isinstance(spacing, (int, float, complex)):
        each = [1.0 if spacing is None else spacing] * len(dims)
    else:
        each = list(spacing)
        if len(each) != len(dims):
            expected = (
                f"or a list of length equal to 'self.dim() = {input.ndim}', since dim argument was not given, but got "
                f"a list of length {len(each)}"
                if dim is None
                else "or it's spacing and dim arguments to have the same length, but got a spacing argument of length "
                f"{len(each)} and a dim argument of length {len(dims)}."
            )
            comma = "," if dim is None else ""
            raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar{comma} {expected}")
        for where in (getattr(at, "device", input.device) for at in each):
            if where != input.device:
                raise RuntimeError(
                    f"torch.gradient expected each tensor to be on the same device, but got devices {input.device} "
                    f"and {where}!"
                )
    return tuple(_gradient_along(F, input, d, s, edge_order) for d, s in zip(dims, each, strict=True))


# --- shapes ---------------------------------------------------------------------------------


@composite("sum_to_size(Tensor input, *size)", where="Tensor")
def sum_to_size(F, input, size):
    """`input` summed over the dimensions that broadcasting from `size` adds or expands."""
    if not size:
        return F.sum(input)
    extra = input.ndim - len(size)
    if extra < 0 or any(n != m and n != 1 for n, m in zip(size, input.shape[extra:], strict=True)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    dims = tuple(builtins.range(extra)) + tuple(
        extra + i for i, n in enumerate(size) if n == 1 and input.shape[extra + i] != 1
    )
    return F.sum(input, dims, True).reshape(size) if dims else input
