"""`__torch_function__`: how Tensor subclasses and modes see every op."""

from __future__ import annotations

from typing import Any

from ._dispatch.interceptors import Interceptor, torch_function_disabled
from ._dispatch.runtime import MODE
from ._tensor import Parameter, Tensor

disabled = torch_function_disabled


class TorchFunctionMode(Interceptor):
    """While entered, every op goes to `__torch_function__(func, types, args, kwargs)` of this object."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        return self.__torch_function__(function, (), args, kwargs)


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a Tensor or has `__torch_function__`."""
    return hasattr(type(value), "__torch_function__")


def has_torch_function(values: Any) -> bool:
    """Whether any of the values overrides `__torch_function__`."""
    return not MODE.plain and any(
        type(v) not in (Tensor, Parameter)
        and hasattr(type(v), "__torch_function__")
        and not getattr(type(v), "_is_plain", False)
        for v in values
    )


def handle_torch_function(function: Any, relevant: Any, *args: Any, **kwargs: Any) -> Any:
    """Ask the first of `relevant` that overrides `__torch_function__`."""
    for value in relevant:
        if has_torch_function((value,)):
            return type(value).__torch_function__(function, (type(value),), args, kwargs)
    raise TypeError(f"no implementation found for {function}")


_PLACES = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")


def resolve_name(f: Any) -> str | None:
    """The name under which a function or method of torch is public, such as "torch.sum"; None for others."""
    import torchlite as torch

    name = getattr(f, "__name__", None)
    for place in _PLACES if isinstance(name, str) else ():
        owner: Any = torch
        for part in place.split(".")[1:]:
            owner = getattr(owner, part)
        if getattr(owner, name, None) is f:  # type: ignore[arg-type]
            return f"{place}.{name}"
    return None
