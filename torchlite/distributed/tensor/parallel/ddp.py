"""Combination of tensor parallelism with DistributedDataParallel, which reduces plain tensors."""

from __future__ import annotations

from typing import Any

from torchlite import nn

from .._api import DTensor

__all__ = ["_pre_dp_module_transform"]


def _pre_dp_module_transform(module: nn.Module) -> None:
    """Make a tensor-parallel module's parameters local tensors for DistributedDataParallel.

    During forward the modules have them as DTensors.
    """
    specs: list[tuple[nn.Module, str, Any]] = []
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            if isinstance(parameter, DTensor):
                own = nn.Parameter(parameter.to_local().detach(), requires_grad=parameter.requires_grad)
                part.register_parameter(name, own)
                specs.append((part, name, parameter._spec))

    def rebuild_dtensors(mod: nn.Module, inputs: Any) -> None:
        for part, name, spec in specs:
            local = part._parameters[name]
            assert local is not None
            part.__dict__[name] = DTensor.from_local(
                local, spec.mesh, spec.placements, run_check=False, shape=spec.shape, stride=spec.stride
            )

    def restore_local_tensors(mod: nn.Module, inputs: Any, outputs: Any) -> None:
        for part, name, _ in specs:
            part.__dict__.pop(name, None)

    module.register_forward_pre_hook(rebuild_dtensors)
    module.register_forward_hook(restore_local_tensors, always_call=True)
