"""DistributedOptimizer: optimizers on the workers that have the parameters."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from torchlite._settings import fork_locks

from .. import autograd as dist_autograd
from .. import rpc

__all__ = ["DistributedOptimizer"]

# Optimizers of several callers may have the same parameters.
_lock = fork_locks.reinit_after_fork(threading.RLock())


class _LocalOptimizer:
    """The optimizer of one worker's parameters."""

    def __init__(self, optimizer_class: Any, params_rref: list[rpc.RRef], args: tuple, kwargs: dict) -> None:
        self._params = [rref.local_value() for rref in params_rref]
        self.optim = optimizer_class(self._params, *args, **kwargs)

    def step(self, context_id: int) -> None:
        """Take a step with the gradients of a context; `.grad` of the parameters stays as it was."""
        found = dist_autograd.get_gradients(context_id)
        with _lock:
            before = [param.grad for param in self._params]
            try:
                for param in self._params:
                    param.grad = found.get(param)
                self.optim.step()
            finally:
                for param, grad in zip(self._params, before, strict=True):
                    param.grad = grad


def _make_local_optimizer(optimizer_class: Any, params_rref: list[rpc.RRef], args: tuple, kwargs: dict) -> rpc.RRef:
    return rpc.RRef(_LocalOptimizer(optimizer_class, params_rref, args, kwargs))


def _step(optimizer: rpc.RRef, context_id: int) -> None:
    optimizer.local_value().step(context_id)


def _wait_for_all(futures: list[Any]) -> list[Any]:
    """Wait for all, then raise the last error or return the results."""
    results, failure = [], None
    for future in futures:
        try:
            results.append(future.wait())
        except Exception as error:  # raised when all are done
            failure = error
    if failure is not None:
        raise failure
    return results


class DistributedOptimizer:
    """Optimizer of parameters on several workers. Each makes an optimizer of its own parameters.

    Args:
        optimizer_class: The class of the optimizers.
        params_rref: References to the parameters.
        args: Further arguments of the class.
        kwargs: Its named arguments.

    Raises:
        RuntimeError: RPC is not initialized. The errors of the class are raised too.

    Example:
        >>> import torchlite.distributed.autograd as dist_autograd
        >>> import torchlite.distributed.rpc as rpc
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://localhost:0")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.distributed.optim.DistributedOptimizer(torch.optim.SGD, [rpc.RRef(weight)], lr=0.5)
        >>> with dist_autograd.context() as context_id:
        ...     dist_autograd.backward(context_id, [weight.sum()])
        ...     optimizer.step(context_id)
        >>> weight.detach()
        tensor([0.5000, 0.5000])
        >>> rpc.shutdown()
    """

    def __init__(self, optimizer_class: Any, params_rref: list[rpc.RRef], *args: Any, **kwargs: Any) -> None:
        by_owner: dict[Any, list[rpc.RRef]] = defaultdict(list)
        for param in params_rref:
            by_owner[param.owner()].append(param)
        made = [
            rpc.rpc_async(worker, _make_local_optimizer, (optimizer_class, params, args, kwargs))
            for worker, params in by_owner.items()
        ]
        self.remote_optimizers = _wait_for_all(made)

    def step(self, context_id: int) -> None:
        """Takes a step on all workers, with the gradients of a context, and waits for them.

        Args:
            context_id: The number of a `torch.distributed.autograd.context`.

        Raises:
            RuntimeError: There is no such context.
        """
        dist_autograd._is_valid_context(context_id)
        _wait_for_all([rpc.rpc_async(rref.owner(), _step, (rref, context_id)) for rref in self.remote_optimizers])
