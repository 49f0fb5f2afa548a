"""Reverse-mode automatic differentiation: the names that programs use."""

from collections.abc import Callable, Sequence
from typing import Any

from .. import Tensor as Tensor
from .. import enable_grad as enable_grad
from .. import inference_mode as inference_mode
from .. import is_grad_enabled as is_grad_enabled
from .. import no_grad as no_grad
from .. import set_grad_enabled as set_grad_enabled
from .._stubs.aliases import Tensors
from . import anomaly_mode as anomaly_mode
from . import engine as engine
from . import forward_ad as forward_ad
from . import function as function
from . import functional as functional
from . import grad_mode as grad_mode
from . import graph as graph

Variable = Tensor

def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None: ...
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...
def gradcheck(
    func: Callable[..., Any],
    inputs: Tensors,
    *,
    eps: float = 1e-06,
    atol: float = 1e-05,
    rtol: float = 0.001,
    raise_exception: bool = True,
    **options: Any,
) -> bool: ...
def gradgradcheck(func: Callable[..., Any], inputs: Tensors, **options: Any) -> bool: ...

class FunctionCtx:
    def save_for_backward(self, *tensors: Tensor | None) -> None: ...
    def save_for_forward(self, *tensors: Tensor | None) -> None: ...
    def mark_dirty(self, *tensors: Tensor) -> None: ...
    def mark_non_differentiable(self, *tensors: Tensor) -> None: ...
    def set_materialize_grads(self, value: bool) -> None: ...
    @property
    def needs_input_grad(self) -> tuple[bool, ...]: ...
    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...
    def name(self) -> str: ...
    # Programs keep what they like on it.
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class Function:
    generate_vmap_rule: bool
    forward: Callable[..., Any]
    setup_context: Callable[..., Any]
    backward: Callable[..., Any]
    jvp: Callable[..., Any]
    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any: ...

class detect_anomaly:
    def __init__(self, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

class set_detect_anomaly:
    def __init__(self, mode: bool, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
