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
    """Remove the running statistics from all batch normalizations of a module, in place.

    `vmap` cannot run the module over models or examples while batch normalization updates its statistics in place.

    Args:
        root: The module. Its batch normalizations get ``track_running_stats=False``.

    Returns:
        ``root``.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
        >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
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
    """Call a module with other tensors in place of its parameters and buffers.

    The module's own parameters and buffers stay unchanged.

    Args:
        module: The module to call.
        parameter_and_buffer_dicts: Tensors by dotted name, in one dictionary, or in several with disjoint names. The
            module's own tensors are used for other names.
        args: The positional argument of the call, or a tuple of them. Default: ``None``, no arguments.
        kwargs: The keyword arguments of the call. Default: ``None``, no arguments.
        tie_weights: Whether a tensor that the module has under several names is replaced under all of them. Default:
            ``True``.
        strict: Whether missing and unexpected names raise RuntimeError. Default: ``False``.

    Returns:
        What the module returns.

    Raises:
        ValueError: ``parameter_and_buffer_dicts`` is neither a dictionary nor a sequence of them, a name is in
            several, or tied names get different tensors.
        RuntimeError: Names are missing or unexpected, with ``strict``.

    Example:
        >>> net = torch.nn.Linear(2, 1, bias=False)
        >>> torch.func.functional_call(net, {"weight": torch.ones(1, 2)}, torch.ones(1, 2))
        tensor([[2.]])

    See also:
        `stack_module_state`, `grad`.
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
    """Stack the parameters and the buffers of several modules, to run them as an ensemble with `vmap`.

    Args:
        models: Modules of one class, all in training mode or all in evaluation mode.

    Returns:
        Two dictionaries by name, of parameters and of buffers, with tensors of shape ``(number of models, *shape)``.
        The stacked parameters are leaves that require grad as the modules' do.

    Raises:
        RuntimeError: There are no modules, or they differ in class, mode or ``requires_grad``.

    Example:
        >>> nets = [torch.nn.Linear(2, 3) for _ in range(4)]
        >>> parameters, buffers = torch.func.stack_module_state(nets)
        >>> parameters["weight"].shape
        torch.Size([4, 3, 2])
        >>> x = torch.ones(5, 2)
        >>> torch.vmap(lambda p, b: torch.func.functional_call(nets[0], (p, b), x))(parameters, buffers).shape
        torch.Size([4, 5, 3])

    See also:
        `functional_call`, `vmap`.
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
