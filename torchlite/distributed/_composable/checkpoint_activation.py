"""Composable activation checkpointing: a module's forward is recomputed in backward."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.utils.checkpoint import checkpoint_context, noop_context_fn

from .contract import contract


class _CheckpointState:
    enable_hook = True  # False while the forward runs for the second time
    running: Any = None


@contract(_CheckpointState)
def checkpoint(module: nn.Module, **kwargs: Any) -> nn.Module:
    """Recompute a module's forward in backward instead of saving activations.

    The module stays the same object, with the same names. Options are those of `torch.utils.checkpoint.checkpoint` with
    `use_reentrant=False`: `preserve_rng_state`, `context_fn`, `determinism_check`.

    >>> import torchlite as torch
    >>> from torchlite.distributed._composable import checkpoint
    >>> layer = checkpoint(torch.nn.Linear(1, 1))
    >>> layer(torch.ones(1, 1)).sum().backward()
    >>> layer.weight.grad
    tensor([[1.]])
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError(
            "use_reentrant=True is not supported in composable checkpoint. Please use "
            "torch.utils.checkpoint.checkpoint instead."
        )
    preserve, context = kwargs.pop("preserve_rng_state", True), kwargs.pop("context_fn", None) or noop_context_fn
    check = kwargs.pop("determinism_check", "default")
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    state = checkpoint.state(module)

    def recompute(*args: Any, **kwargs: Any) -> Any:
        state.enable_hook = False
        try:
            return module(*args, **kwargs)
        finally:
            state.enable_hook = True

    def pre_forward_hook(module: nn.Module, args: Any, kwargs: Any) -> None:
        if state.enable_hook and torch.is_grad_enabled():
            state.running = checkpoint_context(recompute, args, kwargs, context, preserve, check)
            state.running.__enter__()

    def post_forward_hook(module: nn.Module, args: Any, output: Any) -> None:
        if state.enable_hook and state.running is not None:
            running, state.running = state.running, None
            running.__exit__(None, None, None)

    module.register_forward_pre_hook(pre_forward_hook, with_kwargs=True)
    module.register_forward_hook(post_forward_hook, prepend=True, always_call=True)
    return module
