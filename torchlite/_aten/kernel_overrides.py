"""User kernels that replace PyTorch's own (`Library("aten", "IMPL").impl(...)`).

While any exist, a mode below all others sees every ATen op of the thread and calls these kernels. Inside a kernel, the
op runs its original implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import call
from .._dispatch.interceptors import InPlaceCall, enter, leave, list_entered, torch_dispatch_classes
from .._library.library_op import BACKENDS, LibraryOp, dispatch_key_of, find_tensors_in
from .._types.devices import get_default_device
from . import ops
from .record_to_overload import match_overload
from .torch_dispatch import DispatchMode

# Kernels by dispatch key, by overload name ("aten::add.Tensor").
KERNELS: dict[str, dict[str, Callable]] = {}
_KEYS = {
    *BACKENDS, *(f"Autograd{name}" for name in BACKENDS), "Autograd", "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd",
}  # fmt: skip


def find_overriding_kernels(name: str) -> dict[str, Callable]:
    """Return the kernel table of a PyTorch op by name, with the overload name unless it is "default". Raise
    RuntimeError for an unknown op.
    """
    op, _, which = name.removeprefix("aten::").partition(".")
    packet = getattr(ops.aten, op, None)
    if packet is None or (which or "default") not in packet.overloads():
        raise RuntimeError(
            f"Tried to register an operator implementation for aten::{op}{'.' * bool(which)}{which}, which torchlite "
            "does not have"
        )
    return KERNELS.setdefault(getattr(packet, which or "default").name(), {})


def check_key(key: str) -> None:
    """Raise NotImplementedError for dispatch keys without kernels of PyTorch's ops."""
    if key not in _KEYS:
        raise NotImplementedError(f"torchlite asks no kernel of PyTorch's own ops at the dispatch key {key}")


def _kernel(overload: Any, args: Any, kwargs: Any) -> Callable | None:
    kernels = KERNELS.get(overload.name())
    if not kernels:
        return None
    found = next((t.device.type for t in find_tensors_in([*args, *kwargs.values()])), None)
    key = dispatch_key_of(found or get_default_device().type)
    names = (
        f"Autograd{key}", "Autograd", key, "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional",
        "CompositeImplicitAutograd",
    )  # fmt: skip
    return next((kernels[name] for name in names if name in kernels), None)


class _OverrideInterceptor(DispatchMode):
    """Interceptor that calls the replacement kernels."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kernel = _kernel(func, args, kwargs) if not isinstance(func, LibraryOp) else None
        return (kernel or func)(*args, **kwargs)

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(op, LibraryOp):
            return function(*args, **kwargs)
        if function.__class__ is not InPlaceCall and function is op.function and not kwargs.get("out"):
            given = {name: value for name, value in kwargs.items() if name != "out"}
            values = call.bind(op, args, dict(given))
            found = None if torch_dispatch_classes(values) else match_overload(op, values)
            if found is not None and found[0].is_implicit:  # modes do not see it
                kernel = _kernel(*found)
                if kernel is not None:
                    return kernel(*found[1], **found[2])
        return super().intercept(op, function, args, kwargs)


_INTERCEPTOR = _OverrideInterceptor()


def set_overrides_active() -> None:
    """Activate the interceptor in this thread if there are kernels, else deactivate it."""
    wanted = any(KERNELS.values())
    there = _INTERCEPTOR in list_entered()
    if wanted and not there:
        enter(_INTERCEPTOR, 0)
    elif there and not wanted:
        leave(_INTERCEPTOR)
