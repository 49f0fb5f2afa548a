"""Composable DistributedDataParallel: gradient reduction without a wrapper module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchlite import nn
from torchlite.nn.parallel import DistributedDataParallel

from .contract import _get_registry, contract


class _ReplicateState:
    ddp: Any = None


class DDP:
    """Mixin that `replicate` adds to a module's class."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Set whether backward reduces the gradients."""
        replicate.state(self).ddp.require_backward_grad_sync = requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """`DistributedDataParallel.register_comm_hook`."""
        replicate.state(self).ddp.register_comm_hook(*args, **kwargs)


def _refuse_copy(self: Any, memo: Any) -> Any:
    raise AssertionError("DDP does not support deepcopy. Please use state dict for serialization.")


@contract(_ReplicateState)
def replicate(module: nn.Module, ignored_modules: Iterable[nn.Module] | None = None, **kwargs: Any) -> nn.Module:
    """Reduce a module's gradients as DistributedDataParallel does, with its options.

    The module stays the same object, with the same names, and becomes an instance of a subclass of its class.
    ignored_modules: modules whose parameters and buffers are not synchronised.

    >>> import torchlite as torch
    >>> from torchlite.distributed._composable import replicate
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> layer = replicate(torch.nn.Linear(1, 1))
    >>> layer(torch.ones(2, 1)).sum().backward()
    >>> list(layer.state_dict()), layer.weight.grad
    (['weight', 'bias'], tensor([[2.]]))
    >>> torch.distributed.destroy_process_group()
    """
    if "fully_shard" in (_get_registry(module) or {}) or hasattr(module, "_fsdp_state"):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by `fully_shard`")
    if "device_id" in kwargs and kwargs["device_id"] is not None:
        device = kwargs["device_id"]
        kwargs["device_ids"] = None if getattr(device, "type", None) == "cpu" else [device]
    kwargs.pop("device_id", None)
    state = replicate.state(module)
    mine = {id(p) for one in ignored_modules or () for inner in one.modules() for p in _own_tensors(inner)}
    names = [name for name, value in [*module.named_parameters(), *module.named_buffers()] if id(value) in mine]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
    state.ddp = DistributedDataParallel(module, **kwargs)

    module.register_forward_pre_hook(
        lambda module, args, kwargs: state.ddp._pre_forward(*args, **kwargs), with_kwargs=True
    )
    module.register_forward_hook(lambda module, args, output: state.ddp._post_forward(output))
    kind = type(module)
    module.__class__ = type(f"DDP{kind.__name__}", (DDP, kind), {"__deepcopy__": _refuse_copy})
    return module


def _own_tensors(module: nn.Module) -> list[Any]:
    return [*module.parameters(recurse=False), *module.buffers(recurse=False)]
