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
    """Return the mean of the gradients, sent as bytes with one scale per bucket."""
    buffer = bucket.buffer()
    return _completed_future(
        buffer, _compute_quantized_mean(_default_group(process_group), buffer.view(1, -1)).view(-1)
    )


def quantization_perchannel_hook(
    process_group: Any, bucket: GradBucket, bucket_size: int = 512
) -> torch.futures.Future[torch.Tensor]:
    """Return the mean of the gradients, sent as bytes with a scale for each `bucket_size` elements."""
    buffer = bucket.buffer()
    rows = torch.nn.functional.pad(buffer, (0, -len(buffer) % bucket_size)).view(-1, bucket_size)
    return _completed_future(
        buffer, _compute_quantized_mean(_default_group(process_group), rows).view(-1)[: len(buffer)]
    )
