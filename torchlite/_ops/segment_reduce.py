"""Reductions of consecutive segments."""

import math

from torchlite._dispatch import composite, op
from torchlite._dispatch.shape_and_value_checks import all_true
from torchlite._dispatch.shapes import wrap_dim

from .._types.dtypes import FLOAT, float32, int64
from .gather_scatter import effect_of_other_zeros, ones_for_zeros

# The default result for an empty segment.
_EMPTY = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}
_START = {**_EMPTY, "mean": 0.0}
_OTHER_NAMES = {"amax": "max", "amin": "min"}


def _segment_starts_and_lengths(F, data, lengths, offsets, axis, unsafe):
    """Start index and length of each segment, checked."""
    if offsets is not None:
        given = offsets
        starts, lengths = F.narrow(offsets, -1, 0, offsets.shape[-1] - 1), F.diff(offsets)
    elif lengths is not None:
        given = lengths
        starts = F.cumsum(lengths, -1) - lengths
    else:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != given.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if offsets is None and not unsafe:
        if lengths.numel() and not all_true(lengths >= 0):
            raise RuntimeError("lengths contains negative value!")
        if not all_true(F.sum(lengths, -1) == data.shape[axis]):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    return F.to(starts, int64), F.to(lengths, int64)


@composite(
    "segment_reduce(Tensor data, reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, axis=0, "
    "unsafe=False, initial=None)",
    where="torch",
    alias="torch._segment_reduce",
    node_name="SegmentReduceBackward0(data)",
)
def segment_reduce(F, data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    """Reduces consecutive segments of a dimension.

    Exactly one of `lengths` and `offsets` gives the segments.

    Args:
        data: The values, floating point.
        reduce: ``"sum"``, ``"mean"``, ``"prod"``, ``"max"`` or ``"min"``.
        lengths: The lengths of the segments, int32 or int64; they add up to the size of `axis`.
        indices: Not supported.
        offsets: The start of each segment, and the end of the last one.
        axis: The dimension that is reduced, the last one of `lengths` or `offsets`.
        unsafe: Whether the check of `lengths` is left out. Default: ``False``.
        initial: The value that each reduction starts with. Default: the reduction's neutral element; NaN for an
            empty mean.

    Raises:
        RuntimeError: `lengths` are negative or have another sum, `axis` or `reduce` do not fit, or `indices` is
            given.
        NotImplementedError: The dtype is not floating point.

    Example:
        >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([2, 1]))
        tensor([3., 3.])
    """
    reduce = _OTHER_NAMES.get(reduce, reduce)
    if reduce not in _EMPTY:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if data.numel() == 0 and data.ndim == 0:
        raise RuntimeError("segment_reduce(): Expected data to have at least one dimension.")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if data.dtype.category != FLOAT:
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{data.dtype.scalar_name}'")
    axis = wrap_dim(axis, data.ndim)
    starts, lengths = _segment_starts_and_lengths(F, data, lengths, offsets, axis, unsafe)
    length, segments = data.shape[axis], lengths.shape[-1]
    if data.device.type == "cpu" and offsets is None and lengths.ndim == 1 and not unsafe:  # a device would wait
        segment = F._repeat_interleave_indices(lengths)
    else:
        place = F._new_arange(lengths, 0, length, 1, int64).expand(*lengths.shape[:-1], length)
        segment = F.searchsorted((starts + lengths).contiguous(), place.contiguous(), right=True)
    # Elements outside all segments go to an additional one, which is dropped.
    if offsets is not None and segments:
        segment = F.where(place < F.narrow(starts, -1, 0, 1), F._full_like(segment, segments), segment)
    tail = (1,) * (data.ndim - axis - 1)
    segment = segment.reshape(tuple(segment.shape) + tail).expand(data.shape)
    wide = F.to(data, float32) if data.dtype.itemsize < 4 else data
    out = F._segments(wide, segment, axis, segments + 1, reduce, _START[reduce] if initial is None else initial)
    out = F.narrow(out, axis, 0, segments)
    if reduce == "mean":
        count = F.to(lengths, wide.dtype).reshape(tuple(lengths.shape) + tail)
        out = F.where(count == 0, _EMPTY[reduce] if initial is None else initial, out / F.clamp_min(count, 1))
    return F.to(out, data.dtype)


_SCATTERED = {"max": "amax", "min": "amin", "prod": "prod"}


def _reduce_segments(F, data, segment, axis, segments, reduce, start):
    shape = (*data.shape[:axis], segments, *data.shape[axis + 1 :])
    begin = F._new_full(data, shape, start)
    if reduce in _SCATTERED:
        return F.scatter_reduce(begin, axis, segment, data, _SCATTERED[reduce])
    return F.scatter_add(begin, axis, segment, data)


def _count_masked_per_segment(F, mask, segment, axis, like):
    """Number of elements of each element's segment a mask holds."""
    return _sum_per_segment(F, F.to(mask, F.dtype_of(like)), segment, axis, like)


def _sum_per_segment(F, values, segment, axis, like):
    """The sum of the values of each element's segment, per element."""
    return F.gather(F.scatter_add(F._zeros_like(like), axis, segment, values), axis, segment)


def _segments_vjp(F, g, data, segment, out, axis, segments, reduce, start):
    g = F.gather(g, axis, segment)
    if reduce in ("sum", "mean"):
        return g
    if reduce != "prod":  # shared by the equal elements of a segment, NaNs among them
        best = F.gather(out, axis, segment)
        hit = F.logical_or(F.eq(data, best), F.logical_and(F.isnan(data), F.isnan(best)))
        share = F.div(
            F.to(hit, F.dtype_of(data)),
            F.maximum(_count_masked_per_segment(F, hit, segment, axis, out), F._ones_like(g)),
        )
        return F.mul(g, share)
    # The product of the others, right where there are zeros and NaNs.
    unknown = F.isnan(data)
    plain = F._where(unknown, F._ones_like(data), ones_for_zeros(F, data))
    product = F.gather(_reduce_segments(F, plain, segment, axis, segments, reduce, start), axis, segment)
    others = F.mul(
        F.div(product, plain),
        effect_of_other_zeros(F, data, lambda f: _sum_per_segment(F, f(data), segment, axis, out)),
    )
    unknowns = F.sub(_count_masked_per_segment(F, unknown, segment, axis, out), F.to(unknown, F.dtype_of(data)))
    return F.mul(g, F._where(F.gt(unknowns, 0), F._full_like(data, math.nan), others))


op(
    "_segments(Tensor data, Tensor segment, axis, segments, reduce, start)",
    where="",
    composite=_reduce_segments,
    vjp={"data": _segments_vjp},
    zero_derivatives={"data": ("data",)},
)
