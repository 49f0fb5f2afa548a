"""Loss parallelism: cross entropy over sharded classes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .._dispatch import DISPATCH_MODE

__all__ = ["loss_parallel"]


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Context manager: `cross_entropy` of a DTensor with sharded classes runs without gathering them; call backward
    inside too.

    Here it does so outside too. Targets and weights may be plain tensors, the same on all processes of the mesh.

    >>> import torchlite as torch
    >>> import torchlite.distributed as dist
    >>> from torchlite.distributed.tensor import Shard, distribute_tensor
    >>> from torchlite.distributed.tensor.parallel import loss_parallel
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> scores = distribute_tensor(torch.zeros(2, 4), mesh, [Shard(1)]).requires_grad_()
    >>> with loss_parallel():
    ...     loss = torch.nn.functional.cross_entropy(scores, torch.tensor([0, 1]))
    ...     loss.backward()
    >>> loss.item(), scores.grad.to_local()[0]
    (1.3862943649291992, tensor([-0.3750,  0.1250,  0.1250,  0.1250]))
    >>> dist.destroy_process_group()
    """
    before, DISPATCH_MODE.replicating_ops = DISPATCH_MODE.replicating_ops, frozenset({"cross_entropy", "nll_loss"})
    try:
        yield
    finally:
        DISPATCH_MODE.replicating_ops = before
