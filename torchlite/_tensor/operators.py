"""Python's operators on tensors, each created at first use."""

from __future__ import annotations

import numpy as np

from .._dispatch import REGISTRY, call, function_for, in_place_calls
from .._dispatch.dispatch_state import GLOBALS
from .._dispatch.error_translation import filter_traceback
from .._dispatch.interceptors import call_function_mode, call_torch_function, stack
from .._dispatch.op_functions import binary_operator_for, in_place_fast_path
from .._types.dtypes import FLOAT
from .tensor_slots import TensorSlots


class OperatorMethods(TensorSlots):
    """The part of Tensor that Python's operators call; filled below."""

    __slots__ = ()


_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "floordiv": "floor_divide",
    "mod": "remainder", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
# The methods that PyTorch's operators are, for `__torch_function__`; others have the operator's name.
OPERATOR_METHODS = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div",
    "__mod__": "remainder", "__matmul__": "matmul", "__rand__": "bitwise_and", "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor", "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__ne__": "ne",
    "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
}  # fmt: skip


def mode_sees_operators() -> bool:
    """True if the innermost interceptor is a function mode, which tells an operator from the function."""
    return bool(stack.items) and stack.items[-1].sees_operators


def call_mode_of_operator(dunder: str, *operands):
    """Pass an operator to the function mode as the method that it is."""
    return call_function_mode(getattr(call.Tensor, OPERATOR_METHODS.get(dunder, dunder)), operands, {})


def call_override_of_operator(dunder: str, *operands):
    """Pass an operator to the other operand's `__torch_function__` as the method that it is."""
    return call_torch_function(getattr(call.Tensor, OPERATOR_METHODS.get(dunder, dunder)), operands, operands, None)


GLOBALS.update(
    mode_sees_operators=mode_sees_operators,
    call_mode_of_operator=call_mode_of_operator,
    call_override_of_operator=call_override_of_operator,
)


class _LazyOperator:
    """An operator that is created at its first use, and replaces this."""

    __slots__ = ("dunder", "build")

    def __init__(self, dunder: str, build):
        self.dunder, self.build = dunder, build

    def __get__(self, tensor, owner=None):
        made = self.build(self.dunder)
        if made.__name__ in ("operator", "operator_"):  # `neg` itself keeps its name
            made.__name__, made.__qualname__, made.__module__ = self.dunder, f"Tensor.{self.dunder}", "torchlite"
        setattr(call.Tensor, self.dunder, made)
        return made.__get__(tensor, owner)


def _make_lazy_operator(dunder: str, build):
    setattr(OperatorMethods, dunder, _LazyOperator(dunder, build))


# In-place operators that PyTorch passes to a function mode under their own names, and not as the method.
_OWN_IN_PLACE = ("__ipow__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")


def _make_in_place_operator(record, dunder):
    fast = in_place_fast_path(record)
    own_name = dunder in _OWN_IN_PLACE

    def operator_(self, other):
        try:
            if fast is not None:
                done = fast(self, other)
                if done is not None:
                    return done
            if own_name and GLOBALS["INTERCEPTORS"] and mode_sees_operators():
                return call_mode_of_operator(dunder, self, other)
            if other.__class__ not in (float, int, call.Tensor) and not isinstance(
                other, (call.Tensor, int, float, complex, np.ndarray, np.generic)
            ):
                return NotImplemented
            return in_place_calls.run_in_place(record, (self, other), {})
        except Exception:
            filter_traceback()
            raise

    return operator_


def _make_rdiv_operator(dunder: str):
    """`number / tensor`: the reciprocal times the number, as PyTorch computes it, digit for digit."""
    others = binary_operator_for(REGISTRY["div"], dunder, reflected=True)

    def operator(self, other):
        if GLOBALS["INTERCEPTORS"] and mode_sees_operators():
            return call_mode_of_operator(dunder, self, other)
        if other.__class__ in (float, int, complex):
            inverse = self.reciprocal()
            return inverse if other == 1 else inverse * other
        return others(self, other)

    return operator


for _name, _op in _OPERATORS.items():
    _make_lazy_operator(f"__{_name}__", lambda dunder, op=_op: binary_operator_for(REGISTRY[op], dunder))
    _make_lazy_operator(
        f"__r{_name}__", lambda dunder, op=_op: binary_operator_for(REGISTRY[op], dunder, reflected=True)
    )
    if _name != "matmul":
        _make_lazy_operator(f"__i{_name}__", lambda dunder, op=_op: _make_in_place_operator(REGISTRY[op], dunder))
_make_lazy_operator("__rtruediv__", _make_rdiv_operator)
for _name in _COMPARISONS:
    _make_lazy_operator(f"__{_name}__", lambda dunder, op=_name: binary_operator_for(REGISTRY[op], dunder))


def _make_invert_operator(dunder: str):
    """`~`: of integers and truth values."""
    inverted = function_for(REGISTRY["bitwise_not"])

    def operator(self):
        if GLOBALS["INTERCEPTORS"] and mode_sees_operators():
            return call_mode_of_operator(dunder, self)
        if self.dtype.category >= FLOAT:
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return inverted(self)

    return operator


_make_lazy_operator("__invert__", _make_invert_operator)
for _name in ("__neg__", "__abs__", "__pos__"):  # the methods themselves
    _make_lazy_operator(_name, lambda dunder: getattr(call.Tensor, OPERATOR_METHODS[dunder]))
