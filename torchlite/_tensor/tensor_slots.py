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
    _data: Any  # the raw array
    _memory: Any  # the raw array whose memory it is: another one only where there are signs
    _signs: int
    _dispatches: bool
    _is_plain: bool
    _table: Any  # the kernels of its device
    dtype: dtype
    _node: Any  # None: no gradient; LEAF; else where the history begins
    _meta: Any  # None; of a fresh view the pair (base, stamp); else a Meta
