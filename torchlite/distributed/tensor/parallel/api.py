"""`parallelize_module`: applies parallel styles to submodules."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from torchlite import nn

from ...device_mesh import DeviceMesh, _mesh_resources
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> nn.Module:
    """Makes a module tensor-parallel, in place.

    Args:
        module: The module.
        device_mesh: A mesh of one dimension. Default: the mesh of the enclosing ``with`` block.
        parallelize_plan: A style for the module, or styles by the names of submodules. A part of a name may have
            wildcards:
            ``"layers.*.attention.q"``. A name without a match warns.
        src_data_rank: The process whose parameters count; see `distribute_tensor`. Default: 0.

    Returns:
        The module.

    Raises:
        ValueError: The mesh has several dimensions.
        TypeError: ``parallelize_plan`` is neither a style nor a dictionary.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        >>> net = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        >>> net[0].weight.placements, net[2].weight.placements
        ((Shard(dim=0),), (Shard(dim=1),))
        >>> net(torch.ones(3, 2)).shape
        torch.Size([3, 2])
        >>> dist.destroy_process_group()

    References:
        - M. Shoeybi et al. Megatron-LM: training multi-billion parameter language models using model parallelism. 2019.
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if mesh.ndim > 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D! If you have a 2-D or N-D "
            'device_mesh, consider passing in device_mesh["tp"]'
        )
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment.", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if not path:
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        first, *rest = path.split(".")
        found = [part for name, part in module.named_children() if fnmatch(name, first)]
        if not found:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module "
                f"{module}, skipping this plan entry.",
                stacklevel=2,
            )
        plan: Any = {".".join(rest): style} if rest else style
        for part in found:
            parallelize_module(part, mesh, plan, src_data_rank=src_data_rank)
    return module
