"""Distributed autograd: backward passes through calls of `torch.distributed.rpc`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

from .rpc import _autograd_context as _records
from .rpc._autograd_context import DistAutogradContext as DistAutogradContext

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """Returns ``True``: distributed autograd is supported.

    Example:
        >>> torch.distributed.autograd.is_available()
        True
    """
    return True


def _new_context() -> DistAutogradContext:
    return _records.make_context()


def _release_context(context_id: int) -> None:
    from ._distributed_backward import release

    released = _records.forget_context(context_id)
    if released is not None:
        release(context_id, released.known)


def _retrieve_context(context_id: int) -> DistAutogradContext:
    return _records.find_context(context_id)


def _is_valid_context(context_id: int) -> bool:
    _records.find_context(context_id)
    return True


def _current_context() -> DistAutogradContext:
    found = _records.current_context()
    if found is None:
        raise RuntimeError(
            "Current thread doesn't have a valid autograd context. Please wrap your code using: `with "
            "torch.distributed.autograd.context() as context_id` to generate a valid context"
        )
    return found


class context:
    """Records the calls of a block for a distributed backward pass; the value of the block is the context's number.

    Gradients of a pass are kept in the context on each worker, and not in ``.grad``. The end of the block forgets them
    on all workers.

    Raises:
        RuntimeError: RPC is not initialized, or this thread has a context.

    Example:
        >>> import torchlite.distributed.autograd as dist_autograd
        >>> import torchlite.distributed.rpc as rpc
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://localhost:0")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> x = torch.ones(2, requires_grad=True)
        >>> with dist_autograd.context() as context_id:
        ...     loss = rpc.rpc_sync("alone", torch.mul, (x, 3)).sum()
        ...     dist_autograd.backward(context_id, [loss])
        ...     dist_autograd.get_gradients(context_id)[x]
        tensor([3., 3.])
        >>> rpc.shutdown()
    """

    def __enter__(self) -> int:
        self.autograd_context = _new_context()
        return self.autograd_context._context_id()

    def __exit__(self, *error: object) -> None:
        _release_context(self.autograd_context._context_id())


def backward(context_id: int, roots: Sequence[torch.Tensor], retain_graph: bool = False) -> None:
    """Runs a backward pass from tensors of this worker through the graphs of all workers.

    Args:
        context_id: The number of a context.
        roots: The tensors, with one element each.
        retain_graph: Whether another pass may follow. Default: ``False``.

    Raises:
        RuntimeError: There is no such context, a root has more elements or no graph, or the pass failed on a worker.

    Example:
        >>> torch.distributed.autograd.backward(0, [torch.ones(1, requires_grad=True) * 2])
        Traceback (most recent call last):
        RuntimeError: Could not find autograd context with id: 0
    """
    found = _records.find_context(context_id)
    if isinstance(roots, torch.Tensor) or not all(isinstance(root, torch.Tensor) for root in roots):
        raise TypeError(f"backward(): roots must be a list of tensors, not {type(roots)}")
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(f"a root of shape {tuple(root.shape)} is not a scalar, all roots need to be scalar")
        if root.grad_fn is None:
            raise RuntimeError("a root does not have a valid gradient function.")
    from ._distributed_backward import run_backward

    run_backward(found, roots, bool(retain_graph))


def get_gradients(context_id: int) -> dict[Any, torch.Tensor]:
    """Returns this worker's leaves and their gradients.

    Args:
        context_id: The number of a context.

    Raises:
        RuntimeError: There is no such context.

    Example:
        >>> torch.distributed.autograd.get_gradients(0)
        Traceback (most recent call last):
        RuntimeError: Could not find autograd context with id: 0
    """
    return dict(_records.find_context(context_id).gradients)


__dir__ = make_module_dir(globals())
