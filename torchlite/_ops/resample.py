"""Resampling: `interpolate` and its older names, `grid_sample` and `affine_grid`."""

import itertools
import math
import operator
import warnings

import numpy as np

from torchlite._dispatch import composite, memory_layout, op
from torchlite._types.dtypes import BOOL, COMPLEX, INT, uint8

from ._dtype_checks import refuse_floats, refuse_kinds
from .node_graphs import grid_sample_graph, resize_graph

# -- interpolation ---------------------------------------------------------------------------------

op(
    "_resize(Tensor input, size, mode, align_corners, factors, antialias)",
    where="",
    shape_fn=lambda input, size: ((*input.shape[: len(input.shape) - len(size)], *size), input.dtype),
    vjp={
        "input": lambda F, g, input_shape, size, mode, align_corners, factors, antialias: F._resize_backward(
            g, tuple(input_shape[len(input_shape) - len(size) :]), mode, align_corners, factors, antialias
        )
    },
    doc="The input resampled to `size` along its last dimensions, each on its own. `factors` has for each None or the "
    "scale factor that the caller gave.",
    layout=memory_layout.upsampling,
    node_name=resize_graph,
)
op(
    "_resize_backward(Tensor grad_output, size, mode, align_corners, factors, antialias)",
    where="",
    shape_fn=lambda grad_output, size: (
        (*grad_output.shape[: len(grad_output.shape) - len(size)], *size),
        grad_output.dtype,
    ),
    vjp={
        "grad_output": lambda F, g, grad_output_shape, size, mode, align_corners, factors, antialias: F._resize(
            g, tuple(grad_output_shape[len(grad_output_shape) - len(size) :]), mode, align_corners, factors, antialias
        )
    },
    doc="The transpose of `_resize`.",
)

_DIMS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5, "lanczos": 4}
_PLANES = ("bicubic", "lanczos")  # modes of planes alone
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def _to_sequence(value):
    return isinstance(value, (tuple, list))


def _is_integer(value) -> bool:
    """True if a size may be this value: an integer, also of NumPy or of a tensor without dimensions."""
    if hasattr(value, "_tl_array"):
        return not value.ndim and value.dtype.category == 1
    return not isinstance(value, (bool, np.bool_, np.ndarray)) and hasattr(value, "__index__")


def _check_output_size(mode, spatial, size) -> None:
    """TypeError with PyTorch's words for sizes that are no integers."""
    listed = _to_sequence(size)
    items = list(size) if listed else [size] * spatial
    if all(map(_is_integer, items)):
        return
    if listed and not hasattr(size, "_tl_array"):
        kinds = [type(item) for item in size]
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {kinds}"
        )
    name = "adaptive_avg_pool" if mode == "area" else f"upsample_{mode.replace('-', '_')}"
    raise TypeError(
        f"{name}{spatial}d(): argument 'output_size' must be tuple of ints, but found element of type "
        f"{type(items[0]).__name__} at pos 0"
    )


def _check_scale_factor(mode, scale_factor) -> None:
    """TypeError with PyTorch's words for factors that are no numbers."""
    for place, factor in enumerate(scale_factor if _to_sequence(scale_factor) else [scale_factor]):
        if hasattr(factor, "_tl_array") or not hasattr(factor, "__float__"):
            raise TypeError(
                f"upsample_{mode}(): argument 'scale_factors' must be tuple of floats, but found element of type "
                f"{type(factor).__name__} at pos {place + 1}"
            )


def _output_size(input, size, scale_factor, mode):
    """The output's spatial size, and the scale factor of each dimension (or None)."""
    spatial = tuple(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        _check_output_size(mode, len(spatial), size)
        if _to_sequence(size):
            if len(size) != len(spatial):
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got input with spatial "
                    f"dimensions of {list(spatial)} and output size of {size}. Please provide input tensor in (N, C, "
                    "d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
                )
            return tuple(int(n) for n in size), (None,) * len(spatial)
        return (int(size),) * len(spatial), (None,) * len(spatial)
    _check_scale_factor(mode, scale_factor)
    if _to_sequence(scale_factor):
        if len(scale_factor) != len(spatial):
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(spatial)} and scale_factor of shape {scale_factor}. Please provide input "
                "tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
            )
        factors = tuple(float(f) for f in scale_factor)
    else:
        factors = (float(scale_factor),) * len(spatial)
    if not all(math.isfinite(f) for f in factors):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return tuple(math.floor(n * f) for n, f in zip(spatial, factors, strict=True)), factors


def used_factors(mode, sizes, out, factors, antialias):
    """The scale factors without those of dimensions that keep their size, as PyTorch copies along these. Cubic
    splines, and nearest elements of rows and volumes, use the factors.
    """
    if not antialias and (mode in ("bicubic", "nearest-exact") or (mode == "nearest" and len(out) != 2)):
        return factors
    return tuple(None if n == m else factor for n, m, factor in zip(sizes, out, factors, strict=True))


def _check_mode(input, mode, align_corners, antialias):
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    elif mode in ("linear", "bilinear", "trilinear") and not antialias and input.ndim in {3, 4, 5} - {_DIMS[mode]}:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {_DIMS[mode]}D input")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    fits = 3 <= input.ndim <= 5 and mode in ("nearest", "nearest-exact", "area", *_DIMS)
    if not fits or (mode in _PLANES and input.ndim != 4):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: {_MODES} "
            f"(got {mode})"
        )
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")


def _check_dtype(input, mode, antialias):
    """Images of bytes are resampled like those of floating point; what else holds integers, or is complex, is not."""
    nearest = "upsample_nearest2d_channels_last" if input.ndim == 4 else "compute_indices_weights_nearest"
    kernel = {
        "area": "adaptive_avg_pool3d_cpu" if input.ndim == 5 else "adaptive_avg_pool2d",
        "bicubic": "compute_indices_weights_cubic",
        "bilinear": "upsample_bilinear2d_channels_last", "linear": "compute_indices_weights_linear",
        "trilinear": "compute_indices_weights_linear",
    }.get(mode, nearest)  # fmt: skip
    bytes_too = mode not in ("area", "linear", "trilinear")
    if not input.dtype.is_floating_point and not (bytes_too and input.dtype is uint8):
        kernel = "compute_index_ranges_weights" if antialias else kernel
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


@composite(
    "interpolate(Tensor input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
    "recompute_scale_factor=None, antialias=False)",
    where="nn.functional",
    layout=memory_layout.upsampling,
)
def interpolate(F, input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    """Resamples the spatial dimensions to given sizes or by given factors.

    Bicubic interpolation is that of Keys (1981) with ``a = -0.75``, or ``-0.5`` with `antialias`.

    Args:
        input: The input, of shape ``(N, C, *)``.
        size: The spatial sizes of the result, a number or one a dimension.
        scale_factor: The factors of the sizes, in place of `size`.
        mode: ``"nearest"``, ``"nearest-exact"`` or ``"area"`` for one to three spatial dimensions, ``"linear"`` for
            one, ``"bilinear"``, ``"bicubic"`` and ``"lanczos"`` for two, ``"trilinear"`` for three. Default:
            ``"nearest"``.
        align_corners: Whether the centers of the corner pixels, not their edges, are aligned. Default: ``False``.
        recompute_scale_factor: Whether the factors are computed again from the rounded sizes. Default: ``False``.
        antialias: Whether the filter is widened where the result is smaller. Default: ``False``.

    Raises:
        ValueError: Neither or both of `size` and `scale_factor` are given, or an option does not fit the mode.
        NotImplementedError: The mode does not fit the number of dimensions.

    Example:
        >>> F.interpolate(torch.tensor([[[1.0, 3.0]]]), 4, mode="linear")
        tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])

    See also:
        `torch.nn.Upsample`.
    """
    _check_mode(input, mode, align_corners, antialias)
    out, factors = _output_size(input, size, scale_factor, mode)
    if recompute_scale_factor:
        if scale_factor is None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        factors = (None,) * len(out)
    if mode == "area":
        _check_dtype(input, mode, antialias)
        return getattr(F, f"adaptive_avg_pool{len(out)}d")(input, out)
    if min(out) <= 0 or min(input.shape[2:]) <= 0:
        shown = [
            ", ".join(f"{c}: {n}" for c, n in zip("DHW"[-len(out) :], sizes, strict=True))
            for sizes in (input.shape[2:], out)
        ]
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({shown[0]}) output ({shown[1]})"
        )
    _check_dtype(input, mode, antialias)
    factors = used_factors(mode, input.shape[2:], out, factors, antialias)
    return F._resize(input, out, mode, bool(align_corners), factors, bool(antialias))


@composite(
    "upsample(Tensor input, size=None, scale_factor=None, mode='nearest', align_corners=None)",
    where="nn.functional",
    layout=memory_layout.upsampling,
)
def upsample(F, input, size, scale_factor, mode, align_corners):
    """Resamples the spatial dimensions. Deprecated: use `torch.nn.functional.interpolate`.

    Args:
        size: The spatial sizes of the result.
        scale_factor: The factors of the sizes, in place of `size`.
        mode: The mode. Default: ``"nearest"``.
        align_corners: Whether the centers of the corner pixels, not their edges, are aligned. Default: ``False``.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     F.upsample(torch.tensor([[[1.0, 3.0]]]), 4)
        tensor([[[1., 1., 3., 3.]]])

    See also:
        `torch.nn.functional.interpolate`.
    """
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=4)
    return F.interpolate(input, size, scale_factor, mode, align_corners)


@composite(
    "upsample_nearest(Tensor input, size=None, scale_factor=None)",
    where="nn.functional",
    layout=memory_layout.upsampling,
)
def upsample_nearest(F, input, size, scale_factor):
    """Resamples by the nearest elements. Deprecated: use `torch.nn.functional.interpolate`.

    Args:
        size: The spatial sizes of the result.
        scale_factor: The factors of the sizes, in place of `size`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     F.upsample_nearest(torch.tensor([[[1.0, 3.0]]]), 4)
        tensor([[[1., 1., 3., 3.]]])

    See also:
        `torch.nn.functional.interpolate`.
    """
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=4
    )
    return F.interpolate(input, size, scale_factor, "nearest")


@composite(
    "upsample_bilinear(Tensor input, size=None, scale_factor=None)",
    where="nn.functional",
    layout=memory_layout.upsampling,
)
def upsample_bilinear(F, input, size, scale_factor):
    """Resamples bilinearly with aligned corners. Deprecated: use `torch.nn.functional.interpolate`.

    Args:
        size: The spatial sizes of the result.
        scale_factor: The factors of the sizes, in place of `size`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     F.upsample_bilinear(torch.tensor([[[[1.0, 3.0]]]]), (1, 3))
        tensor([[[[1., 2., 3.]]]])

    See also:
        `torch.nn.functional.interpolate`.
    """
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=4
    )
    return F.interpolate(input, size, scale_factor, "bilinear", True)


# -- sampling on a grid ----------------------------------------------------------------------------

_SAMPLING = ("bilinear", "nearest", "bicubic")
_OUTSIDE = ("zeros", "border", "reflection")


def _condition_to_float(F, condition, like):
    return F.to(condition, F.dtype_of(like))


def _clip_positions(F, at, slope, n):
    """Positions clipped to the image, and their slope: clipped positions have no gradient."""
    inside = F.logical_and(F.gt(at, 0), F.lt(at, n - 1))
    edge = F.mul(_condition_to_float(F, F.ge(at, n - 1), at), n - 1)
    return F.where(inside, at, edge), F.mul(slope, _condition_to_float(F, inside, at))


def _reflect_positions(F, at, slope, n, align_corners):
    """Positions reflected at the image's outer pixel centres (align_corners) or edges until they are inside, and the
    slope of that.
    """
    low, span = (0.0, float(n - 1)) if align_corners else (-0.5, float(n))
    if span == 0:
        return F.mul(at, 0), F.mul(slope, 0)
    shifted = F.sub(at, low)
    away = F.abs(shifted)
    turns = F.floor(F.div(away, span))
    rest = F.sub(away, F.mul(turns, span))
    odd = F.eq(F.remainder(turns, 2), 1)
    down = F.ne(F.lt(shifted, 0), odd)
    return F.add(F.where(odd, F.add(F.neg(rest), span), rest), low), F.mul(
        slope, F.sub(F.mul(_condition_to_float(F, F.logical_not(down), at), 2), 1)
    )


def _apply_padding_mode(F, at, slope, n, padding_mode, align_corners):
    if padding_mode == "reflection":
        at, slope = _reflect_positions(F, at, slope, n, align_corners)
    return (at, slope) if padding_mode == "zeros" else _clip_positions(F, at, slope, n)


def _cubic_weights(F, part):
    """Weights of the four places around a position by cubic convolution (Keys, 1981) with a =
    -0.75, and their slopes.
    """
    a = -0.75

    def polynomial(t, *factors):
        total = F.add(F.mul(t, factors[0]), factors[1])
        for factor in factors[2:]:
            total = F.add(F.mul(total, t), factor)
        return total

    def near(t):
        return polynomial(t, a + 2, -(a + 3), 0, 1), polynomial(t, 3 * (a + 2), -2 * (a + 3), 0)

    def far(t):
        return polynomial(t, a, -5 * a, 8 * a, -4 * a), polynomial(t, 3 * a, -10 * a, 8 * a)

    rest = F.add(F.neg(part), 1)
    found = [far(F.add(part, 1)), near(part), near(rest), far(F.add(rest, 1))]
    return [(w, F.neg(d) if i > 1 else d) for i, (w, d) in enumerate(found)]


def _axis_taps(F, at, slope, n, mode, padding_mode, align_corners):
    """The places that a sample looks at along one axis: (place, whether inside, weight, slope of the weight) each; all
    have the samples' shape.
    """
    if mode != "bicubic":
        at, slope = _apply_padding_mode(F, at, slope, n, padding_mode, align_corners)
    if mode == "nearest":
        found = [(F.round(at), None, None)]
    else:
        low = F.floor(at)
        part = F.sub(at, low)
        if mode == "bilinear":
            one = F._ones_like(part)
            found = [(low, F.sub(one, part), F.neg(slope)), (F.add(low, 1), part, slope)]
        else:
            places = [F.add(low, k - 1) for k in range(4)]
            places = [
                F.round(_apply_padding_mode(F, place, slope, n, padding_mode, align_corners)[0]) for place in places
            ]
            found = [(place, w, F.mul(d, slope)) for place, (w, d) in zip(places, _cubic_weights(F, part), strict=True)]
    taps = []
    for place, weight, weight_slope in found:
        inside = F.logical_and(F.ge(place, 0), F.le(place, n - 1))
        taps.append((F.to(F.where(inside, place, F._zeros_like(place)), _to_int64()), inside, weight, weight_slope))
    return taps


def _to_int64():
    from torchlite._types.dtypes import BY_NAME

    return BY_NAME["int64"]


def _all_taps(F, grid, size, mode, padding_mode, align_corners):
    """For each combination of taps: indices (samples,) of rows over the entire batch, the in-bounds mask (samples, 1),
    the weight along each axis, and the slopes. The index outside of the image is that of the row after the last.
    """
    batch, samples = grid.shape[0], math.prod(grid.shape[1:-1])
    axes = []
    for i, n in enumerate(size):
        position = F.reshape(F.select(grid, grid.ndim - 1, len(size) - 1 - i), (batch * samples, 1))
        factor = (n - 1) / 2 if align_corners else n / 2
        at = F.add(F.mul(position, factor), (n - 1) / 2)
        if len(size) == 3 and padding_mode == "zeros":
            at = F.where(F.isnan(at), -2, at)  # outside of a volume, as in PyTorch, whose images give NaN
        axes.append(_axis_taps(F, at, F.mul(F._ones_like(at), factor), n, mode, padding_mode, align_corners))
    first = F.mul(F._new_arange(grid, 0, batch, 1, _to_int64()), math.prod(size))
    outside = F._new_full(first, (), batch * math.prod(size))
    first = F.reshape(F.expand(F.unsqueeze(first, 1), (batch, samples)), (batch * samples, 1))
    for combination in itertools.product(*axes):
        place, inside = None, None
        for (along, fits, _, _), n in zip(combination, size, strict=True):
            place = along if place is None else F.add(F.mul(place, n), along)
            inside = fits if inside is None else F.logical_and(inside, fits)
        weights = [w for _, _, w, _ in combination if w is not None]
        yield (
            F.reshape(F.where(inside, F.add(place, first), outside), (batch * samples,)),
            inside,
            weights,
            [d for _, _, _, d in combination if d is not None],
        )


def _multiply_weights(F, factors, inside=None):
    """The product of the weights. With a mask it is 0 outside of the image, where a weight may be NaN."""
    total = factors[0]
    for factor in factors[1:]:
        total = F.mul(total, factor)
    return total if inside is None else F.where(inside, total, F._zeros_like(total))


def _as_rows(F, x):
    """(N, C, ...) as one row of channels per place: (all places, C)."""
    x = F.transpose(F.reshape(x, (*x.shape[:2], math.prod(x.shape[2:]))), 1, 2)
    return F.reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))


def _add_row_of_zeros(F, rows):
    """The rows, and one for taps outside of the image: a weight of 0 would not remove an infinity or a NaN."""
    return F.cat([rows, F._new_zeros(rows, (1, rows.shape[1]))], 0)


def _from_rows(F, rows, shape):
    return F.reshape(
        F.contiguous(F.transpose(F.reshape(rows, (shape[0], math.prod(shape[2:]), shape[1])), 1, 2)), shape
    )


def _sample_at_grid(F, input, grid, mode, padding_mode, align_corners):
    size = tuple(input.shape[2:])
    rows, total = _add_row_of_zeros(F, _as_rows(F, input)), None
    for place, _, weights, _ in _all_taps(F, grid, size, mode, padding_mode, align_corners):
        piece = F.index_select(rows, 0, place)
        if weights:
            piece = F.mul(piece, _multiply_weights(F, weights))
        total = piece if total is None else F.add(total, piece)
    return _from_rows(F, total, (*input.shape[:2], *grid.shape[1:-1]))


def _sample_at_grid_backward(F, grad_output, input, grid, mode, padding_mode, align_corners, needs):
    size = tuple(input.shape[2:])
    rows, g = _add_row_of_zeros(F, _as_rows(F, input)), _as_rows(F, grad_output)
    grad_rows, grad_axes = F._new_zeros(g, tuple(rows.shape)), [None] * len(size)
    for place, inside, weights, slopes in _all_taps(F, grid, size, mode, padding_mode, align_corners):
        if needs[0]:
            piece = F.mul(g, _multiply_weights(F, weights, inside)) if weights else g
            grad_rows = F.index_add(grad_rows, 0, place, piece)
        if needs[1] and slopes:
            along = F.sum(F.mul(F.index_select(rows, 0, place), g), (1,), True)
            for i, slope in enumerate(slopes):
                piece = F.mul(along, _multiply_weights(F, [*weights[:i], slope, *weights[i + 1 :]], inside))
                grad_axes[i] = piece if grad_axes[i] is None else F.add(grad_axes[i], piece)
    grad_grid = None
    if needs[1]:
        grad_grid = F._zeros_like(grid)
        if grad_axes[0] is not None:
            grad_grid = F.stack([F.reshape(a, tuple(grid.shape[:-1])) for a in reversed(grad_axes)], grid.ndim - 1)
    if not needs[0]:
        return None, grad_grid
    return _from_rows(F, F.narrow(grad_rows, 0, 0, grad_rows.shape[0] - 1), tuple(input.shape)), grad_grid


op(
    "_grid_sample(Tensor input, Tensor grid, mode, padding_mode, align_corners)",
    where="",
    composite=_sample_at_grid,
    shape_fn=lambda input, grid: ((*input.shape[:2], *grid.shape[1:-1]), input.dtype),
    vjp={
        ("input", "grid"): lambda F, g, input, grid, mode, padding_mode, align_corners, needs: F._grid_sample_backward(
            g, input, grid, mode, padding_mode, align_corners, needs
        )
    },
    absent_derivatives=dict.fromkeys(("input", "grid"), ("input", "grid")),
    doc="`nn.functional.grid_sample` without its checks: sums over taps, each axis with its own places and weights.",
    node_name=grid_sample_graph,
)
op(
    "_grid_sample_backward(Tensor grad_output, Tensor input, Tensor grid, mode, padding_mode, align_corners, needs)",
    where="",
    composite=_sample_at_grid_backward,
    shape_fn=lambda input, grid: [(input.shape, input.dtype), (grid.shape, grid.dtype)],
    doc="The gradients of `_grid_sample`, None where `needs` has False.",
)


def _check_grid(input, grid, mode):
    n = input.ndim
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has {str(input.dtype)[6:]} and "
            f"grid has {str(grid.dtype)[6:]}"
        )
    shapes = f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {shapes}")
    if grid.shape[-1] != n - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    for dim in range(2, n):
        if input.shape[dim] <= 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    if n not in (4, 5) or grid.ndim != n:
        raise RuntimeError(
            f"grid_sampler(): expected 5D input and grid with same number of dimensions, but got {shapes}"
        )
    if n == 5 and mode == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def _sample_checked_grid(F, input, grid, mode, padding_mode, align_corners):
    _check_grid(input, grid, mode)
    name = "grid_sampler_2d_cpu_kernel_impl" if input.ndim == 4 else "grid_sampler3d_cpu"
    refuse_kinds(input.dtype, name, INT, BOOL, COMPLEX)
    if input.dtype.itemsize == 2:
        return F._grid_sample(input.float(), grid.float(), mode, padding_mode, align_corners).to(input.dtype)
    return F._grid_sample(input, grid, mode, padding_mode, align_corners)


@composite(
    "grid_sample(Tensor input, Tensor grid, mode='bilinear', padding_mode='zeros', align_corners=None)",
    where="nn.functional",
)
def grid_sample(F, input, grid, mode, padding_mode, align_corners):
    """Samples the input at given positions.

    -1 and 1 are the edges of the outermost pixels, or with `align_corners` their centers.

    Args:
        input: The input, of shape ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        grid: The positions, of shape ``(N, H_out, W_out, 2)`` or ``(N, D_out, H_out, W_out, 3)``: x first, from -1
            to 1.
        mode: ``"bilinear"`` (also for three dimensions), ``"nearest"``, or ``"bicubic"`` for two dimensions.
            Default: ``"bilinear"``.
        padding_mode: What is outside: ``"zeros"``, ``"border"`` or ``"reflection"``. Default: ``"zeros"``.
        align_corners: Whether -1 and 1 are the centers of the outermost pixels. Default: ``False``, with a warning.

    Returns:
        A tensor of shape ``(N, C, H_out, W_out)`` or ``(N, C, D_out, H_out, W_out)``.

    Raises:
        ValueError: A mode is unknown.
        RuntimeError: The shapes do not fit.

    Source:
        Jaderberg et al., Spatial transformer networks (2015).

    Example:
        >>> F.grid_sample(torch.tensor([[[[1.0, 2.0]]]]), torch.zeros(1, 1, 1, 2), align_corners=False)
        tensor([[[[1.5000]]]])

    See also:
        `torch.nn.functional.affine_grid`.
    """
    if mode not in _SAMPLING:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _OUTSIDE:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=4,
        )
    return _sample_checked_grid(F, input, grid, mode, padding_mode, bool(align_corners))


@composite(
    "grid_sampler(Tensor input, Tensor grid, interpolation_mode, padding_mode, align_corners)",
    where="torch",
    alias="grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback",
)
def grid_sampler(F, input, grid, interpolation_mode, padding_mode, align_corners):
    """Samples the input at given positions; the modes are numbers.

    Args:
        input: The input, of shape ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        grid: The positions, of shape ``(N, H_out, W_out, 2)`` or ``(N, D_out, H_out, W_out, 3)``: x first, from -1
            to 1.
        interpolation_mode: 0 (bilinear), 1 (nearest) or 2 (bicubic).
        padding_mode: 0 (zeros), 1 (border) or 2 (reflection).
        align_corners: Whether -1 and 1 are the centers of the outermost pixels.

    Example:
        >>> torch.grid_sampler(torch.tensor([[[[1.0, 2.0]]]]), torch.zeros(1, 1, 1, 2), 0, 0, False)
        tensor([[[[1.5000]]]])

    See also:
        `torch.nn.functional.grid_sample`.
    """
    return _sample_checked_grid(
        F, input, grid, _SAMPLING[interpolation_mode], _OUTSIDE[padding_mode], bool(align_corners)
    )


def _grid_positions(F, theta, n, align_corners):
    """n positions from -1 to 1: pixel centres when the corners are aligned, else such that the pixels' edges are at -1
    and 1.
    """
    if n <= 1:
        return F._new_zeros(theta, (n,))
    steps = F.sub(F.mul(F._new_arange(theta, 0, n, 1, F.dtype_of(theta)), 2 / (n - 1)), 1)
    return steps if align_corners else F.mul(steps, (n - 1) / n)


def _base_points(F, like, size, align_corners):
    """The positions of an output's points, and 1, as rows (1, points, 3 or 4)."""
    sizes = tuple(map(operator.index, size[2:]))
    count = len(sizes)
    columns = []
    for i in range(count - 1, -1, -1):
        steps = _grid_positions(F, like, sizes[i], align_corners)
        steps = F.reshape(steps, tuple(sizes[i] if j == i else 1 for j in range(count)))
        columns.append(F.expand(steps, sizes))
    columns.append(F._ones_like(columns[0]))
    return F.reshape(F.stack(columns, -1), (1, math.prod(sizes), count + 1))


def _check_affine_shapes(theta_shape, size) -> None:
    """Raise the errors of the grid and of its product with the matrices."""
    count = len(size) - 2
    if count not in (2, 3):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    rows, *spatial = [operator.index(n) for n in (size[0], *size[2:])]
    negative = next((n for n in (rows, *spatial) if n < 0), None)
    if negative is not None:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {[rows, *spatial, count + 1]}")
    if len(theta_shape) < 3:
        most = max(len(theta_shape), 1)
        raise IndexError(f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {most})")
    if len(theta_shape) != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if (theta_shape[0], theta_shape[2]) != (rows, count + 1):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{rows}, {count + 1}] but got: "
            f"[{theta_shape[0]}, {theta_shape[2]}]."
        )
    if theta_shape[1] != count:
        size_of_product = rows * math.prod(spatial) * theta_shape[1]
        raise RuntimeError(f"shape '{[rows, *spatial, count]}' is invalid for input of size {size_of_product}")


def _affine_shape(theta_shape, size) -> tuple:
    _check_affine_shapes(tuple(theta_shape), size)
    return (theta_shape[0], *map(operator.index, size[2:]), len(size) - 2)


def _affine_points(F, theta, size, align_corners):
    refuse_floats(*size)
    _check_affine_shapes(tuple(theta.shape), size)
    points = F.matmul(_base_points(F, theta, size, align_corners), F.transpose(theta, 1, 2))
    return F.reshape(points, (theta.shape[0], *map(operator.index, size[2:]), len(size) - 2))


def _affine_vjp(F, g, size, align_corners):
    count = len(size) - 2
    g = F.transpose(F.reshape(g, (g.shape[0], math.prod(g.shape[1:-1]), count)), 1, 2)
    return F.matmul(g, _base_points(F, g, size, align_corners))


op(
    "affine_grid_generator(Tensor theta, size, align_corners)",
    where="torch",
    composite=_affine_points,
    shape_fn=lambda theta, size: (_affine_shape(theta.shape, size), theta.dtype),
    vjp={"theta": _affine_vjp},
    doc="""Returns the positions of an affine map of a sampling grid, without the checks of `affine_grid`.

    Args:
        theta: The matrices, of shape ``(N, 2, 3)`` or ``(N, 3, 4)``.
        size: The shape of the output: ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        align_corners: Whether -1 and 1 are the centers of the outermost pixels.

    Returns:
        The positions, of shape ``(N, H, W, 2)`` or ``(N, D, H, W, 3)``.

    Example:
        >>> torch.affine_grid_generator(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2), True)
        tensor([[[[-1.,  0.],
                  [ 1.,  0.]]]])

    See also:
        `torch.nn.functional.affine_grid`.
    """,
)


@composite("affine_grid(Tensor theta, size, align_corners=None)", where="nn.functional")
def affine_grid(F, theta, size, align_corners):
    """Returns the positions of an affine map of a sampling grid, for `grid_sample`.

    Args:
        theta: The matrices, of shape ``(N, 2, 3)`` or ``(N, 3, 4)``.
        size: The shape of the output: ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        align_corners: Whether -1 and 1 are the centers of the outermost pixels. Default: ``False``, with a warning.

    Returns:
        The positions, of shape ``(N, H, W, 2)`` or ``(N, D, H, W, 3)``.

    Raises:
        ValueError: The shapes do not fit.
        NotImplementedError: `size` has neither four nor five elements.

    Example:
        >>> F.affine_grid(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2), align_corners=True)
        tensor([[[[-1., -1.],
                  [ 1., -1.]],
        <BLANKLINE>
                 [[-1.,  1.],
                  [ 1.,  1.]]]])

    See also:
        `torch.nn.functional.grid_sample`.
    """
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    given, size = size, tuple(map(operator.index, size))
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{given}."
        )
    count = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (count, count + 1):
        raise ValueError(
            f"Expected a batch of {count}D affine matrices of shape Nx{count}x{count + 1} for size {given}. Got "
            f"torch.Size({list(theta.shape)})."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {given}")
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=4,
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=4,
        )
    if theta.shape[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {count + 1}] but got: "
            f"[{theta.shape[0]}, {count + 1}]."
        )
    return F.affine_grid_generator(theta, size, bool(align_corners))
