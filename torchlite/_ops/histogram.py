"""Histograms, differences, integrals and numerical gradients."""

import builtins
import math
import operator

from torchlite._dispatch import NONDIFF, Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.shapes import wrap_dims
from torchlite._types.dtypes import _C_NAMES, bool_, uint8

from ._dtype_checks import refuse_floats
from ._gradient_helpers import make_missing_derivative_formula, to_named_tuple
from .node_graphs import trapezoid_graph

op(
    "histc(Tensor input, bins=100, min=0, max=0)",
    tags=NONDIFF,
    shape_fn=lambda input, bins: ((bins,), input.dtype),
    doc="""Counts the elements in bins of equal width.

    Args:
        bins: The number of bins. Default: 100.
        min: The lower bound. Default: 0.
        max: The upper bound, which is part of the last bin. Default: 0. Where both are equal, the bounds are the
            input's.

    Returns:
        A tensor of the input's dtype, of shape ``(bins,)``.

    Example:
        >>> torch.histc(torch.tensor([1.0, 2.0, 2.0]), bins=2)
        tensor([1., 2.])

    See also:
        `torch.histogram`.
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
    doc="""Counts how often each integer from 0 on occurs.

    Args:
        input: The integers, not negative, of one dimension.
        weights: The weight of each element, of the input's shape. Default: 1.
        minlength: The least length of the result. Default: 0.

    Returns:
        An int64 tensor, or one of the weights' dtype.

    Raises:
        RuntimeError: An integer is negative.

    Example:
        >>> torch.bincount(torch.tensor([0, 2, 2]))
        tensor([1, 0, 2])

    See also:
        `numpy.bincount`.
    """,
    node_name="NotImplemented",
)
op(
    "_histogram_counts(Tensor input, Tensor[] edges, Tensor? weight=None)",
    where="",
    vjp=dict.fromkeys(("input", "weight"), make_missing_derivative_formula("histogram")),
    node_name="NotImplemented",
)


def _histogram_edges(F, column, bins, limits, dimension=0):
    """The bin edges of one dimension: given ones, or `bins` equal bins between limits, by default the data's."""
    if hasattr(bins, "_tl_array"):
        return F.clone(bins)
    bins = operator.index(bins)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dimension}")
    if limits is not None:
        low, high = limits
    else:
        low, high = (float(F.amin(column)), float(F.amax(column))) if column.numel() else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogram(): dimension {dimension}'s range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogram(): min should not exceed max, but got min {low} max {high} for dimension {dimension}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = (high - low) / bins
    inner = F._new_arange(column, 0, bins, 1, column.dtype) * step + low
    return F.cat([inner, F._new_full(column, (1,), high)], 0)


def _check_histogram_arguments(input, bins, weight):
    """The errors for elements that are neither float32 nor float64, and for edges or weights of another dtype or shape.
    `input` has a row for each point.
    """
    name, given = input.dtype.scalar_name, [b for b in bins if hasattr(b, "_tl_array")]
    wanted = _C_NAMES.get(input.dtype.name, input.dtype.name)
    if not given and input.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{name}'")
    for i, edges in enumerate(bins):
        if not hasattr(edges, "_tl_array"):
            continue
        if edges.ndim != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {edges.ndim} dimensions in the "
                f"bins tensor for dimension {i}"
            )
        if not edges.numel():
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
                f"for dimension {i}"
            )
        if edges.dtype is not input.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{wanted} and bins for dimension {i} with dtype {_C_NAMES.get(edges.dtype.name, edges.dtype.name)}"
            )
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({wanted}), and weight({_C_NAMES.get(weight.dtype.name, weight.dtype.name)})"
        )
    if weight is not None and weight.shape != input.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(input.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )
    if input.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{name}'")


def _check_range(range, columns):
    if range is not None and len(range) != 2 * columns:
        raise RuntimeError(
            f"torch.histogramdd: for a {columns}-dimensional histogram range should have {2 * columns} elements, but "
            f"got {len(range)}"
        )


def _to_density(F, hist, edges):
    volume = None
    for i, e in enumerate(edges):
        width = F.diff(e).reshape([-1 if a == i else 1 for a in range(len(edges))])
        volume = width if volume is None else volume * width
    return hist / (hist.sum() * volume)


@composite(
    "histogram(Tensor input, bins=100, *, range=None, weight=None, density=False)", outputs=("hist", "bin_edges")
)
def histogram(F, input, bins, range, weight, density):
    """Counts the elements in bins.

    Args:
        bins: The number of bins of equal width, or a tensor of the ascending edges. Default: 100.
        range: The bounds of bins of equal width. Default: the input's.
        weight: The weight of each element. Default: 1.
        density: Whether the result is a probability density. Default: ``False``.

    Returns:
        A named tuple ``(hist, bin_edges)``; the last bin has its upper edge.

    Example:
        >>> torch.histogram(torch.tensor([1.0, 2.0, 3.0]), 2).hist
        tensor([1., 2.])

    See also:
        `torch.histogramdd`, `torch.histc`.
    """
    flat = input.reshape(-1)
    if weight is not None:
        weight = weight.reshape(-1)
    _check_histogram_arguments(flat.reshape(-1, 1), [bins], weight)
    _check_range(range, 1)
    edges = [_histogram_edges(F, flat.detach(), bins, range)]
    hist = F._histogram_counts(flat.reshape(-1, 1), edges, weight)
    return to_named_tuple("histogram", (_to_density(F, hist, edges) if density else hist, edges[0]))


@composite(
    "histogramdd(Tensor input, bins, range=None, weight=None, density=False)",
    where="torch",
    outputs=("hist", "bin_edges"),
)
def histogramdd(F, input, bins, range, weight, density):
    """Counts points in bins of several dimensions.

    Args:
        input: The points, of shape ``(*, n)``.
        bins: The number of bins of each dimension, or a tensor of the edges of each.
        range: The bounds: two numbers a dimension. Default: the input's.
        weight: The weight of each element. Default: 1.
        density: Whether the result is a probability density. Default: ``False``.

    Returns:
        A named tuple ``(hist, bin_edges)``, with a tensor of edges a dimension.

    Example:
        >>> torch.histogramdd(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), [2, 2]).hist
        tensor([[1., 0.],
                [0., 1.]])

    See also:
        `torch.histogram`.
    """
    if input.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    columns = input.shape[-1]
    each = [bins] * columns if isinstance(bins, int) else list(bins)
    if len(each) != columns:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    _check_histogram_arguments(input, each, weight)
    _check_range(range, columns)
    points = input.reshape(math.prod(input.shape[:-1]), columns)
    limits = [None] * columns if range is None else [(range[2 * i], range[2 * i + 1]) for i in builtins.range(columns)]
    edges = [_histogram_edges(F, points[:, i].detach(), b, limits[i], i) for i, b in enumerate(each)]
    hist = F._histogram_counts(points, edges, weight)
    return to_named_tuple("histogramdd", (_to_density(F, hist, edges) if density else hist, tuple(edges)))


# --- differences and integrals -----------------------------------------------------------


@composite("diff(Tensor input, n=1, dim=-1, prepend=None, append=None)")
def diff(F, input, n, dim, prepend, append):
    """Computes differences of neighboring elements; of bools, whether they differ.

    Args:
        n: How often the differences are taken. Default: 1.
        dim: The dimension. Default: the last.
        prepend: A tensor that is put before the input first.
        append: A tensor that is put after the input first.

    Example:
        >>> torch.diff(torch.tensor([1, 4, 9]))
        tensor([3, 5])

    See also:
        `torch.gradient`.
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


def _check_spacing(name, y, x, dx):
    """PyTorch's errors for both positions and a distance, and for a distance that is no real number."""
    if dx is None:
        return
    if x is not None:
        from torchlite._dispatch.arg_parser import match_signature

        match_signature(name, (y,), {"dx": dx, "x": x})
    if isinstance(dx, (builtins.bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def _sample_spacing(F, y, x, dx, dim, name):
    """The distances between sample points, shaped to multiply with slices of `y` along `dim`."""
    if x is None:
        return 1 if dx is None else dx
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        return F.diff(x).reshape([-1 if d == dim % y.ndim else 1 for d in builtins.range(y.ndim)])
    return F.diff(x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape)), 1, dim if dim < 0 else dim - y.ndim)


def _refuse_bool(y, x, name):
    if y.dtype is bool_ or x is not None and x.dtype is bool_:
        words = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {words}, but bool is not supported")


def _trapezoids(F, y, x, dx, dim, name):
    if y.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    _refuse_bool(y, x, name)
    size = y.shape[dim]
    pairs = F.narrow(y, dim, 1, size - 1) + F.narrow(y, dim, 0, size - 1)
    spacing = _sample_spacing(F, y, x, dx, dim, name)
    return pairs * (spacing / 2) if x is None else pairs * spacing / 2  # the product of integers may not fit


@composite(
    "trapezoid(Tensor y, x=None, *, dx=None, dim=-1)", where="torch", alias="trapz", node_name=trapezoid_graph(False)
)
def trapezoid(F, y, x, dx, dim):
    """Computes an integral by the trapezoidal rule.

    Args:
        y: The samples.
        x: Their positions, which broadcast with `y`. Default: at a distance of `dx`.
        dx: The distance of samples. Default: 1.
        dim: The dimension. Default: the last.

    Example:
        >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]))
        tensor(4.)

    See also:
        `torch.cumulative_trapezoid`.
    """
    _check_spacing("trapezoid", y, x, dx)
    if y.ndim and y.shape[dim] == 0:
        return F.sum(y, dim, dtype=y.dtype)
    if y.ndim:
        _refuse_bool(y, x, "trapezoid")
    if x is None and y.ndim and not isinstance(dx, type(y)):
        ends = F.narrow(y, dim, 0, 1) + F.narrow(y, dim, y.shape[dim] - 1, 1)
        return (F.sum(y, dim) - F.sum(ends, dim) / 2) * (1 if dx is None else dx)
    return F.sum(_trapezoids(F, y, x, dx, dim, "trapezoid"), dim)


@composite(
    "cumulative_trapezoid(Tensor y, x=None, *, dx=None, dim=-1)",
    where="torch",
    layout=memory_layout.contiguous,
    node_name=trapezoid_graph(True),
)
def cumulative_trapezoid(F, y, x, dx, dim):
    """Computes the running integral by the trapezoidal rule.

    Args:
        y: The samples.
        x: Their positions, which broadcast with `y`. Default: at a distance of `dx`.
        dx: The distance of samples. Default: 1.
        dim: The dimension. Default: the last.

    Returns:
        A tensor with one element less along `dim`.

    Example:
        >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 3.0]))
        tensor([1.5000, 4.0000])

    See also:
        `torch.trapezoid`.
    """
    _check_spacing("cumulative_trapezoid", y, x, dx)
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
    """Estimates the derivatives of samples by second-order differences.

    Args:
        input: The samples.
        spacing: The distance of samples: one number, one a dimension, or a tensor of coordinates a dimension.
            Default: 1.
        dim: The dimension, or several. Default: all.
        edge_order: The order of the differences at the edges, 1 or 2. Default: 1.

    Returns:
        A tuple with one tensor of the input's shape a dimension.

    Example:
        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0]))
        (tensor([3., 4., 5.]),)

    See also:
        `torch.diff`, `numpy.gradient`.
    """
    if input.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    refuse_floats(edge_order)
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


@composite("sum_to_size(Tensor input, *size)", where="Tensor", varargs_required=True)
def sum_to_size(F, input, size):
    """Sums over the dimensions that broadcasting from `size` adds or expands.

    Args:
        size: The sizes of the result, as integers or as one sequence.

    Raises:
        RuntimeError: `size` does not broadcast to the input's shape.

    Example:
        >>> torch.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])

    See also:
        `torch.Tensor.expand`.
    """
    if not size:
        return F.sum(input)
    refuse_floats(*size)
    extra = input.ndim - len(size)
    if extra < 0 or any(n != m and n != 1 for n, m in zip(size, input.shape[extra:], strict=True)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    dims = tuple(builtins.range(extra)) + tuple(
        extra + i for i, n in enumerate(size) if n == 1 and input.shape[extra + i] != 1
    )
    return F.sum(input, dims, True).reshape(size) if dims else input
