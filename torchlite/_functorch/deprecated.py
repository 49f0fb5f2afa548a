"""Functions of `torch.func` by functorch's names, which warn when they are called."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import func
from . import make_functional as _models


def _with_warning(function: Callable[..., Any], replacement: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"functorch.{function.__name__} is deprecated: use {replacement}, which is a part of PyTorch since 2.0.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return call


vmap, grad, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian, functionalize = (
    _with_warning(getattr(func, name), f"torch.func.{name}")
    for name in "vmap grad grad_and_value vjp jvp jacrev jacfwd hessian functionalize".split()
)
make_functional, make_functional_with_buffers = (
    _with_warning(getattr(_models, name), "torch.func.functional_call")
    for name in ("make_functional", "make_functional_with_buffers")
)
combine_state_for_ensemble = _with_warning(_models.combine_state_for_ensemble, "torch.func.stack_module_state")
