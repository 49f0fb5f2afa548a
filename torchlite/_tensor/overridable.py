"""`OverridableTensor`: the base class of Tensor subclasses that define `__torch_function__`.

Its methods and properties pass their calls to `__torch_function__`, as the methods of PyTorch's Tensor do. Tensor's own
have no test for it, so that they stay fast: `Tensor.__init_subclass__` puts this class between an overriding subclass
and Tensor.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from .._dispatch.dispatch_state import MODE
from .._dispatch.interceptors import call_torch_function
from .._dispatch.override_calls import bind_python_call, python_calls
from .operators import OPERATOR_METHODS, _LazyOperator
from .tensor import Tensor, _LazyMethod

# Operators and methods that PyTorch passes on as methods with other names.
_IN_PLACE = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "remainder", "floordiv": "floor_divide",
}  # fmt: skip
_NAMES = {
    **OPERATOR_METHODS, **{f"__i{dunder}__": name + "_" for dunder, name in _IN_PLACE.items()},
    "ndimension": "dim", "nelement": "numel",
}  # fmt: skip
# Methods of PyTorch in Python that pass on their arguments as they are: then `kwargs` is a dict, never None.
_PYTHON_OPERATORS = {
    f"__{name}__" for name in "rsub rtruediv pow ipow rpow floordiv rfloordiv rmod rmatmul rlshift rrshift".split()
}
# Reflected operators that Python calls first for `tensor op subclass`: PyTorch passes that on as `tensor op` itself.
_REFLECTED = {f"__r{name}__": f"__{name}__" for name in (*_IN_PLACE, *"matmul pow and or xor lshift rshift".split())}
# Names of object's and of the class itself, which PyTorch does not pass on.
_OWN = {
    "__new__", "__init__", "__init_subclass__", "__class__", "__dict__", "__weakref__", "__doc__", "__module__",
    "__slots__", "__hash__", "__torch_function__", "__torch_dispatch__", "__array_priority__", "__getattribute__",
    "__array_ufunc__", "__array_function__", "__array_namespace__", "__cuda_array_interface__", "__iter__",
    "__reduce__", "__copy__", "as_subclass", "to_numpy", "to_device",
}  # fmt: skip
_PRIVATE = {"_base", "_version", "_grad", "_is_view", "_indices", "_values", "_nnz"}


def _call(public: Any, args: tuple, kwargs: dict | None) -> Any:
    values = (*args, *kwargs.values()) if kwargs else args
    return call_torch_function(public, values, args, kwargs)


def _make_method(name: str) -> Any:
    shown = _NAMES.get(name, name)
    form = python_calls().get(f"Tensor.{shown}")
    in_python = name in _PYTHON_OPERATORS or form is not None and not form[1]

    def method(*args: Any, **kwargs: Any) -> Any:
        plain = getattr(Tensor, name)
        if MODE.plain:
            return plain(*args, **kwargs)
        public = getattr(Tensor, shown)
        if form is not None and form[1]:
            args, kwargs = bind_python_call(plain, form, args, kwargs)
            return _call(public, args, kwargs)
        return _call(public, args, kwargs if in_python else kwargs or None)

    return method


def _make_reflected(name: str) -> Any:
    forward, usual = _REFLECTED[name], _make_method(name)

    def method(self: Any, other: Any) -> Any:
        if MODE.plain or not isinstance(other, Tensor):
            return usual(self, other)
        public = getattr(Tensor, _NAMES.get(forward, forward))
        return _call(public, (other, self), {} if forward in _PYTHON_OPERATORS else None)

    return method


def _make_iter() -> Any:
    def iterate(self: Any) -> Any:
        """Iterates by `dim` and `unbind`, which PyTorch passes on, and not the iteration itself."""
        if MODE.plain:
            return Tensor.__iter__(self)
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    return iterate


def _make_property(name: str, there: Any) -> property:
    def read(self: Any) -> Any:
        return there.__get__(self, type(self)) if MODE.plain else _call(there.__get__, (self,), None)

    def write(self: Any, value: Any) -> None:
        if MODE.plain:
            there.__set__(self, value)
        else:
            _call(there.__set__, (self, value), None)

    def delete(self: Any) -> None:
        if MODE.plain:
            there.__delete__(self)
        else:
            _call(there.__delete__, (self,), None)

    writable = not isinstance(there, property) or there.fset is not None
    return property(read, write if writable else None, delete if writable else None, getattr(there, "__doc__", None))


def _members() -> dict[str, Any]:
    found: dict[str, Any] = {"__slots__": (), "__module__": "torchlite", "__iter__": _make_iter()}
    found["__hash__"] = Tensor.__hash__  # which a class with `__eq__` has to name
    for name, value in vars(Tensor).items():
        hidden = name[0] == "_" and name[:2] != "__" and name not in _PRIVATE
        if hidden or name in _OWN:
            continue
        if isinstance(value, property) or name == "dtype":
            found[name] = _make_property(name, value)
        elif isinstance(value, (FunctionType, _LazyMethod, _LazyOperator)):
            made = _make_reflected(name) if name in _REFLECTED else _make_method(name)
            made.__name__, made.__qualname__ = name, f"Tensor.{name}"
            made.__doc__ = getattr(value, "__doc__", None)
            found[name] = made
    return found


OverridableTensor: Any = type("OverridableTensor", (Tensor,), _members(), _tl_is_plain=None)


def make_overridable(cls: type) -> None:
    """Put `OverridableTensor` between a class that defines `__torch_function__` and Tensor."""
    if not issubclass(cls, OverridableTensor):
        bases = tuple(OverridableTensor if base is Tensor else base for base in cls.__bases__)
        cls.__bases__ = bases if OverridableTensor in bases else (*bases, OverridableTensor)
