"""Parallel styles: placements of a module's parameters, inputs and outputs over a 1-d mesh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite import nn

from ...device_mesh import DeviceMesh
from .._api import DTensor, distribute_module, distribute_tensor
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip

Layouts = Placement | tuple[Placement | None, ...] | None


class ParallelStyle(ABC):
    """Base class of the styles of `parallelize_module`; a subclass implements ``_apply(module, device_mesh)``.

    Example:
        >>> from torchlite.distributed.tensor.parallel import ColwiseParallel, ParallelStyle
        >>> isinstance(ColwiseParallel(), ParallelStyle)
        True
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module: ...


def _as_dtensor(value: Any, mesh: DeviceMesh, layout: Placement, wanted: Placement) -> DTensor:
    """Return a tensor with the `wanted` placement; a plain one has `layout`."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, (layout,), run_check=False)
    if value.placements != (wanted,):
        value = value.redistribute(placements=(wanted,))
    return value


class _LayerStyle(ParallelStyle):
    """Common part of the styles of linear layers and embeddings."""

    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    use_local_output: bool

    def _linear_placement(self, name: str) -> Placement:
        raise NotImplementedError

    def _embedding_placement(self) -> Placement:
        raise NotImplementedError

    def _desired_input_placement(self, module: nn.Module) -> Placement:
        raise NotImplementedError

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if not isinstance(module, nn.Linear | nn.Embedding):
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        layout = self._desired_input_placement(module)

        def partition(name: str, part: nn.Module, mesh: DeviceMesh) -> None:
            for key, parameter in part.named_parameters(recurse=False):
                place = self._embedding_placement() if isinstance(part, nn.Embedding) else self._linear_placement(key)
                _set_parameter(part, key, parameter, mesh, place, self.src_data_rank)

        def prepare(mod: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            return (_as_dtensor(inputs[0], mesh, self.input_layouts[0], layout), *inputs[1:])

        def finish(mod: nn.Module, output: Any, mesh: DeviceMesh) -> Any:
            if output.placements != self.output_layouts:
                output = output.redistribute(placements=self.output_layouts)
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, prepare, finish)


def _set_parameter(
    module: nn.Module, name: str, parameter: torch.Tensor, mesh: DeviceMesh, place: Placement, source: int | None
) -> None:
    """Replace a parameter by a DTensor."""
    made = distribute_tensor(parameter.detach(), mesh, [place], src_data_rank=source)
    module.register_parameter(name, nn.Parameter(made, requires_grad=parameter.requires_grad))


class ColwiseParallel(_LayerStyle):
    """Style of a linear layer that is sharded by output features, or of an embedding by its columns.

    Args:
        input_layouts: The placement of a plain input. Default: `Replicate`.
        output_layouts: The placement of the output. Default: `Shard` of the last dimension.
        use_local_output: Whether the output is a local tensor; otherwise a DTensor. Default: ``True``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Replicate, Shard
        >>> from torchlite.distributed.tensor.parallel import ColwiseParallel, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> layer = parallelize_module(torch.nn.Linear(2, 4), mesh, ColwiseParallel())
        >>> layer.weight.placements
        (Shard(dim=0),)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _linear_placement(self, name: str) -> Placement:
        return Shard(0)

    def _embedding_placement(self) -> Placement:
        return Shard(1)

    def _desired_input_placement(self, module: nn.Module) -> Placement:
        return Replicate()

    def __repr__(self) -> str:
        return (
            f"ColwiseParallel(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class RowwiseParallel(_LayerStyle):
    """Style of a linear layer that is sharded by input features, or of an embedding by its rows.

    Args:
        input_layouts: The placement of a plain input. Default: `Shard` of the last dimension.
        output_layouts: The placement of the output. Default: `Replicate`.
        use_local_output: Whether the output is a local tensor; otherwise a DTensor. Default: ``True``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Replicate, Shard
        >>> from torchlite.distributed.tensor.parallel import RowwiseParallel, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> layer = parallelize_module(torch.nn.Linear(2, 4), mesh, RowwiseParallel())
        >>> layer.weight.placements
        (Shard(dim=1),)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _linear_placement(self, name: str) -> Placement:
        return Shard(1) if name == "weight" else Replicate()

    def _embedding_placement(self) -> Placement:
        return Shard(0)

    def _desired_input_placement(self, module: nn.Module) -> Placement:
        return Replicate() if isinstance(module, nn.Embedding) else Shard(-1)

    def __repr__(self) -> str:
        return (
            f"RowwiseParallel(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class SequenceParallel(ParallelStyle):
    """Style of a norm or dropout on shards of the sequence; its parameters are replicated.

    Args:
        sequence_dim: The dimension in which input and output are sharded. Default: 1.
        use_local_output: Whether the output is a local tensor; otherwise a DTensor. Default: ``False``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Replicate, Shard
        >>> from torchlite.distributed.tensor.parallel import SequenceParallel, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> norm = parallelize_module(torch.nn.LayerNorm(4), mesh, SequenceParallel())
        >>> norm(torch.ones(2, 3, 4)).placements
        (Shard(dim=1),)
        >>> dist.destroy_process_group()
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def partition(name: str, part: nn.Module, mesh: DeviceMesh) -> None:
            for key, parameter in part.named_parameters(recurse=False):
                made = DTensor.from_local(parameter.detach(), mesh, [Replicate()], run_check=False)
                part.register_parameter(key, nn.Parameter(made, requires_grad=parameter.requires_grad))

        def prepare(mod: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            value = inputs[0]
            if not isinstance(value, torch.Tensor):
                raise ValueError(f"expecting input of {mod} to be a torch.Tensor or DTensor, but got {value}")
            wanted = self.sequence_sharding[0]
            return (_as_dtensor(value, mesh, wanted, wanted.at(wanted.dim % value.ndim)), *inputs[1:])

        def finish(mod: nn.Module, output: Any, mesh: DeviceMesh) -> Any:
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, prepare, finish)

    def __repr__(self) -> str:
        dim = self.sequence_sharding[0].dim
        return f"SequenceParallel(sequence_dim={dim}, use_local_output={self.use_local_output})"


def _to_tuple(layouts: Any) -> tuple[Placement | None, ...]:
    return (layouts,) if isinstance(layouts, Placement) else tuple(layouts or ())


class PrepareModuleInput(ParallelStyle):
    """Style that redistributes the inputs of a module.

    Args:
        input_layouts: The placements of plain positional inputs; ``None`` for one that stays as it is. Default: none.
        desired_input_layouts: Their placements in the module.
        input_kwarg_layouts: The placements of plain keyword inputs. Default: none.
        desired_input_kwarg_layouts: Their placements in the module.
        use_local_output: Whether the module gets local tensors; otherwise DTensors. Default: ``False``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Replicate, Shard
        >>> from torchlite.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> style = PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate())
        >>> module = parallelize_module(torch.nn.Identity(), mesh, style)
        >>> module(torch.ones(2)).placements
        (Replicate(),)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = None if input_layouts is None else _to_tuple(input_layouts)
        self.desired_input_layouts = None if desired_input_layouts is None else _to_tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _prepare_value(self, value: Any, mesh: DeviceMesh, layout: Placement | None, wanted: Placement | None) -> Any:
        if layout is None:
            return value
        if not isinstance(value, torch.Tensor):
            raise AssertionError(f"expecting input to be a torch.Tensor, but got {type(value)}")
        made = _as_dtensor(value, mesh, layout, layout if wanted is None else wanted)
        return made.to_local() if self.use_local_output else made

    def _prepare_input_fn(self, inputs: Any, device_mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(given) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        assert self.desired_input_layouts is not None
        return tuple(
            self._prepare_value(value, device_mesh, layout, wanted)
            for value, layout, wanted in zip(given, self.input_layouts, self.desired_input_layouts, strict=True)
        )

    def _prepare_input_kwarg_fn(self, inputs: Any, kwarg_inputs: dict[str, Any], device_mesh: DeviceMesh) -> Any:
        made = {
            name: self._prepare_value(
                value, device_mesh, self.input_kwarg_layouts.get(name), self.desired_input_kwarg_layouts.get(name)
            )
            for name, value in kwarg_inputs.items()
        }
        return self._prepare_input_fn(inputs, device_mesh), made

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if self.with_kwargs:
            module.register_forward_pre_hook(
                lambda _, inputs, kwargs: self._prepare_input_kwarg_fn(inputs, kwargs, device_mesh), with_kwargs=True
            )
        else:
            module.register_forward_pre_hook(lambda _, inputs: self._prepare_input_fn(inputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts="
            f"{self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Style that redistributes the outputs of a module.

    Args:
        output_layouts: The placements of plain outputs; ``None`` for one that stays as it is.
        desired_output_layouts: Their placements afterwards.
        use_local_output: Whether the results are local tensors; otherwise DTensors. Default: ``True``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Replicate, Shard
        >>> from torchlite.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> style = PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
        >>> module = parallelize_module(torch.nn.Identity(), mesh, style)
        >>> module(torch.ones(2))
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = _to_tuple(output_layouts), _to_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _prepare_out_fn(self, outputs: Any, device_mesh: DeviceMesh) -> Any:
        given: Sequence[Any] = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(given) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made: list[Any] = []
        for value, layout, wanted in zip(given, self.output_layouts, self.desired_output_layouts, strict=True):
            if layout is None:
                made.append(value)
                continue
            out = _as_dtensor(value, device_mesh, layout, layout if wanted is None else wanted)
            made.append(out.to_local() if self.use_local_output else out)
        return made[0] if len(made) == 1 else tuple(made)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_hook(lambda _, inputs, outputs: self._prepare_out_fn(outputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, desired_output_layouts="
            f"{self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """Style that redistributes the inputs and the outputs of a module.

    Args:
        input_layouts: The placements of plain positional inputs; ``None`` for one that stays as it is. Default: none.
        desired_input_layouts: Their placements in the module.
        input_kwarg_layouts: The placements of plain keyword inputs. Default: none.
        desired_input_kwarg_layouts: Their placements in the module.
        use_local_input: Whether the module gets local tensors; otherwise DTensors. Default: ``False``.
        output_layouts: The placements of plain outputs; ``None`` for one that stays as it is.
        desired_output_layouts: Their placements afterwards.
        use_local_output: Whether the results are local tensors; otherwise DTensors. Default: ``True``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Replicate, Shard
        >>> from torchlite.distributed.tensor.parallel import PrepareModuleInputOutput, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> style = PrepareModuleInputOutput(
        ...     input_layouts=Shard(0), desired_input_layouts=Replicate(),
        ...     output_layouts=Replicate(), desired_output_layouts=Shard(0),
        ... )
        >>> module = parallelize_module(torch.nn.Identity(), mesh, style)
        >>> module(torch.ones(2))
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.prepare_module_input._apply(module, device_mesh)
        self.prepare_module_output._apply(module, device_mesh)
        return module

    def __repr__(self) -> str:
        return f"PrepareModuleInputOutput({self.prepare_module_input}, {self.prepare_module_output})"
