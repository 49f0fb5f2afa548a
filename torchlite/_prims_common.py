"""Queries on dtypes, shapes and strides, under the names of PyTorch's reference implementations."""

from __future__ import annotations

import enum
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite import dtype

from ._tensor import Tensor

__all__ = [
    "ELEMENTWISE_TYPE_PROMOTION_KIND", "REDUCTION_OUTPUT_TYPE_KIND", "TensorLike", "apply_perm", "canonicalize_dim",
    "canonicalize_dims", "check_same_dtype", "corresponding_complex_dtype", "corresponding_real_dtype",
    "dtype_to_type", "elementwise_dtypes", "get_computation_dtype", "get_higher_dtype", "invert_perm",
    "is_boolean_dtype", "is_channels_last_contiguous", "is_complex_dtype", "is_contiguous",
    "is_contiguous_for_memory_format", "is_contiguous_for_memory_format_or_false", "is_contiguous_or_false",
    "is_cpu_scalar_tensor", "is_expandable_to", "is_float_dtype", "is_grad_dtype", "is_integer_dtype",
    "is_low_precision_dtype", "is_same_shape", "is_valid_permutation", "make_channels_last_1d_strides_for",
    "make_channels_last_2d_strides_for",
    "make_channels_last_3d_strides_for", "make_channels_last_strides_for", "make_contiguous_strides_for", "prod",
    "reduction_dims", "suggest_memory_format", "type_to_dtype",
]  # fmt: skip

TensorLike = Tensor
_REAL_OF: dict[dtype, dtype] = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
_COMPLEX_OF: dict[dtype, dtype] = {real: kind for kind, real in _REAL_OF.items()} | {torch.bfloat16: torch.complex64}
_COMPUTED_IN: dict[dtype, dtype] = {
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.complex32: torch.complex64,
}
_TYPES: dict[type, dtype] = {bool: torch.bool, int: torch.int64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """How an op's dtypes follow from its arguments'."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(enum.Enum):
    """How a reduction's dtype follows from its argument's."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


# -- dtypes -------------------------------------------------------------------------------------


def is_boolean_dtype(dtype: dtype) -> bool:
    """Whether it is `torch.bool`."""
    return dtype is torch.bool


def is_integer_dtype(dtype: dtype) -> bool:
    """True if its values are integers."""
    return not (is_boolean_dtype(dtype) or dtype.is_floating_point or dtype.is_complex)


def is_float_dtype(dtype: dtype) -> bool:
    """Whether its values are real numbers with a fraction."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: dtype) -> bool:
    """Whether its values are complex."""
    return dtype.is_complex


def is_low_precision_dtype(dtype: dtype) -> bool:
    """Whether it is computed in a wider one."""
    return dtype in _COMPUTED_IN


def is_grad_dtype(dtype: dtype) -> bool:
    """Whether tensors of it may want gradients."""
    return dtype.is_floating_point or dtype.is_complex


def corresponding_real_dtype(dtype: dtype) -> dtype:
    """The dtype of a complex dtype's parts."""
    return _REAL_OF[dtype]


def corresponding_complex_dtype(dtype: dtype) -> dtype:
    """The complex dtype with parts of a dtype."""
    return _COMPLEX_OF[dtype]


def get_computation_dtype(dtype: dtype) -> dtype:
    """The dtype that an op computes in."""
    return _COMPUTED_IN.get(dtype, dtype)


def dtype_to_type(dtype: dtype) -> type:
    """Python's type of a dtype's values."""
    if dtype is torch.bool:
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> dtype:
    """The dtype of a Python type's values: the default one of floats, and what belongs to it of complex numbers.

    >>> from torchlite._prims_common import type_to_dtype
    >>> type_to_dtype(int), type_to_dtype(float)
    (torch.int64, torch.float32)
    """
    if typ in _TYPES:
        return _TYPES[typ]
    if typ is float:
        return torch.get_default_dtype()
    if typ is complex:
        return corresponding_complex_dtype(torch.get_default_dtype())
    raise ValueError(f"Invalid type {typ}!")


def get_higher_dtype(a: Any, b: Any) -> dtype | None:
    """The dtype that holds the values of two dtypes, tensors or numbers, of which either may be None."""
    kinds = [_dtype_of(x) for x in (a, b) if x is not None]
    if len(kinds) == 2 and kinds[0].is_complex == kinds[1].is_complex:
        return torch.promote_types(*kinds)
    return next((kind for kind in kinds if kind.is_complex), kinds[0] if kinds else None)


def _dtype_of(x: Any) -> dtype:
    if isinstance(x, dtype):
        return x
    found: dtype = x.dtype if isinstance(x, Tensor) else type_to_dtype(type(x))  # type: ignore[assignment]
    return found


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[dtype, dtype]:
    """The dtypes that an op on tensors and numbers computes in and gives.

    >>> import torchlite as torch
    >>> from torchlite._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
    >>> elementwise_dtypes(torch.ones(2).half(), 1, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    (torch.float32, torch.float16)
    """
    given = [x for x in _args if x is not None]
    for x in given:
        if not isinstance(x, (Tensor, bool, int, float, complex)):
            raise ValueError(
                f"Unexpected type {type(x)} when computing elementwise type promotion! (expected a tensor or a number)"
            )
    if not given:
        raise ValueError("elementwise_dtypes: there is no tensor and no number")
    result = _promote_dtype(given)
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND
    if type_promotion_kind is kind.NO_OPMATH:
        return result, result
    if type_promotion_kind is kind.INT_TO_FLOAT and not is_grad_dtype(result):
        result = torch.get_default_dtype()
    if type_promotion_kind is kind.BOOL_TO_LONG and result is torch.bool:
        return torch.int64, torch.int64
    computed = get_computation_dtype(result)
    if type_promotion_kind is kind.COMPLEX_TO_FLOAT and result.is_complex:
        return computed, corresponding_real_dtype(result)
    return computed, torch.bool if type_promotion_kind is kind.ALWAYS_BOOL else result


def _promote_dtype(given: list) -> dtype:
    """The dtype of a result: tensors with dimensions decide, then those without, then numbers, unless what comes later
    is of a higher kind.
    """
    order: list[list[dtype]] = [
        [x.dtype for x in given if isinstance(x, Tensor) and x.ndim],
        [x.dtype for x in given if isinstance(x, Tensor) and not x.ndim],
        [type_to_dtype(type(x)) for x in given if not isinstance(x, Tensor)],
    ]
    result: dtype | None = None
    for kinds in order:
        for found in kinds[:1]:
            for other in kinds[1:]:
                found = torch.promote_types(found, other)
            if result is None:
                result = found
            elif _category_rank(found) > _category_rank(result):
                both_real = found.is_complex and result.is_floating_point
                result = corresponding_complex_dtype(result) if both_real else found
    assert result is not None  # something was given
    return result


def _category_rank(kind: dtype) -> int:
    return [bool, int, float, complex].index(dtype_to_type(kind))


def check_same_dtype(*args: Any) -> None:
    """RuntimeError for tensors of several dtypes."""
    kinds = list(dict.fromkeys(x.dtype for x in args if isinstance(x, Tensor)))
    if len(kinds) > 1:
        raise RuntimeError(f"Tensor with dtype {kinds[1]} is not the expected dtype of {kinds[0]}!")


# -- shapes and strides ---------------------------------------------------------------------------


def prod(xs: Sequence[Any]) -> Any:
    """The product of numbers."""
    return math.prod(xs)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor; of one whose matrices are stored by columns with `row_major=False`.

    >>> from torchlite._prims_common import make_contiguous_strides_for
    >>> make_contiguous_strides_for((2, 3, 4)), make_contiguous_strides_for((2, 3, 4), row_major=False)
    ((12, 4, 1), (12, 1, 3))
    """
    sizes = [max(n, 1) for n in shape]
    strides = tuple(itertools.accumulate(reversed(sizes[1:]), operator.mul, initial=1))[::-1] if sizes else ()
    if row_major or len(sizes) < 2:
        return strides
    return (*strides[:-2], 1, max(shape[-2], 1))


def _with_channels_last(shape: Sequence[int], count: int, name: str) -> tuple[int, ...]:
    if len(shape) != count:
        raise RuntimeError(f"Only tensors of rank {count} can use the {name} memory format")
    strides = [1, *itertools.accumulate([shape[1], *reversed(shape[3:])], operator.mul)]
    first = strides[-1] * shape[2]
    return (first, *strides[:1], *reversed(strides[1:]))


def make_channels_last_2d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a batch of pictures with the channels last. RuntimeError for other numbers of dimensions."""
    return _with_channels_last(shape, 4, "channels_last")


def make_channels_last_3d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a batch of volumes with the channels last. RuntimeError for other numbers of dimensions."""
    return _with_channels_last(shape, 5, "channels_last_3d")


def make_channels_last_1d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a batch of sequences with the channels last. RuntimeError for other numbers of dimensions."""
    return _with_channels_last(shape, 3, "channels_last_1d")


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a batch of pictures or volumes with the channels last."""
    makes = {
        3: make_channels_last_1d_strides_for,
        4: make_channels_last_2d_strides_for,
        5: make_channels_last_3d_strides_for,
    }
    if len(shape) not in makes:
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    return makes[len(shape)](shape)


def is_contiguous(a: Tensor, false_if_dde: bool = False) -> bool:
    """`a.is_contiguous()`."""
    return a.is_contiguous()


def is_channels_last_contiguous(a: Tensor) -> bool:
    """Whether the channels are last in memory."""
    return a.is_contiguous(memory_format=torch.channels_last) or a.is_contiguous(memory_format=torch.channels_last_3d)


def is_contiguous_for_memory_format(a: Tensor, *, memory_format: Any, false_if_dde: bool = False) -> bool:
    """`a.is_contiguous(memory_format=...)`."""
    return a.is_contiguous(memory_format=memory_format)


def is_contiguous_or_false(a: Tensor) -> bool:
    """`a.is_contiguous()`: sizes are numbers here, so it is known."""
    return a.is_contiguous()


is_contiguous_for_memory_format_or_false = is_contiguous_for_memory_format


def suggest_memory_format(x: Tensor) -> Any:
    """The memory format that a tensor's strides are of."""
    for count, kind in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if x.ndim == count and not x.is_contiguous() and x.is_contiguous(memory_format=kind):
            return kind
    return torch.contiguous_format


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension from the front. IndexError where there is no such.

    >>> from torchlite._prims_common import canonicalize_dim
    >>> canonicalize_dim(3, -1)
    2
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if not rank:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Dimensions from the front: of one a number, of several a tuple."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, each, wrap_scalar) for each in indices)


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions of a reduction, all for None. RuntimeError for one that is there twice."""
    if dims is None:
        return tuple(range(len(shape)))
    found = canonicalize_dims(len(shape), dims)
    if len(set(found)) != len(found):
        raise RuntimeError("duplicate value in the list of dims")
    return found


def is_valid_permutation(rank: int, perm: Sequence[int]) -> bool:
    """Whether every dimension is there once."""
    return isinstance(perm, Sequence) and sorted(perm) == list(range(rank))


def apply_perm(inp: Sequence[Any], perm: Sequence[int]) -> list:
    """Values in the order that a permutation gives."""
    return [inp[place] for place in perm]


def invert_perm(perm: Sequence[int]) -> list[int]:
    """The permutation that undoes one."""
    return sorted(range(len(perm)), key=perm.__getitem__)


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether sizes are the same."""
    return tuple(a) == tuple(b)


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Whether a tensor of a shape broadcasts to another."""
    return len(shape) <= len(desired) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(desired), strict=False)
    )


def is_cpu_scalar_tensor(a: object) -> bool:
    """Whether it is a tensor without dimensions on the CPU."""
    return isinstance(a, Tensor) and not a.ndim and a.device.type == "cpu"
