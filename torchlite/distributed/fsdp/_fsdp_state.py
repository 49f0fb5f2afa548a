"""FSDP state machine: hooks of forward and backward that unshard and reshard parameters.

The module called first is the root. Parameters are unsharded during a module's forward, and again from the first
gradient of its outputs to the last of its inputs. A callback at the end of backward finishes the remaining work.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite._tensor.releasable_memory import trim_allocator
from torchlite.autograd.hook_runner import CURRENT_PASSES
from torchlite.utils import _pytree as pytree

from ._fsdp_param import FSDPParam
from ._fsdp_param_group import FSDPParamGroup, GradientReduction
from ._fully_shard_policies import MixedPrecisionPolicy


class TrainingState(Enum):
    IDLE = auto()
    FORWARD = auto()
    BACKWARD = auto()


class FSDPStateContext:
    """State shared by the modules of one root."""

    def __init__(self) -> None:
        self.states: list[FSDPState] = []
        self.forward_order: list[FSDPState] = []  # order of forward ends, reversed in backward
        self.reduction: GradientReduction | None = None  # of the group whose backward ended last
        self.ends = False  # a callback waits for the end of the backward pass
        self.is_last = True


class RegisterPostBackwardFunction(torch.autograd.Function):
    """Identity function whose backward marks the end of a module's backward."""

    @staticmethod
    def forward(ctx: Any, state: FSDPState, *tensors: torch.Tensor) -> Any:
        ctx.state = state
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.state.after_backward()
        return None, *grads


class FSDPState:
    """State of one module."""

    def __init__(
        self,
        modules: tuple[nn.Module, ...],
        group: FSDPParamGroup | None,
        precision: MixedPrecisionPolicy,
        reshards: bool | None,
    ) -> None:
        self.modules, self.group, self.precision = modules, group, precision
        self.reshards_after_forward = reshards  # None: unless it is the root
        self.reshards_after_backward = self.unshards_in_backward = True
        self.passing: FSDPStateContext | None = None
        self.is_root = False
        self.now = TrainingState.IDLE
        self.forward_prefetch: list[FSDPState] = []
        self.backward_prefetch: list[FSDPState] | None = None  # None: the one that ended before in forward
        self.summoned = False  # unsharded by a request of the program
        self._running: set[int] = set()  # modules of several that share this state
        for module in modules:
            module.register_forward_pre_hook(self.before_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self.after_forward, prepend=False)
            module.register_state_dict_pre_hook(lambda *_: self._before_state_dict())
            module.register_load_state_dict_pre_hook(lambda *_: self._before_state_dict())

    # -- the root

    def begin(self) -> FSDPStateContext:
        """Begin a pass; the module called first without one becomes a root."""
        if self.passing is None:
            self.is_root = True
            passing = FSDPStateContext()
            for root in self.modules:
                for name, module in root.named_modules():
                    state = state_of(module)
                    if state is None or state in passing.states:
                        continue
                    if state.passing is not None and state.is_root and state is not self:
                        raise RuntimeError(
                            f"FSDP state has already been lazily initialized for {name}\nFSDP requires running forward "
                            "through the root module first"
                        )
                    state.passing = passing
                    passing.states.append(state)
                    if state.reshards_after_forward is None:
                        state.reshards_after_forward = state is not self
            for state in passing.states:
                for parameter in state.group.parameters if state.group is not None else ():
                    parameter.renew()
        assert self.passing is not None
        return self.passing

    # -- forward

    def before_forward(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        """Unshard; register the post-backward on tensors among the inputs that require gradients."""
        passing = self.begin()
        first = not self._running
        self._running.add(id(module))
        if self.now is TrainingState.BACKWARD:  # recomputation by a checkpoint: already unsharded
            return args, kwargs
        if first:
            self.now = TrainingState.FORWARD
            if self.is_root:
                passing.forward_order.clear()
            if self.group is not None:
                for parameter in self.group.parameters:
                    parameter.renew()
        if self.precision.cast_forward_inputs and self.precision.param_dtype is not None:
            args, kwargs = _cast_inputs((args, kwargs), self.precision.param_dtype)
        if self.group is not None:
            self.group.unshard()
            args, kwargs = self._hook_inputs(args, kwargs)
        for other in self.forward_prefetch:
            if other.group is not None:
                other.group.begin_unshard()
        return args, kwargs

    def _hook_inputs(self, args: Any, kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return args, kwargs
        values, spec = pytree.tree_flatten((args, kwargs))
        at = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor) and value.requires_grad]
        if not at:
            return args, kwargs
        for i, tensor in zip(at, RegisterPostBackwardFunction.apply(self, *(values[i] for i in at)), strict=True):
            values[i] = tensor
        return pytree.tree_unflatten(values, spec)

    def after_forward(self, module: nn.Module, args: Any, output: Any) -> Any:
        """Reshard; register the pre-backward on the outputs."""
        self._running.discard(id(module))
        if self.now is TrainingState.BACKWARD:
            return output
        assert self.passing is not None
        if not self._running:
            if self.group is not None and self.reshards_after_forward:
                self.group.reshard(keep_parts=self.group.few is not None)
            self.passing.forward_order.append(self)
            self.now = TrainingState.IDLE
        output = self._hook_outputs(output)
        if self.precision.output_dtype is not None:
            output = _cast_inputs(output, self.precision.output_dtype)
        return output

    def _hook_outputs(self, output: Any) -> Any:
        if torch.is_grad_enabled():
            for value in pytree.tree_leaves(output):
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    value.register_hook(self.before_backward)
        return output

    # -- backward

    def before_backward(self, grad: Any) -> Any:
        """Unshard at the first gradient of an output."""
        assert self.passing is not None
        passing = self.passing
        if not passing.ends:
            passing.ends = True
            CURRENT_PASSES.runs[0].callbacks += (lambda: _root_post_backward(passing),)
        if self.now is TrainingState.BACKWARD:
            return grad
        self.now = TrainingState.BACKWARD
        if self.group is not None and self.unshards_in_backward:
            self.group.unshard()
        for other in self._modules_to_prefetch():
            if other.group is not None and other.unshards_in_backward:
                other.group.begin_unshard()
        if passing.reduction is not None:
            passing.reduction.poll()
        return grad

    def _modules_to_prefetch(self) -> Iterator[FSDPState]:
        """Yield the modules to prefetch in backward: those the program set, or the one whose forward ended before."""
        assert self.passing is not None
        if self.backward_prefetch is not None:
            yield from self.backward_prefetch
            return
        order = self.passing.forward_order
        if self in order:
            before = len(order) - 1 - order[::-1].index(self) - 1
            if before >= 0 and order[before].now is not TrainingState.BACKWARD:
                yield order[before]

    def after_backward(self) -> None:
        """Reduce the gradients, and reshard."""
        assert self.passing is not None
        self.now = TrainingState.IDLE
        if self.group is None:
            return
        begun = self.group.begin_reduce()
        if self.reshards_after_backward:
            self.group.reshard()
        if begun is not None:
            before, self.passing.reduction = self.passing.reduction, begun
            if before is not None:
                before.finish()

    def forget(self) -> None:
        """Drop the state of an aborted iteration: no gradient of it arrives."""
        if self.passing is not None:
            if self.passing.reduction is not None:
                self.passing.reduction.finish()
            self.passing.reduction, self.passing.ends = None, False
            self.passing.forward_order.clear()
        self.now = TrainingState.IDLE
        self._running.clear()
        self.reshard()

    def _before_state_dict(self) -> None:
        """Reshard, except while the program asks for full parameters: it saves and loads these."""
        if not self.summoned:
            self.reshard()

    def reshard(self) -> None:
        """Reshard the parameters."""
        if self.group is not None:
            self.group.reshard()


def _root_post_backward(passing: FSDPStateContext) -> None:
    """Finish a backward pass: reduce the remaining gradients, and set all of them."""
    for state in passing.states:
        group = state.group
        if group is not None and (state.now is TrainingState.BACKWARD or group.has_gradients or group.works):
            state.after_backward()
        state.now = TrainingState.IDLE
    if passing.reduction is not None:
        passing.reduction.finish()
        passing.reduction = None
    passing.ends = False
    if passing.is_last:
        passing.forward_order.clear()
    trim_allocator()


def _cast_inputs(value: Any, dtype: torch.dtype) -> Any:
    change = lambda x: x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x
    return pytree.tree_map(change, value)


def state_of(module: nn.Module) -> FSDPState | None:
    """Return the state that `fully_shard` set on a module, None for others."""
    return module.__dict__.get("_fsdp_state")


def plain_shards(model: nn.Module) -> dict[int, FSDPParam]:
    """Return the sharded parameters of a model that are no DTensors, by their identity."""
    groups = [state.group for module in model.modules() if (state := state_of(module)) is not None]
    parameters = [parameter for group in groups if group is not None for parameter in group.parameters]
    return {id(parameter.sharded): parameter for parameter in parameters if parameter.plain}
