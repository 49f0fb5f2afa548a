"""`functional_call` and `stack_module_state`: modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn.utils.stateless import _functional_call

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite.nn import Module


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Remove running statistics from every batch norm of `root` in place, so `vmap` can run it over models.

    >>> net = torchlite.nn.Sequential(torchlite.nn.BatchNorm1d(2))
    >>> torchlite.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with these tensors instead of its parameters and buffers, which stay unchanged.

    parameter_and_buffer_dicts: tensors by dotted name, in one dictionary or several with disjoint names. args: the
    argument, or a tuple of them. tie_weights: replace a shared tensor under all its names. strict: raise RuntimeError
    for missing and unexpected names.

    >>> net = torchlite.nn.Linear(2, 1, bias=False)
    >>> torchlite.func.functional_call(net, {"weight": torchlite.ones(1, 2)}, torchlite.ones(1, 2))
    tensor([[2.]])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        tensors = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        dicts = parameter_and_buffer_dicts
        if not all(isinstance(part, dict) for part in dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for part in dicts for name in part]
        repeated = [name for position, name in enumerate(names) if name in names[:position]]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        tensors = {name: tensor for part in dicts for name, tensor in part.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module] | Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (parameters, buffers) of several modules of one class, stacked along a new first dimension, by name. The
    stacked parameters are leaves. Raise RuntimeError for no modules, or for different classes or modes.

    >>> parameters, buffers = torchlite.func.stack_module_state([torchlite.nn.Linear(2, 3) for _ in range(4)])
    >>> parameters["weight"].shape
    torch.Size([4, 3, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: _stack_tensors(name, [dict(model.named_parameters())[name] for model in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: torch.stack([dict(model.named_buffers())[name] for model in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def _stack_tensors(name, tensors):
    if not all(tensor.requires_grad == tensors[0].requires_grad for tensor in tensors):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return torch.stack([tensor.detach() for tensor in tensors]).requires_grad_(tensors[0].requires_grad)
