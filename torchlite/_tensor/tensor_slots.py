"""What every part of the class Tensor stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._types.dtypes import dtype
    from ._methods import TensorMethods  # a stub, made by tools/make_stubs.py
else:
    TensorMethods = object


class TensorSlots(TensorMethods):
    """A Tensor's slots, and for type checkers the methods that come from op records."""

    __slots__ = ()
    _tl_array: Any  # the raw array
    _tl_memory: Any  # the raw array whose memory it is: another one only where there are signs
    _tl_signs: int
    _tl_dispatches: bool
    _tl_is_plain: bool
    _tl_kernels: Any  # the kernels of its device
    dtype: dtype
    _tl_node: Any  # None: no gradient; LEAF; else where the history begins
    _tl_meta: Any  # None; of a fresh view the pair (base, stamp); else a Meta
