"""`torch.func`: composable function transforms, `vmap` and derivatives (`grad`, `vjp`, `jvp`, `jacrev`, `jacfwd` …).

>>> import torchlite as torch
>>> from torchlite.func import grad, vmap
>>> vmap(grad(lambda x: (x ** 3).sum()))(torch.tensor([1.0, 2.0]))
tensor([ 3., 12.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# Graph modules need a part of this package, and load no other.
_HOMES = {
    "_forward_mode": "hessian jacfwd jvp linearize",
    "_functional_call": "functional_call replace_all_batch_norm_modules_ stack_module_state",
    "_functionalize": "debug_unwrap functionalize",
    "_rearrange": "rearrange",
    "_reverse_mode": "grad grad_and_value jacrev vjp",
    "_vmap": "vmap",
}

if TYPE_CHECKING:
    from ._forward_mode import hessian, jacfwd, jvp, linearize
    from ._functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
    from ._functionalize import debug_unwrap, functionalize
    from ._rearrange import rearrange
    from ._reverse_mode import grad, grad_and_value, jacrev, vjp
    from ._vmap import vmap
else:
    _HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

    def __getattr__(name):
        if name not in _HOME_OF:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        import importlib

        found = globals()[name] = getattr(importlib.import_module(f".{_HOME_OF[name]}", __name__), name)
        return found


# What this module imports for itself.
_INTERNAL = {"TYPE_CHECKING", "_HOMES", "_HOME_OF", "_INTERNAL", "annotations"}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - _INTERNAL)


__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
