"""Hooks that reduce a bucket's gradients as they are, or in half of the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._grad_bucket import GradBucket

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip


def _group(process_group: Any) -> Any:
    return dist.group.WORLD if process_group is None else process_group


def _allreduce_fut(process_group: Any, tensor: Any) -> Any:
    """A future of the mean, in place."""
    group = _group(process_group)
    tensor.div_(group.size())  # before the sum, which so does not overflow in half precision
    work: Any = dist.all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean of the gradients: what DistributedDataParallel does without a hook."""
    return _allreduce_fut(process_group, bucket.buffer())


def _compress_hook(dtype: Any, process_group: Any, bucket: GradBucket) -> Any:
    group, buffer = _group(process_group), bucket.buffer()
    small = buffer.to(dtype).div_(group.size())
    work: Any = dist.all_reduce(small, group=group, async_op=True)
    return work.get_future().then(lambda done: buffer.copy_(done.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean of the gradients, sent in float16."""
    return _compress_hook(torch.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The mean of the gradients, sent in bfloat16."""
    return _compress_hook(torch.bfloat16, process_group, bucket)


def _wrapper(dtype: Any, hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    def compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(hook_state, bucket).then(lambda done: buffer.copy_(done.value()))

    return compress_wrapper_hook


def fp16_compress_wrapper(hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    """A hook that gets its bucket in float16 and whose answer becomes the gradients' dtype again."""
    return _wrapper(torch.float16, hook)


def bf16_compress_wrapper(hook: Callable[[Any, GradBucket], Any]) -> Callable[[Any, GradBucket], Any]:
    """A hook that gets its bucket in bfloat16 and whose answer becomes the gradients' dtype again."""
    return _wrapper(torch.bfloat16, hook)
