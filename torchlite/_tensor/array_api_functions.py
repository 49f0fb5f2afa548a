"""Functions of the Array API standard (2024.12) that PyTorch lacks, in `torchlite` and `torchlite.linalg`, and
`torchlite.__array_namespace_info__`. If PyTorch has the name with another meaning, PyTorch's stays;
`array_namespace` has the version for `x.__array_namespace__()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._dispatch import call
from .._dispatch.public_functions import torch
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.devices import get_default_device
from .._types.dtypes import get_default_dtype

if TYPE_CHECKING:
    Tensor = Any  # the class of the stubs, from the ops, differs from the runtime one

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
__array_api_version__ = VERSIONS[-1]

# -- dtypes ------------------------------------------------------------------------------------------

_KINDS = {
    "bool": lambda d: d.category == dtypes.BOOL,
    "signed integer": lambda d: d.category == dtypes.INT and d.is_signed,
    "unsigned integer": lambda d: d.category == dtypes.INT and not d.is_signed,
    "integral": lambda d: d.category == dtypes.INT,
    "real floating": lambda d: d.category == dtypes.FLOAT,
    "complex floating": lambda d: d.category == dtypes.COMPLEX,
    "numeric": lambda d: d.category > dtypes.BOOL,
}
_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The array with another dtype: a copy, unless `copy` is False and nothing changes.

    >>> import torchlite as torch
    >>> torch.astype(torch.tensor([1.5]), torch.int64)
    tensor([1])
    """
    return x.to(dtype=dtype, device=device, copy=copy)


def isdtype(dtype: Any, kind: Any) -> bool:
    """True if a dtype is of `kind`: a dtype; "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" or "numeric"; or a tuple of these. ValueError for other names.

    >>> import torchlite as torch
    >>> torch.isdtype(torch.float32, ("bool", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return dtype is kind
    if kind not in _KINDS:
        raise ValueError(f"isdtype: kind must be one of {', '.join(_KINDS)}, not {kind!r}")
    return _KINDS[kind](dtype)


class _Info:
    """Result of `__array_namespace_info__()`: capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and shapes that depend on data are there; the number of dimensions is limited by NumPy."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The default device of new tensors."""
        return get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes of new tensors."""
        real = get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes by their names, all or those of a kind (see `isdtype`)."""
        return {name: dtypes.BY_NAME[name] for name in _NAMES if kind is None or isdtype(dtypes.BY_NAME[name], kind)}

    def devices(self) -> list[Any]:
        """The devices that there are."""
        from .._device.accelerators import ACCELERATORS

        found = [device_type("cpu")]
        for name, accelerator in ACCELERATORS.items():
            found += [device_type(name, i) for i in range(accelerator.device_count())]
        return [*found, device_type("meta")]


def __array_namespace_info__() -> _Info:
    """Information about this namespace, as the Array API defines it."""
    return _Info()


# -- arrangement --------------------------------------------------------------------------------------


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays, each broadcast against the others."""
    return list(torch.broadcast_tensors(*arrays)) if arrays else []


def expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    """The array with a new dimension of length one at `axis`, or at each of several. IndexError for axes out of range,
    ValueError for repeated ones.
    """
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = x.ndim + len(axes)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {a})")
    wanted = sorted(a % ndim for a in axes)
    if len(set(wanted)) < len(wanted):
        raise ValueError("expand_dims: an axis comes twice")
    for a in wanted:
        x = torch.unsqueeze(x, a)
    return x


def permute_dims(x: Tensor, /, axes: Any) -> Tensor:
    """The array with its dimensions in another order."""
    return torch.permute(x, axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The array with its last two dimensions exchanged. RuntimeError for fewer than two."""
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element `repeats` times (a number, or one for each), along `axis` or of the flattened array.

    >>> import torchlite as torch
    >>> torch.repeat(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if isinstance(repeats, call.Tensor) and repeats.dtype not in (dtypes.int32, dtypes.int64):
        repeats = repeats.to(dtypes.int64)
    return torch.repeat_interleave(x, repeats, axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The array's parts along `axis`, without that axis."""
    return tuple(torch.unbind(x, axis))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements of `x` by indices along `axis`, the other dimensions broadcast. Negative indices count from the end."""
    n = x.shape[axis]
    return torch.take_along_dim(x, torch.where(indices < 0, indices + n, indices).to(dtypes.int64), axis)


# -- values -------------------------------------------------------------------------------------------


def bitwise_invert(x: Tensor, /) -> Tensor:
    """Each bit turned round; of bools `not`."""
    return torch.bitwise_not(x)


def accumulation_dtype(x: Tensor, dtype: Any) -> Any:
    """The dtype in which the standard sums: the given one; for small integers the default one of the same
    signedness.
    """
    if dtype is not None or x.dtype.category >= dtypes.FLOAT:
        return dtype
    unsigned = x.dtype.category == dtypes.INT and not x.dtype.is_signed
    return dtypes.uint64 if unsigned else dtypes.int64


def _cumulate(function: Any, start: int, x: Tensor, axis: Any, dtype: Any, include_initial: bool) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError("axis must be given for arrays of more than one dimension")
        axis = 0
    if x.ndim == 0:
        x = x.reshape(1)
        return _cumulate(function, start, x, 0, dtype, include_initial).reshape((-1,) if include_initial else ())
    kind = accumulation_dtype(x, dtype)
    result = function(x, axis, dtype=kind)
    if not include_initial:
        return result
    shape = list(result.shape)
    shape[axis] = 1
    return torch.cat([torch.full(shape, start, dtype=result.dtype, device=result.device), result], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The cumulative sum along `axis` (optional for one-dimensional arrays), with a leading 0 if `include_initial`."""
    return _cumulate(torch.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The running products along `axis`, with a 1 before them if `include_initial`."""
    return _cumulate(torch.cumprod, 1, x, axis, dtype, include_initial)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of `conj(x1) * x2` along `axis`, counted from the end of both; the other dimensions broadcast."""
    kind = dtypes.promote_types(x1.dtype, x2.dtype)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} has {x1.shape[axis]} elements in x1 and {x2.shape[axis]} in x2")
    x1, x2 = torch.broadcast_tensors(torch.movedim(x1, axis, -1), torch.movedim(x2, axis, -1))
    if kind.category >= dtypes.FLOAT:
        return torch.matmul(torch.conj(x1).to(kind).unsqueeze(-2), x2.to(kind).unsqueeze(-1))[..., 0, 0]
    return torch.sum(x1.to(kind) * x2.to(kind), -1, dtype=kind)


# -- sets ---------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct values, sorted; the index of each one's first occurrence in the flattened array; the inverse
    indices; and the counts. NaNs are distinct from each other.

    >>> import torchlite as torch
    >>> torch.unique_all(torch.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    count, flat = values.numel(), inverse.reshape(-1)
    places = torch.arange(flat.numel(), device=x.device)
    first = torch.full((count,), flat.numel(), dtype=dtypes.int64, device=x.device)
    return UniqueAll(values, first.scatter_reduce(0, flat, places, "amin"), inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct values, sorted, and their counts."""
    return UniqueCounts(*torch.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different values, sorted, and which of them each element is."""
    return UniqueInverse(*torch.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The different values, sorted."""
    return torch.unique(x)


# -- linear algebra: functions of `torchlite.linalg` ------------------------------------------------------


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of a vector with each of another. RuntimeError for other than vectors."""
    return torch.outer(x1, x2)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sums of products over the last `axes` dimensions of `x1` and the first of `x2`, or over two lists of them."""
    kind = dtypes.promote_types(x1.dtype, x2.dtype)
    return torch.tensordot(x1.to(kind), x2.to(kind), axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return torch.sum(torch.diagonal(x, offset, -2, -1), -1, dtype=accumulation_dtype(x, dtype))
