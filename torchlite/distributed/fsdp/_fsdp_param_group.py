"""`FSDPParamGroup`: parameters with a common all-gather and reduce-scatter.

They are those of a module that no nested FSDP module has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn

from ._fsdp_param import FSDPParam
from ._fully_shard_policies import MixedPrecisionPolicy
from ._mesh_info import MeshInfo


class FSDPParamGroup:
    """A group's parameters, and their state: sharded, in flight, or unsharded."""

    def __init__(
        self, parameters: list[FSDPParam], modules: tuple[nn.Module, ...], lanes: MeshInfo,
        precision: MixedPrecisionPolicy,
    ) -> None:  # fmt: skip
        self.parameters, self.modules, self.lanes, self.precision = parameters, modules, lanes, precision
        self.few: Any = None  # subset of ranks with larger shards between forward and backward
        self.has_parts = False
        self.whole = False
        self.works: list[Any] = []  # of all-gathers in flight
        self.reduces = self.reduces_copies = True
        self.divisor: float | None = None
        self.hook: Callable[[torch.Tensor], None] | None = None
        self.comm_hook: Callable[..., Any] | None = None  # replaces the mean over the ranks
        self._unreduced: list[tuple[FSDPParam, torch.Tensor]] = []  # not yet summed over the copies

    # -- parameters

    def begin_unshard(self) -> None:
        """Start the all-gather unless started."""
        if self.whole or self.works:
            return
        few = self.few if self.has_parts else None
        with torch.no_grad():
            self.works = [parameter.gather(few) for parameter in self.parameters]

    def unshard(self) -> None:
        """Unshard all parameters."""
        self.begin_unshard()
        if self.whole:
            return
        for work in self.works:
            work.wait()
        self.works = []
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.finish_gather()
        self.whole, self.has_parts = True, False

    def reshard(self, keep_parts: bool = False) -> None:
        """Reshard; with `keep_parts` a subset of ranks keeps larger shards."""
        if self.works:
            self.unshard()
        if not self.whole:
            return
        with torch.no_grad():
            for parameter in self.parameters:
                if keep_parts:
                    parameter.keep_part(self.few)
                parameter.to_sharded()
        self.whole, self.has_parts = False, keep_parts

    # -- gradients

    @property
    def has_gradients(self) -> bool:
        """True if unsharded gradients are to be reduced."""
        return any(parameter.has_gradient for parameter in self.parameters)

    def begin_reduce(self) -> GradientReduction | None:
        """Start the reduction of the gradients, in the parameters' order; None if there are none."""
        if not self.reduces:
            return None
        begun = []
        with torch.no_grad():
            for parameter in self.parameters:
                grad = parameter.take_gradient()
                if grad is not None:
                    out, work = parameter.reduce(grad, self.precision.reduce_dtype or grad.dtype, self.comm_hook)
                    begun.append((parameter, out, work))
        return GradientReduction(self, begun) if begun else None

    def summed(self, parameter: FSDPParam, part: torch.Tensor) -> torch.Tensor:
        """Return a shard plus those of earlier backward passes without an all-reduce over the replicas."""
        for number, (other, kept) in enumerate(self._unreduced):
            if other is parameter:
                del self._unreduced[number]
                return part.add_(kept)
        return part

    def keep(self, parameter: FSDPParam, part: torch.Tensor) -> None:
        """Store a shard for a later all-reduce over the replicas."""
        self._unreduced.append((parameter, part))


class GradientReduction:
    """Gradients of a group in flight."""

    def __init__(self, group: FSDPParamGroup, begun: list[tuple[FSDPParam, torch.Tensor, Any]]) -> None:
        self.group, self.begun = group, begun

    def poll(self) -> None:
        """Poll the messages."""
        for _, _, work in self.begun:
            if work is not None:
                work.is_completed()

    def finish(self) -> None:
        """Finish: set the shards' gradients."""
        group, lanes = self.group, self.group.lanes
        for _, _, work in self.begun:
            if work is not None:
                work.wait()
        parts = [(parameter, group.summed(parameter, part)) for parameter, part, _ in self.begun]
        self.begun = []
        if lanes.copies is not None and group.comm_hook is None:
            if not group.reduces_copies:
                for parameter, part in parts:
                    group.keep(parameter, part)
                return
            works: list[Any] = [dist.all_reduce(part, group=lanes.copies, async_op=True) for _, part in parts]
            for work in works:
                work.wait()
        divisor = lanes.total if group.divisor is None else group.divisor
        divisor = divisor if group.comm_hook is None else 1
        with torch.no_grad():
            for parameter, part in parts:
                if divisor != 1:
                    part.div_(divisor)
                if group.hook is not None:
                    group.hook(part)
                parameter.add_gradient(part)
