"""Pooling records with kernels, their backward passes, and composites over slices and window matrices for backends
without kernels.

Max pooling selects the first largest element, as PyTorch does. Average pooling and its backward pass are linear and are
each other's derivative.
"""

import math

from torchlite._dispatch import memory_layout, op
from torchlite._dispatch.node_names import saved_argument

from .node_graphs import adaptive_average_graph, pool_graph
from .pooling_checks import check_output, check_padding, pooled_size


def _spatial(shape, count):
    return tuple(shape[len(shape) - count :])


def _pooled_shape(shape, kernel, stride, padding, dilation, ceil_mode):
    count = len(kernel)
    size = _spatial(shape, count)
    out = tuple(
        pooled_size(*numbers, ceil_mode) for numbers in zip(size, kernel, stride, padding, dilation, strict=True)
    )
    check_padding(kernel, padding, dilation)
    channels = shape[len(shape) - count - 1] if len(shape) > count else 1
    check_output((channels, 1) if count == 1 else (channels,), size, out)
    return (*shape[: len(shape) - count], *out)


# -- composites over F -----------------------------------------------------------------------------


def _pad_dim_with_value(F, x, dim, before, after, value):
    """`x` with places of `value` before and after it along a dimension; a negative `after` is none."""
    pieces = [F._new_full(x, (*x.shape[:dim], n, *x.shape[dim + 1 :]), value) for n in (before, max(after, 0))]
    pieces = [pieces[0]] * (before > 0) + [x] + [pieces[1]] * (after > 0)
    return F.cat(pieces, dim) if len(pieces) > 1 else x


def _lowest_value(dtype):
    return -math.inf if dtype.is_floating_point else int(_iinfo(dtype).min)


def _iinfo(dtype):
    from torchlite._types.dtypes import iinfo

    return iinfo(dtype)


def _max_pool(F, input, kernel, stride, padding, dilation, ceil_mode):
    out = _spatial(_pooled_shape(input.shape, kernel, stride, padding, dilation, ceil_mode), len(kernel))
    x, first = input, input.ndim - len(kernel)
    for i, (k, s, p, d, o) in enumerate(zip(kernel, stride, padding, dilation, out, strict=True)):
        dim = first + i
        reach = (o - 1) * s + d * (k - 1) + 1
        x = _pad_dim_with_value(F, x, dim, p, reach - p - x.shape[dim], _lowest_value(F.dtype_of(x)))
        pieces = [F._slice(x, dim, j * d, j * d + (o - 1) * s + 1, s) for j in range(k)]
        x = pieces[0]
        for piece in pieces[1:]:
            x = F.maximum(x, piece)
    return F.contiguous(x)


def _clamp_positions(F, places, n, dilation):
    """Positions outside the input replaced by the window's first or last one inside."""
    low = F.where(F.lt(places, 0), F.remainder(places, dilation), places)
    turned = F.neg(F.sub(low, n - 1))
    return F.where(F.lt(turned, 0), F.add(F.neg(F.remainder(turned, dilation)), n - 1), low)


def _index_dtype():
    from torchlite._types.dtypes import BY_NAME

    return BY_NAME["int64"]


def _window_taps(kernel):
    places = [()]
    for k in kernel:
        places = [(*place, j) for place in places for j in range(k)]
    return places


def _window_maxima(F, input, places):
    """Values and flat spatial indices of the window maxima; `places[axis][tap]` are positions along an axis."""
    count = len(places)
    first, size = input.ndim - count, _spatial(input.shape, count)
    best = index = None
    for taps in _window_taps([len(p) for p in places]):
        value, place = input, None
        for i, tap in enumerate(taps):
            position = places[i][tap]
            value = F.index_select(value, first + i, position)
            along = F.reshape(F.mul(position, math.prod(size[i + 1 :])), (-1, *(1,) * (count - 1 - i)))
            place = along if place is None else F.add(place, along)
        place = F.expand(place, value.shape)
        if best is None:
            best, index = value, place
            continue
        better = (
            F.logical_or(F.gt(value, best), F.isnan(value))
            if F.dtype_of(value).is_floating_point
            else F.gt(value, best)
        )
        best, index = F.where(better, value, best), F.where(better, place, index)
    return F.contiguous(best), F.contiguous(index)


def _max_pool_with_indices(F, input, kernel, stride, padding, dilation, ceil_mode):
    shape = _pooled_shape(input.shape, kernel, stride, padding, dilation, ceil_mode)
    size, out = _spatial(input.shape, len(kernel)), _spatial(shape, len(kernel))
    places = []
    for n, o, k, s, p, d in zip(size, out, kernel, stride, padding, dilation, strict=True):
        starts = F._new_arange(input, 0, o, 1, _index_dtype())
        places.append([_clamp_positions(F, F.add(F.mul(starts, s), j * d - p), n, d) for j in range(k)])
    return _window_maxima(F, input, places)


def _adaptive_starts(F, like, n, out):
    i = F._new_arange(like, 0, out, 1, _index_dtype())
    start = F.floor_divide(F.mul(i, n), out)
    end = F.neg(F.floor_divide(F.neg(F.mul(F.add(i, 1), n)), out))
    return start, end


def _adaptive_max_pool(F, input, output_size):
    places = []
    for n, out in zip(_spatial(input.shape, len(output_size)), output_size, strict=True):
        start, end = _adaptive_starts(F, input, n, out)
        longest = max((-(-(i + 1) * n // out) - i * n // out for i in range(out)), default=0)
        places.append([F.minimum(F.add(start, j), F.sub(end, 1)) for j in range(longest)])
    return _window_maxima(F, input, places)


def _scatter_add_to_zeros(F, g, indices, size):
    """Zeros over `size` spatial places with `g` added at flat `indices`."""
    count = len(size)
    lead = tuple(g.shape[: g.ndim - count])
    flat = (*lead, math.prod(g.shape[g.ndim - count :]))
    wide = F._new_zeros(g, (*lead, math.prod(size)))
    return F.reshape(F.scatter_add(wide, len(lead), F.reshape(indices, flat), F.reshape(g, flat)), (*lead, *size))


def _max_pool_backward(F, grad_output, input, output, kernel, stride, padding, dilation, ceil_mode):
    indices = F._max_pool_with_indices(input, kernel, stride, padding, dilation, ceil_mode)[1]
    return _scatter_add_to_zeros(F, grad_output, indices, _spatial(input.shape, len(kernel)))


def apply_matrix_along_dim(F, x, dim, matrix):
    """x with `matrix` (new, old) applied along a dimension."""
    if dim == x.ndim - 1:
        return F.matmul(x, F.transpose(matrix, 0, 1))
    lead, rest = tuple(x.shape[:dim]), tuple(x.shape[dim + 1 :])
    x = F.reshape(x, (*lead, x.shape[dim], math.prod(rest)))
    return F.reshape(F.matmul(matrix, x), (*lead, matrix.shape[0], *rest))


def _window_membership_matrix(F, like, start, end, n):
    """The matrix (windows, n) with 1 where a window [start, end) covers a place."""
    start, end = F.unsqueeze(start, 1), F.unsqueeze(end, 1)
    places = F.unsqueeze(F._new_arange(like, 0, n, 1, _index_dtype()), 0)
    return F.to(F.logical_and(F.ge(places, start), F.lt(places, end)), F.dtype_of(like))


def _avg_windows(F, like, n, out, kernel, stride, padding, count_include_pad):
    start = F.add(F.mul(F._new_arange(like, 0, out, 1, _index_dtype()), stride), -padding)
    end = F.add(start, kernel)
    width = F.sub(F.minimum(end, F._new_full(end, end.shape, n + padding)), start)
    inside = F.sub(F.minimum(end, F._new_full(end, end.shape, n)), F.maximum(start, F._new_zeros(start, start.shape)))
    return _window_membership_matrix(F, like, start, end, n), F.to(
        width if count_include_pad else inside, F.dtype_of(like)
    )


def _avg_matrices(F, like, size, out, kernel, stride, padding, count_include_pad, divisor_override):
    """A window matrix for each axis, and the divisor of the sums."""
    matrices, total = [], None
    for i, numbers in enumerate(zip(size, out, kernel, stride, padding, strict=True)):
        matrix, width = _avg_windows(F, like, *numbers, count_include_pad)
        matrices.append(matrix)
        width = F.reshape(width, (-1, *(1,) * (len(size) - 1 - i)))
        total = width if total is None else F.mul(total, width)
    return matrices, total if divisor_override is None else divisor_override


def _avg_pool(F, input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    count = len(kernel)
    out = _spatial(_pooled_shape(input.shape, kernel, stride, padding, (1,) * count, ceil_mode), count)
    matrices, divisor = _avg_matrices(
        F, input, _spatial(input.shape, count), out, kernel, stride, padding, count_include_pad, divisor_override
    )
    x = input
    for i, matrix in enumerate(matrices):
        x = apply_matrix_along_dim(F, x, input.ndim - count + i, matrix)
    mean, dtype = F.div(x, divisor), F.dtype_of(input)
    return mean if dtype.is_floating_point else F.to(mean, dtype)


def _avg_pool_backward(F, grad_output, size, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    count = len(kernel)
    out = _spatial(grad_output.shape, count)
    matrices, divisor = _avg_matrices(
        F, grad_output, size, out, kernel, stride, padding, count_include_pad, divisor_override
    )
    g = F.div(grad_output, divisor)
    for i, matrix in enumerate(matrices):
        g = apply_matrix_along_dim(F, g, g.ndim - count + i, F.transpose(matrix, 0, 1))
    return g


def _adaptive_matrix(F, like, n, out):
    start, end = _adaptive_starts(F, like, n, out)
    return F.div(
        _window_membership_matrix(F, like, start, end, n), F.unsqueeze(F.to(F.sub(end, start), F.dtype_of(like)), 1)
    )


def _adaptive_avg_pool(F, input, output_size):
    x, first = input, input.ndim - len(output_size)
    for i, out in enumerate(output_size):
        x = apply_matrix_along_dim(F, x, first + i, _adaptive_matrix(F, x, x.shape[first + i], out))
    return x


def _adaptive_avg_pool_backward(F, grad_output, size):
    g, first = grad_output, grad_output.ndim - len(size)
    for i, n in enumerate(size):
        g = apply_matrix_along_dim(F, g, first + i, F.transpose(_adaptive_matrix(F, g, n, g.shape[first + i]), 0, 1))
    return g


# -- records ---------------------------------------------------------------------------------------


def _max_shape_fn(input, kernel, stride, padding, dilation, ceil_mode):
    return _pooled_shape(input.shape, kernel, stride, padding, dilation, ceil_mode), input.dtype


def _check_adaptive_gradient(grad, output_size, kind):
    """The gradient of an adaptive pooling. RuntimeError for one without elements in a plane."""
    count = len(output_size)
    if 0 in output_size:
        shape = [*grad.shape[: grad.ndim - count], *[1] * (count == 1), *output_size]
        place = shape.index(0, len(shape) - max(count, 2))
        raise RuntimeError(
            f"adaptive_{kind}_pool{max(count, 2)}d_backward(): Expected grad_output to have non-zero size for "
            f"non-batch dimensions, but grad_output has sizes {shape} with dimension {place} being empty"
        )
    return grad


def _values_and_indices_meta(shape, dtype):
    return [(shape, dtype), (shape, _index_dtype())]


_WINDOW = "kernel, stride, padding, dilation, ceil_mode"
_AVERAGE = "kernel, stride, padding, ceil_mode, count_include_pad, divisor_override"

op(
    f"_max_pool(Tensor input, {_WINDOW})",
    where="",
    composite=_max_pool,
    shape_fn=_max_shape_fn,
    vjp={
        "input": lambda F, g, input, out, kernel, stride, padding, dilation, ceil_mode: F._max_pool_backward(
            g, input, out, kernel, stride, padding, dilation, ceil_mode
        )
    },
    zero_derivatives={"input": ("input",)},
    doc="The maximum over windows of the last len(kernel) dimensions.",
    layout=memory_layout.pooling,
    repeatable=True,
    node_name=pool_graph("Max", "kernel", "WithIndicesBackward0"),
)  # its result is often written to: relu_ of it
op(
    f"_max_pool_backward(Tensor grad_output, Tensor input, Tensor output, {_WINDOW})",
    where="",
    composite=_max_pool_backward,
    shape_fn=lambda grad_output, input: (input.shape, grad_output.dtype),
    doc="The gradient of `_max_pool`: each gradient goes to its window's first largest element.",
)
op(
    f"_max_pool_with_indices(Tensor input, {_WINDOW})",
    where="",
    outputs=("values", "indices"),
    nondiff=(1,),
    composite=_max_pool_with_indices,
    shape_fn=lambda input, kernel, stride, padding, dilation, ceil_mode: _values_and_indices_meta(
        *_max_shape_fn(input, kernel, stride, padding, dilation, ceil_mode)
    ),
    vjp={
        "input": lambda F, g, input_shape, kernel, out1: _scatter_add_to_zeros(
            F, g[0], out1, _spatial(input_shape, len(kernel))
        )
    },
    zero_derivatives={"input": ("input",)},
    doc="`_max_pool` and the flat spatial index (int64) of each maximum.",
    layout=memory_layout.pooling_with_indices,
    node_name=pool_graph("Max", "kernel", "WithIndicesBackward0"),
)
op(
    "_adaptive_max_pool(Tensor input, output_size)",
    where="",
    outputs=("values", "indices"),
    nondiff=(1,),
    composite=_adaptive_max_pool,
    shape_fn=lambda input, output_size: _values_and_indices_meta(
        (*input.shape[: len(input.shape) - len(output_size)], *output_size), input.dtype
    ),
    vjp={
        "input": lambda F, g, input_shape, output_size, out1: _scatter_add_to_zeros(
            F, _check_adaptive_gradient(g[0], output_size, "max"), out1, _spatial(input_shape, len(output_size))
        )
    },
    zero_derivatives={"input": ("input",)},
    doc="The maximum over `output_size` windows that share the last dimensions among them, and its flat spatial index.",
    layout=memory_layout.suggest_memory_format_2d,
    node_name=pool_graph("AdaptiveMax", "output_size"),
)
op(
    "_fractional_max_pool(Tensor input, Tensor random_samples, kernel, output_size)",
    where="",
    outputs=("values", "indices"),
    nondiff=(1,),
    shape_fn=lambda input, output_size: _values_and_indices_meta((*input.shape[:2], *output_size), input.dtype),
    vjp={
        "input": lambda F, g, input_shape, kernel, out1: _scatter_add_to_zeros(
            F, g[0], out1, _spatial(input_shape, len(kernel))
        )
    },
    zero_derivatives={"input": ("input",)},
    doc="The maximum over pseudo-randomly placed windows (Graham, 2014, arXiv:1412.6071), and its flat spatial index.",
    node_name=pool_graph("FractionalMax", "kernel"),
)
op(
    f"_avg_pool(Tensor input, {_AVERAGE})",
    where="",
    composite=_avg_pool,
    shape_fn=lambda input, kernel, stride, padding, ceil_mode: (
        _pooled_shape(input.shape, kernel, stride, padding, (1,) * len(kernel), ceil_mode),
        input.dtype,
    ),
    vjp={
        "input": lambda F, g, input_shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            F._avg_pool_backward(
                g,
                _spatial(input_shape, len(kernel)),
                kernel,
                stride,
                padding,
                ceil_mode,
                count_include_pad,
                divisor_override,
            )
        )
    },
    zero_derivatives={"input": ("input",)},
    doc="The average over windows of the last len(kernel) dimensions.",
    layout=memory_layout.suggest_memory_format_2d,
    node_name=pool_graph("Avg", "kernel"),
)
op(
    f"_avg_pool_backward(Tensor grad_output, size, {_AVERAGE})",
    where="",
    composite=_avg_pool_backward,
    shape_fn=lambda grad_output, size: (
        (*grad_output.shape[: len(grad_output.shape) - len(size)], *size),
        grad_output.dtype,
    ),
    vjp={
        "grad_output": lambda F, g, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            F._avg_pool(g, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
        )
    },
    doc="The transpose of `_avg_pool`.",
)
op(
    "_adaptive_avg_pool(Tensor input, output_size)",
    where="",
    composite=_adaptive_avg_pool,
    shape_fn=lambda input, output_size: (
        (*input.shape[: len(input.shape) - len(output_size)], *output_size),
        input.dtype,
    ),
    vjp={
        "input": lambda F, g, input_shape, output_size: F._adaptive_avg_pool_backward(
            _check_adaptive_gradient(g, output_size, "avg"), _spatial(input_shape, len(output_size))
        )
    },
    zero_derivatives=lambda node: {"input": ("input",) if max(saved_argument(node, "output_size")) > 1 else ()},
    doc="The average over `output_size` windows that share the last dimensions among them.",
    layout=memory_layout.suggest_memory_format_2d,
    node_name=adaptive_average_graph,
)
op(
    "_adaptive_avg_pool_backward(Tensor grad_output, size)",
    where="",
    composite=_adaptive_avg_pool_backward,
    shape_fn=lambda grad_output, size: (
        (*grad_output.shape[: len(grad_output.shape) - len(size)], *size),
        grad_output.dtype,
    ),
    vjp={
        "grad_output": lambda F, g, grad_output_shape, size: F._adaptive_avg_pool(
            g, _spatial(grad_output_shape, len(size))
        )
    },
    doc="The transpose of `_adaptive_avg_pool`.",
)
