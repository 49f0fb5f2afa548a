"""Communication hooks that send gradients as uint8, quantised per tensor or per 512 elements."""

from __future__ import annotations

from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._grad_bucket import GradBucket

from .default_hooks import _default_group

_LARGEST = 255


def _compute_quantized_mean(group: Any, rows: Any) -> Any:
    """Return the mean of a matrix over the group; each process sends its rows as bytes between their minimum and
    maximum.
    """
    least, largest = rows.amin(1, keepdim=True).clamp(max=0), rows.amax(1, keepdim=True).clamp(min=0)
    scale = ((largest - least) / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
    numbers = ((rows - least) / scale).round().clamp(0, _LARGEST).to(torch.uint8)
    about = torch.cat([scale, least], 1)
    size = group.size()
    abouts = [torch.empty_like(about) for _ in range(size)]
    dist.all_gather(abouts, about, group=group)
    parts = [torch.empty_like(numbers) for _ in range(size)]
    dist.all_gather(parts, numbers, group=group)
    total = torch.zeros_like(rows)
    for part, (scales, leasts) in zip(parts, (pair.split(1, 1) for pair in abouts), strict=True):
        total += part.to(rows.dtype) * scales + leasts
    return total / size


def _completed_future(buffer: Any, value: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(buffer.copy_(value))
    return future


def quantization_pertensor_hook(process_group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, and sends them as bytes with one scale for the bucket.

    Args:
        process_group: The group; ``None`` for the default group.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import quantization_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, quantization_hooks.quantization_pertensor_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    buffer = bucket.buffer()
    return _completed_future(
        buffer, _compute_quantized_mean(_default_group(process_group), buffer.view(1, -1)).view(-1)
    )


def quantization_perchannel_hook(
    process_group: Any, bucket: GradBucket, bucket_size: int = 512
) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, and sends them as bytes with a scale for each part.

    Args:
        process_group: The group; ``None`` for the default group.
        bucket: The gradients, a `GradBucket`.
        bucket_size: The number of elements of a part. Default: 512.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import quantization_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, quantization_hooks.quantization_perchannel_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    buffer = bucket.buffer()
    rows = torch.nn.functional.pad(buffer, (0, -len(buffer) % bucket_size)).view(-1, bucket_size)
    return _completed_future(
        buffer, _compute_quantized_mean(_default_group(process_group), rows).view(-1)[: len(buffer)]
    )
