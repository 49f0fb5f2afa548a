"""Communication hooks that average a bucket's gradients, optionally in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._grad_bucket import GradBucket

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip


def _default_group(process_group: Any) -> Any:
    return dist.group.WORLD if process_group is None else process_group


def _allreduce_fut(process_group: Any, tensor: Any) -> Any:
    """Return a future of the mean, in place."""
    group = _default_group(process_group)
    tensor.div_(group.size())  # before the sum, to avoid overflow in half precision
    work: Any = dist.all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, as `DistributedDataParallel` does without a hook.

    Args:
        process_group: The group; ``None`` for the default group.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.allreduce_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    return _allreduce_fut(process_group, bucket.buffer())


def _compress_hook(dtype: Any, process_group: Any, bucket: GradBucket) -> Any:
    group, buffer = _default_group(process_group), bucket.buffer()
    small = buffer.to(dtype).div_(group.size())
    work: Any = dist.all_reduce(small, group=group, async_op=True)
    return work.get_future().then(lambda done: buffer.copy_(done.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, and sends them in float16.

    Args:
        process_group: The group; ``None`` for the default group.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    return _compress_hook(torch.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, and sends them in bfloat16.

    Args:
        process_group: The group; ``None`` for the default group.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    return _compress_hook(torch.bfloat16, process_group, bucket)


def _wrap_compressing_hook(dtype: Any, hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    def compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(hook_state, bucket).then(lambda done: buffer.copy_(done.value()))

    return compress_wrapper_hook


def fp16_compress_wrapper(hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    """Wraps a hook so that it gets the gradients in float16; its result has the gradients' dtype again.

    Args:
        hook: The hook.

    Returns:
        The wrapped hook.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    return _wrap_compressing_hook(torch.float16, hook)


def bf16_compress_wrapper(hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    """Wraps a hook so that it gets the gradients in bfloat16; its result has the gradients' dtype again.

    Args:
        hook: The hook.

    Returns:
        The wrapped hook.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook))
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    return _wrap_compressing_hook(torch.bfloat16, hook)
