"""Argument checks of ops, with PyTorch's error messages. The kernels of all backends call them with shapes and
numbers.
"""

from __future__ import annotations

import math
import operator
from typing import NoReturn

from .._types.dtypes import BOOL, COMPLEX, FLOAT, dtype, from_np, int32, int64, is_complex32, promote_types
from .callbacks import CALLBACKS
from .dispatch_state import MODE
from .interceptors import show_only_within, stack
from .shapes import wrap_dim

_INT64_MAX = 2**63 - 1  # sizes, strides and offsets are 64-bit integers


def storage_nbytes_for(size, stride, itemsize: int, offset: int = 0) -> int:
    """The bytes from the start of a storage to the end of a tensor with these sizes and strides (in elements).
    RuntimeError if they are negative or overflow.
    """
    if 0 in size:
        return 0
    span = (offset + 1 + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)])) * itemsize
    if min(size, default=1) < 0 or span > _INT64_MAX:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    return span


def check_new_size(size, itemsize: int) -> None:
    """Raise unless a new tensor can have these sizes."""
    if min(size, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    product = 1
    for n in reversed(size):
        product *= max(n, 1)
        if product > _INT64_MAX:
            break
    if product * (0 not in size) * itemsize > _INT64_MAX:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}")
    if product > _INT64_MAX:
        raise RuntimeError("Stride calculation overflowed")


def check_in_bounds_for_storage(size, stride, offset: int, itemsize: int, held: int) -> None:
    """Raise unless a tensor with these sizes, strides and offset (in elements) fits in a storage of `held` bytes."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    span = storage_nbytes_for(size, stride, itemsize, offset)
    if math.prod(size) > _INT64_MAX:
        raise RuntimeError("numel: integer multiplication overflow")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if span > held:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {span} are out of bounds for storage of size {held}"
        )


def view_dtype_geometry(shape, steps, offset: int, old, new) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, steps and offset in elements of memory that is read as another dtype: `old` and `new` are torchlite's."""
    shape, steps = tuple(shape), tuple(steps)
    if old.itemsize == new.itemsize:
        return shape, steps, offset
    words = f"to view {old.scalar_name} as {new.scalar_name} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {words}")
    broken = RuntimeError(f"self.stride(-1) must be 1 {words}, but got {steps[-1]}")
    if old.itemsize > new.itemsize:
        if steps[-1] != 1 and shape[-1] != 1:
            raise broken
        ratio = old.itemsize // new.itemsize
        return (*shape[:-1], shape[-1] * ratio), (*[s * ratio for s in steps[:-1]], 1), offset * ratio
    ratio = new.itemsize // old.itemsize
    if shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {words}, but got {shape[-1]}")
    if offset % ratio:
        raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {words}, but got {offset}")
    if steps[-1] != 1 and shape[-1] != 1:
        raise broken
    for d, step in enumerate(steps[:-1]):
        if step % ratio and shape[d] != 1:
            raise RuntimeError(f"self.stride({d}) must be divisible by {ratio} {words}, but got {step}")
    return (*shape[:-1], shape[-1] // ratio), (*[s // ratio for s in steps[:-1]], 1), offset // ratio


def diagonal_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    """The two dimensions of a diagonal, counted from the front."""
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def check_trace(ndim: int) -> None:
    """RuntimeError for the trace of what is no matrix."""
    if ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {ndim}")


def mean_dtype_error(given: dtype, wanted: dtype | None) -> RuntimeError:
    """The error of a mean that would be no floating-point number."""
    which = "Input" if wanted is None else "Optional"
    return RuntimeError(
        f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. Got: "
        f"{(wanted or given).scalar_name}"
    )


def check_roll(ndim: int, shifts: tuple, dims: tuple) -> tuple[int, ...]:
    """The non-negative dimensions of a roll; none if all elements roll as one flat row."""
    if not shifts:
        raise RuntimeError("`shifts` required")
    for shift in shifts:
        operator.index(shift)  # TypeError for a float
    if not dims and len(shifts) == 1:
        return ()
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return tuple(wrap_dim(d, ndim) for d in dims)


def check_gather(shape, dim: int, index_shape, integral: bool) -> None:
    """Raise unless an index (`integral`: int32 or int64) selects elements along `dim` of an array of `shape`."""
    if not integral:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if max(len(index_shape), 1) != max(len(shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for axis, n in enumerate(index_shape):
        if shape and axis != dim and n > shape[axis]:
            raise RuntimeError(
                f"Size does not match at dimension {axis} expected index {list(index_shape)} to be no larger than "
                f"self {list(shape)} apart from dimension {dim}"
            )


def check_one_source(src, value) -> None:
    """TypeError if `scatter` gets both forms of its source."""
    if src is not None and value is not None:
        raise TypeError("scatter() received an invalid combination of arguments: `src` and `value`")


def check_scatter(
    name: str, shape, dim: int, index_shape, integral: bool, source_shape=None, same_dtype: bool = True
) -> None:
    """Raise unless a source (or a number, which has no shape) can be written along `dim` at an index of an array of
    `shape`.
    """
    if not integral:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if not same_dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    ndim = max(len(shape), 1)
    for other, its_shape in (("self", index_shape), ("src", source_shape)):
        if its_shape is not None and max(len(its_shape), 1) != ndim:
            if other == "src" and 0 < len(its_shape) < ndim:
                wrap_dim(len(its_shape), len(its_shape))  # PyTorch compares the sizes first, and finds none there
            raise RuntimeError(f"Index tensor must have the same number of dimensions as {other} tensor")
    for axis, n in enumerate(index_shape or (1,)):
        if shape and axis != dim and n > shape[axis] or source_shape and n > source_shape[axis]:
            shown = index_shape if source_shape is None else source_shape
            raise RuntimeError(
                f"Expected index {list(index_shape)} to be no larger than self {list(shape)} apart from dimension "
                f"{dim} and to be no larger size than src {list(shown)}"
            )


def check_index_add(input, dim: int, count: int, source) -> None:
    """Raise unless `count` slices of a source array can be added to slices of `input` along `dim`."""
    if input.dtype != source.dtype:
        ours, theirs = (from_np(x.dtype).scalar_name for x in (input, source))
        raise RuntimeError(f"index_add_(): self ({ours}) and source ({theirs}) must have the same scalar type")
    check_slices("index_add_", input.shape, dim, count, source.shape)


def check_slices(name: str, shape, dim: int, count: int, source_shape) -> None:
    """Raise unless a source of `source_shape` has `count` slices along `dim` of an array of `shape`."""
    given = source_shape[dim] if source_shape else 1
    if count != given:
        if not source_shape:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise RuntimeError(
            f"{name}(): Number of indices ({count}) should be equal to source.size(dim): ({given}), for dim: {dim}"
        )
    others = [(*sizes[:dim], *sizes[dim + 1 :]) for sizes in (shape, source_shape)]
    if len(shape) != len(source_shape) or others[0] != others[1]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(shape)} source.shape = {list(source_shape)}"
        )


def check_selected_number(count: int) -> None:
    """Raise unless one index selects from an array without dimensions."""
    if count != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")


def check_index_vector(name: str, shape: tuple[int, ...], kind: dtype) -> None:
    """Raise PyTorch's errors unless an index is a vector of integers that the op `name` takes."""
    long, ndim = kind is int64, len(shape)
    if name == "index_copy_":
        if ndim > 1:
            raise IndexError(f"{name}(): Index should have dimension 1 or 0 (got {ndim})")
        if not long:
            raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {kind.scalar_name}")
    elif name == "index_fill_":
        if not long:
            raise IndexError(f"{name}(): Expected dtype int64 for index.")
        if ndim > 1:
            raise RuntimeError("Index has to be a vector/scalar")
    elif not name.endswith("_"):
        if ndim > 1:
            raise IndexError(f"{name}(): Index is supposed to be a vector")
        if not long and kind is not int32:
            raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index")
    elif ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {ndim} with type: {kind.scalar_name} and size: "
            f"{list(shape)}"
        )
    elif not long and kind is not int32:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {kind.scalar_name}")


def check_flat_target(name: str, did: str, size: int, count: int) -> None:
    """IndexError for `count` flat indices into an array without elements; `did` says what was tried."""
    if count and not size:
        raise IndexError(f"{name}(): {did} an empty tensor")


def check_index_copy(input, dim: int, count: int, source) -> None:
    """Raise unless `count` slices of a source array can replace slices of `input` along `dim`."""
    if input.dtype != source.dtype:
        ours, theirs = (from_np(x.dtype).scalar_name for x in (input, source))
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {ours} and (source) "
            f"{theirs}"
        )
    given = source.shape[dim] if source.ndim else 1
    if not source.ndim and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if count != given:
        raise IndexError(f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({given})")
    ours, theirs = (x.shape[:dim] + x.shape[dim + 1 :] for x in (input, source))
    if input.ndim and source.ndim and theirs != ours:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, ours))} at dimension {dim} and source slice shape: {' '.join(map(str, theirs))} at "
            "dimension 0."
        )


def check_index_fill(value) -> None:
    """Raise unless a value to write at an index is a number or a 0-d array."""
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )


def check_put(input, index, source) -> None:
    """Raise unless the elements of a source array can be written to `input` at a flat index."""
    if input.dtype != source.dtype:
        ours, theirs = (from_np(x.dtype).scalar_name for x in (input, source))
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {ours} and source.dtype = "
            f"{theirs}"
        )
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )


def check_written_slice(shape, source_shape) -> None:
    """Raise unless a source has the shape of the slice that it is written to."""
    if shape != source_shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(source_shape)}, slice size = "
            f"{list(shape)}"
        )


def check_selected(index: int, shape, dim: int) -> None:
    """Raise unless `index` is in range along `dim`."""
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")


def check_search(keys, values) -> None:
    """Raise unless each row of values has a row of sorted keys, or all share one, and the elements have an order."""
    keys_shape, values_shape = keys.shape, values.shape
    common = promote_types(from_np(keys.dtype), from_np(values.dtype))
    if common.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{common.scalar_name}'")
    if not values_shape and len(keys_shape) != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({len(keys_shape)}) and input value's dim(0) numel(1)"
        )
    if len(keys_shape) > 1 and keys_shape[:-1] != values_shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(keys_shape)} and input "
            f"value tensor {list(values_shape)}"
        )


def searches_right(right: bool, side: str | None) -> bool:
    """True if `right` and `side` ask for the place behind equal keys. Raise if they contradict each other."""
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return right or side == "right"


_CPP_TYPE_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int32": "int",
    "int64": "long int",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def check_same_dtype(input, value, name: str) -> None:
    """Raise unless the argument `name` has the dtype of `input`, with the names of PyTorch's C++ types."""
    if value.dtype != input.dtype:
        want, got = (_CPP_TYPE_NAMES.get(str(x.dtype), str(x.dtype)) for x in (input, value))
        raise RuntimeError(f"expected dtype {want} for `{name}` but got dtype {got}")


def check_unfold(dim: int, length: int, size: int, step: int) -> None:
    """Raise unless a dimension can be cut into windows of the given size and step."""
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")


def histogram_range(name: str, low: float, high: float) -> tuple[float, float]:
    """The limits of a histogram: finite, in order, widened if they are equal."""
    if low == high:
        low, high = low - 1.0, high + 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return low, high


def histogram_scale(low: float, high: float, bins: int, largest: float) -> float:
    """A power of two: with the range and the data multiplied by it, the number of bins times the range is finite."""
    return 1.0 if (high - low) * bins <= largest else 2.0 ** -(2 + bins.bit_length())


def check_sorter(shape, sorter_shape, given: dtype, order) -> None:
    """Raise unless `order`, a NumPy array of dtype `given`, contains positions that sort a sequence of `shape`."""
    if tuple(shape) != tuple(sorter_shape):
        raise RuntimeError(
            f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {list(shape)}"
            f"and got sorter tensor {list(sorter_shape)}"
        )
    if given is not int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {given.scalar_name}"
        )
    if order.size and (order.min() < 0 or order.max() >= shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def check_ndims(a, b, ranks: tuple[int, int]) -> None:
    """Raise unless two factors have these numbers of dimensions. For kernels that are called directly, without the op's
    shape rule.
    """
    if (a.ndim, b.ndim) != ranks:
        raise RuntimeError(f"expected operands of {ranks} dimensions, got {(a.ndim, b.ndim)}")


def check_matmul_dtypes(a, b, kernel: str = "addmm_impl_cpu_") -> None:
    """Raise unless two factors have the same dtype, and matrix products support it."""
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected two operands of one dtype, got {a.dtype} and {b.dtype}")
    if a.dtype.kind == "b" or is_complex32(a.dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(a.dtype).scalar_name}'")


def check_batched_matrices(a, b, kernel: str) -> None:
    """Raise unless two factors are batches of matrices with the same dtype and batch size."""
    check_ndims(a, b, (3, 3))
    check_matmul_dtypes(a, b, kernel)
    if a.shape[0] != b.shape[0]:
        raise RuntimeError(f"expected batches of one size, got {a.shape[0]} and {b.shape[0]}")


def split_at_ends(ends: list[int], size: int) -> list[tuple[int, int]]:
    """Return the start and length of each group along a dimension of `size`. Raise for ends that descend or exceed."""
    starts = [0, *ends[:-1]]
    if any(end < start for start, end in zip(starts, ends, strict=True)) or (ends and ends[-1] > size):
        raise RuntimeError(f"offsets must ascend from 0 to at most {size}, the size of the dimension, got {ends}")
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


_VIEW_ERRORS = {
    "multi_output": (
        " This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    ),
    "custom": (
        " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
        "logic to handle view+inplace would override the custom backward associated with the custom Function, leading "
        "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
        "Function."
    ),
}
_AMBIGUOUS_VIEW_ERROR = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)


def raise_view_write_error(kind: str, view, what: str) -> NoReturn:
    """The error for a write, with gradients, through a view of a kind that does not support it (`AutogradMeta.kind`).
    `what` names what was written to.
    """
    node = view._tl_node
    index = getattr(node, "index", 0)
    node = getattr(node, "node", node)
    origin = None
    if hasattr(node, "_edges"):
        origin = f"Output {index} of {node.name().rstrip('0123456789').removesuffix('Backward')} is a view"
    if kind == "inference":
        origin = f"{origin} of a view which was created in" if origin else "A view was created in"
        words = f"{origin} inference mode and {what} modified inplace in normal mode."
    elif kind == "no_grad" or origin is None:
        origin = f"{origin} of a view which was created in" if origin else "A view was created in"
        words = f"{origin} no_grad mode and {what} modified inplace with grad mode enabled."
    else:
        words = f"{origin} and {what} modified inplace."
    if kind in _VIEW_ERRORS:
        words += _VIEW_ERRORS[kind]
    else:
        words += _AMBIGUOUS_VIEW_ERROR.format("no_grad" if kind == "no_grad" else "inference_mode")
    raise RuntimeError(words)


def set_requires_grad(tensor, wants: bool = True):
    """Set requires_grad on a new tensor if `wants`."""
    if wants:
        if tensor.dtype.category < FLOAT:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        tensor.requires_grad_()
    return tensor


def is_tracked_by_autograd(tensor) -> bool:
    """True if the tensor has a grad_fn, requires a gradient, or has a forward-mode tangent."""
    return tensor._tl_node is not None or bool(MODE.forwards and CALLBACKS.visible_tangents(tensor))


def unwrap_batched(tensor):
    """The batched tensor behind a tensor inside `vmap`; other tensors unchanged. Checks of values look at all
    examples.
    """
    while tensor._tl_level is not None:
        tensor = tensor._value
    return tensor


def _read_without_interceptors(read, *values):
    """Call `read` on tensors with all interceptors disabled: an op's checks are not part of the traced program."""
    if not stack.items:
        return read(*values)
    with show_only_within([]):
        return read(*values)


def any_true(condition) -> bool:
    """True if any element of a bool tensor is true; inside `vmap`, for any example."""
    return _read_without_interceptors(lambda condition: bool(condition.any()), unwrap_batched(condition))


def all_true(condition) -> bool:
    """True if all elements of a bool tensor are true; inside `vmap`, for all examples."""
    return _read_without_interceptors(lambda condition: bool(condition.all()), unwrap_batched(condition))


def min_and_max(numbers) -> tuple[int, int]:
    """(smallest, largest) of a tensor of integers, inside `vmap` of all examples'."""
    return _read_without_interceptors(_reduce_min_and_max, unwrap_batched(numbers))


def _reduce_min_and_max(numbers) -> tuple[int, int]:
    if numbers.numel() == 1:
        return (int(numbers.item()),) * 2
    return int(numbers.min()), int(numbers.max())
