"""`Variable`, the older name of Tensor."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .engine import CURRENT_PASSES, run_backward


class ImperativeEngine:
    """The engine of backward passes, as an object."""

    def queue_callback(self, callback) -> None:
        """Run `callback()` at the end of the current backward pass. RuntimeError outside of one."""
        if not CURRENT_PASSES.runs:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        CURRENT_PASSES.runs[-1].callbacks += (callback,)

    def run_backward(
        self, tensors, grad_tensors, keep_graph, create_graph, inputs=(), allow_unreachable=False, accumulate_grad=False
    ):
        """Implements `backward` and `grad`. `allow_unreachable` has no effect: inputs that the graph does not reach get
        None.
        """
        return run_backward(
            tensors, grad_tensors, keep_graph, create_graph, inputs=inputs or None, accumulate=accumulate_grad
        )

    def is_checkpoint_valid(self) -> bool:
        """True if the current pass computes gradients of all leaves."""
        return not CURRENT_PASSES.runs or CURRENT_PASSES.runs[-1].targets is None


class _VariableMeta(type):
    def __instancecheck__(cls, other) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=_VariableMeta):
    """Older name of `torch.Tensor`: every tensor is an instance, and ``Variable(data)`` returns a tensor.

    Args:
        data: The tensor whose memory the result shares. Default: an empty tensor.
        requires_grad: Whether the result requires grad. Default: ``False``.
        volatile: Removed; a true value warns.

    Raises:
        TypeError: ``data`` is not a tensor.

    Example:
        >>> x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
        >>> type(x).__name__, x.requires_grad
        ('Tensor', True)
    """

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        if volatile:
            import warnings

            warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
        if data is None:
            from .._dispatch.public_functions import torch

            data = torch.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
