"""Wrapper modules for activation checkpointing and CPU offloading of activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.autograd.graph import save_on_cpu
from torchlite.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Variants of checkpointing: see `torch.utils.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module):
    """Wrapper module whose parameters keep the names of the wrapped one."""

    def __init__(self, mod: nn.Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        inner: Any = self._checkpoint_wrapped_module
        return inner[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield parameters by their names without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module: nn.Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
        _rename_prefix(state_dict, f"{prefix}{_CHECKPOINT_PREFIX}", prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: nn.Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _rename_prefix(state_dict, prefix, f"{prefix}{_CHECKPOINT_PREFIX}")


def _rename_prefix(state_dict: dict[str, Any], before: str, after: str) -> None:
    """Replace a prefix of the names."""
    for name in [name for name in state_dict if name.startswith(before)]:
        state_dict[after + name.removeprefix(before)] = state_dict.pop(name)


class OffloadWrapper(ActivationWrapper):
    """Wrapper that offloads saved activations to the CPU until backward."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=torch.cuda.is_available()):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Wrapper that recomputes activations in backward."""

    def __init__(
        self,
        mod: nn.Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn = partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs)
        else:
            checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)
        self.checkpoint_fn: Any = checkpoint_fn

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        inner = self._checkpoint_wrapped_module
        if self.checkpoint_impl is CheckpointImpl.REENTRANT and kwargs:  # it takes tensors by position only
            names, count = list(kwargs), len(args)

            def run(*given: Any) -> Any:
                return inner(*given[:count], **dict(zip(names, given[count:], strict=True)))

            return self.checkpoint_fn(run, *args, *kwargs.values())
        return self.checkpoint_fn(inner, *args, **kwargs)


def offload_wrapper(module: nn.Module) -> nn.Module:
    """Wrap a module to offload saved activations to the CPU until backward."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: nn.Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs: Any,
) -> nn.Module:
    """Wrap a module to recompute activations in backward; further arguments are those of `torch.utils.checkpoint`.

    >>> import torchlite as torch
    >>> from torchlite.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    >>> net = checkpoint_wrapper(torch.nn.Linear(2, 1))
    >>> list(net.state_dict())
    ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: nn.Module,
    checkpoint_wrapper_fn: Callable[[nn.Module], nn.Module] = checkpoint_wrapper,
    check_fn: Callable[[nn.Module], bool] = lambda _: True,
    auto_wrap_policy: Callable | None = None,
) -> None:
    """Wrap each submodule with `check_fn(module)`, in place.

    `auto_wrap_policy(module=, recurse=, nonwrapped_numel=)` may decide instead.
    """

    def should_wrap(part: nn.Module) -> bool:
        if auto_wrap_policy is None:
            return check_fn(part)
        return auto_wrap_policy(module=part, recurse=False, nonwrapped_numel=sum(p.numel() for p in part.parameters()))

    def visit(parent: nn.Module) -> None:
        for name, part in list(parent.named_children()):
            visit(part)
            if should_wrap(part):
                setattr(parent, name, checkpoint_wrapper_fn(part))

    visit(model)
