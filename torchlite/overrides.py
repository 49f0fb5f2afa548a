"""`__torch_function__`: how Tensor subclasses and modes see every op."""

from __future__ import annotations

from ._dispatch.interceptors import Interceptor
from ._dispatch.runtime import MODE
from ._tensor import Parameter, Tensor


class TorchFunctionMode(Interceptor):
    """While entered, every op goes to `__torch_function__(func, types, args, kwargs)` of this object."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def intercept(self, op, function, args, kwargs):
        return self.__torch_function__(function, (), args, kwargs)


def is_tensor_like(value) -> bool:
    """Whether a value is a Tensor or has `__torch_function__`."""
    return hasattr(type(value), "__torch_function__")


def has_torch_function(values) -> bool:
    """Whether any of the values overrides `__torch_function__`."""
    return not MODE.plain and any(
        type(v) not in (Tensor, Parameter)
        and hasattr(type(v), "__torch_function__")
        and not getattr(type(v), "_is_plain", False)
        for v in values
    )


def handle_torch_function(function, relevant, *args, **kwargs):
    """Ask the first of `relevant` that overrides `__torch_function__`."""
    for value in relevant:
        if has_torch_function((value,)):
            return type(value).__torch_function__(function, (type(value),), args, kwargs)
    raise TypeError(f"no implementation found for {function}")
