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
) -> None:
    r"""Adds the gradients of tensors to the `.grad` of the leaves of their graph."""

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
) -> tuple[Tensor, ...]:
    """Computes the gradients of outputs with respect to inputs and returns them; `.grad` does not change."""

def gradcheck(
    func: Callable[..., Any],
    inputs: Tensors,
    *,
    eps: float = 1e-06,
    atol: float = 1e-05,
    rtol: float = 0.001,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    r"""Compares the derivatives of a function with central differences."""

def gradgradcheck(func: Callable[..., Any], inputs: Tensors, **options: Any) -> bool:
    """Compares the second derivatives of a function with central differences: `gradcheck` of its gradient."""

class FunctionCtx:
    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs and outputs of `forward` for `backward`, which finds them in `saved_tensors`."""
    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_tensors`."""
    def mark_dirty(self, *tensors: Tensor) -> None:
        """Tell that `forward` changed these inputs in place."""
    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Tell that these outputs have no gradient."""
    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` receives zeros (the default) or None for outputs without a gradient."""
    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of `forward`, whether its gradient is needed."""
    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that `save_for_backward` or `save_for_forward` kept."""
    def name(self) -> str:
        """The name of the node in the autograd graph."""
    # Programs keep what they like on it.
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class Function:
    """Base class of custom differentiable functions."""

    generate_vmap_rule: bool
    forward: Callable[..., Any]
    setup_context: Callable[..., Any]
    backward: Callable[..., Any]
    jvp: Callable[..., Any]
    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs `forward` and records the Function in the graph."""

class detect_anomaly:
    """Runs a block with anomaly detection: an error in backward shows the forward call that caused it."""
    def __init__(self, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

class set_detect_anomaly:
    """Turns anomaly detection on or off, at once; as a context manager, for a block."""
    def __init__(self, mode: bool, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
