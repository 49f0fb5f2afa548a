"""`make_functional`: the older API of `torch.func.functional_call`, models as functions of their parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.func import functional_call
from torchlite.nn.modules.module import Module

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
]  # fmt: skip

Names = dict[str, list[str]]  # the first name of a parameter, and all its names


class FunctionalModuleWithBuffers(Module):
    """Stateless model: a call takes parameters, buffers, then the inputs."""

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: Names,
        buffer_names_map: Names,
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> Any:
        bare, params, names = _extract_state(model, disable_autograd_tracking)
        buffers = {name: value.clone() for name, value in model.named_buffers()}
        buffer_names = _all_names(model.named_buffers(remove_duplicate=False))
        made = FunctionalModuleWithBuffers(bare, tuple(params), tuple(buffers), names, buffer_names)
        return made, tuple(params.values()), tuple(buffers.values())

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        given = [*zip(self.param_names, params, strict=True), *zip(self.buffer_names, buffers, strict=True)]
        return _call_with_state(self.stateless_model, given, self.all_names_map, args, kwargs)


class FunctionalModule(Module):
    """Stateless model: a call takes parameters, then the inputs."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], names_map: Names) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.names_map = param_names, names_map

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> Any:
        bare, params, names = _extract_state(model, disable_autograd_tracking)
        return FunctionalModule(bare, tuple(params), names), tuple(params.values())

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        given = zip(self.param_names, params, strict=True)
        return _call_with_state(self.stateless_model, given, self.names_map, args, kwargs)


def _extract_state(model: Module, detached: bool) -> tuple[Module, dict[str, Tensor], Names]:
    """Return a copy of the model on the meta device, copies of its parameters by name, and all names of each."""
    bare = copy.deepcopy(model).to("meta")
    wants = {name: p.requires_grad and not detached for name, p in model.named_parameters()}
    params: dict[str, Tensor] = {
        name: torch.nn.Parameter(p.detach().clone(), requires_grad=wants[name]) for name, p in model.named_parameters()
    }
    return bare, params, _all_names(model.named_parameters(remove_duplicate=False))


def _all_names(named: Iterable[tuple[str, Tensor]]) -> Names:
    found: dict[int, list[str]] = {}
    for name, tensor in named:
        found.setdefault(id(tensor), []).append(name)
    return {names[0]: names for names in found.values()}


def _call_with_state(model: Module, given: Iterable[tuple[str, Tensor]], names: Names, args: Any, kwargs: Any) -> Any:
    state = {name: value for first, value in given for name in names[first]}
    return functional_call(model, state, args, kwargs, tie_weights=False)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple]:
    """Return the model as a function of (parameters, *inputs), and copies of its parameters. With
    `disable_autograd_tracking` they do not require gradients. Raise RuntimeError for a model with buffers.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking=disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """Return the model as a function of (parameters, buffers, *inputs), and copies of its parameters and buffers."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking=disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """Return the first model as a function, with the stacked parameters and buffers of all models, for `vmap`. Raise
    RuntimeError for no models, or for different classes or modes.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    parts = [make_functional_with_buffers(model) for model in models]
    params = tuple(torch.stack(group).detach() for group in zip(*(part[1] for part in parts), strict=True))
    buffers = tuple(torch.stack(group).detach() for group in zip(*(part[2] for part in parts), strict=True))
    return parts[0][0], params, buffers
