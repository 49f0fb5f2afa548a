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
    """Accumulate the gradients of the tensors in the `.grad` of the graph's leaves.

    grad_tensors: for each tensor that is not a scalar, the vector of the vector-Jacobian product (same shape). With
    `create_graph` the gradients have a history themselves; `retain_graph` (default: create_graph) keeps what the
    graph saved. With `inputs` only these leaves (or non-leaves) get a gradient. RuntimeError when a tensor has no
    history, or when the graph was freed by an earlier backward.
    """

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
    """The gradients of the outputs in respect of the inputs, as a tuple."""

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
    """Check the gradients of `func(*inputs)` against central differences."""

def gradgradcheck(func: Callable[..., Any], inputs: Tensors, **options: Any) -> bool:
    """Check second derivatives: gradcheck of the gradient function.

    grad_outputs: random when not given, with gaps in memory if `gen_non_contig_grad_outputs`. `check_rev_over_rev`
    tests reverse mode of the gradient function, `check_fwd_over_rev` forward mode. The other arguments are those of
    `gradcheck`.
    """

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
    """A custom differentiable function: static methods `forward(ctx, *args)` and `backward(ctx, *grads)`; call it with
    `apply`.
    """

    generate_vmap_rule: bool
    forward: Callable[..., Any]
    setup_context: Callable[..., Any]
    backward: Callable[..., Any]
    jvp: Callable[..., Any]
    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record the Function."""

class detect_anomaly:
    """Context manager in which each recorded op stores its traceback; an error or a NaN in its backward shows it. Slow:
    for debugging.
    """
    def __init__(self, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

class set_detect_anomaly:
    """Turn anomaly detection on or off; as a context manager, for the block."""
    def __init__(self, mode: bool, check_nan: bool = True) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
