"""All-reduce of sparse gradients: every process gathers the entries of all."""

from __future__ import annotations

from typing import Any

import torchlite as torch
import torchlite.distributed as dist


class _CompletedWork:
    def __init__(self, value: Any) -> None:
        self.value = value

    def wait(self) -> Any:
        """Return the sum."""
        return self.value


def reduce_sparse(group: Any, bucket: Any, divisor: float) -> _CompletedWork:
    """Return the mean of a bucket's sparse gradient over a group, coalesced. A process without one contributes no
    entries.
    """
    parameter, gradient = bucket.parameters[0], bucket.sparse_gradient
    if gradient is None:
        empty = torch.zeros(1, 0, dtype=torch.int64, device=parameter.device)
        gradient = torch.sparse_coo_tensor(empty, parameter.new_zeros(0, *parameter.shape[1:]), parameter.shape)
    gradient = gradient.detach().coalesce()
    indices, values = gradient.indices(), gradient.values() / divisor
    size = group.size()
    counts = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(counts, torch.tensor([values.shape[0]]), group=group)
    numbers = [int(count.item()) for count in counts]
    most = max(*numbers, 1)
    parts = []
    for tensor in (indices.t().contiguous(), values):  # an entry a row
        padded = tensor.new_zeros(most, *tensor.shape[1:])
        padded[: tensor.shape[0]] = tensor
        gathered = [torch.empty_like(padded) for _ in range(size)]
        dist.all_gather(gathered, padded, group=group)
        parts.append(torch.cat([part[:number] for part, number in zip(gathered, numbers, strict=True)]))
    return _CompletedWork(torch.sparse_coo_tensor(parts[0].t(), parts[1], gradient.shape).coalesce())
