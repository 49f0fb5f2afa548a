"""Delayed all-reduce: gradients reduced in one message once another parameter's gradient is ready."""

from __future__ import annotations

from typing import Any

import torchlite as torch
import torchlite.distributed as dist

from .gradient_buckets import bucket_views
from .sync_module_states import broadcast_coalesced


class DelayedAllReduce:
    """Gradients in one flat tensor, reduced during backward."""

    def __init__(self, group: Any, parameters: list[Any], trigger: Any) -> None:
        self.group, self.parameters = group, parameters
        with torch.no_grad():
            broadcast_coalesced(group, parameters)
        first = parameters[0]
        self.buffer = torch.zeros(sum(p.numel() for p in parameters), dtype=first.dtype, device=first.device)
        self.views = bucket_views(self.buffer, parameters)
        self.clear()
        for parameter in parameters:
            # The engine accumulates a gradient when it is complete if a hook observes it, else at the end.
            parameter.register_post_accumulate_grad_hook(lambda _: None)
        trigger.register_hook(self._reduce_gradients)

    def clear(self) -> None:
        """Reset the gradients to zero."""
        with torch.no_grad():
            self.buffer.zero_()
        for parameter, view in zip(self.parameters, self.views, strict=True):
            parameter.grad = view

    def _reduce_gradients(self, grad: Any) -> Any:
        with torch.no_grad():
            self.buffer.div_(self.group.size())
            dist.all_reduce(self.buffer, group=self.group)
        return grad
