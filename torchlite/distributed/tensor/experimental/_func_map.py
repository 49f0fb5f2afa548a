"""`local_map`: applies a function of local tensors to DTensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite.utils import _pytree as pytree

from ...device_mesh import DeviceMesh
from .._api import DTensor
from ..placement_types import Placement

__all__ = ["local_map"]

Placements = Sequence[Placement] | None


def local_map(
    func: Callable | None = None,
    out_placements: Any = None,
    in_placements: tuple[Placements, ...] | None = None,
    in_grad_placements: tuple[Placements, ...] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable:
    """Returns a function of DTensors that calls another function with their local tensors.

    Args:
        func: The function. Default: none; the call then returns a decorator.
        out_placements: The placements of the results: a list for all, or a tuple with a list for each; ``None`` for a
            result
            that is not wrapped.
        in_placements: The placements of the arguments; ``None`` for any placement and for an argument that is not a
            tensor.
            Default: any.
        in_grad_placements: The placements of the gradients of the local tensors. Default: none.
        device_mesh: The mesh of the results, if no argument is a DTensor. Default: none.
        redistribute_inputs: Whether arguments of other placements are redistributed. Default: ``False``.

    Returns:
        The function.

    Raises:
        ValueError: An argument has another placement, and ``redistribute_inputs`` is not set. Raised by the function.
        AssertionError: The numbers of placements and arguments differ. Raised by the function.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.tensor import Partial, Shard, distribute_tensor
        >>> from torchlite.distributed.tensor.experimental import local_map
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> total = local_map(lambda x: x.sum(), out_placements=[Partial()], in_placements=([Shard(0)],))
        >>> total(distribute_tensor(torch.ones(4), mesh, [Shard(0)])).full_tensor()
        tensor(4.)
        >>> dist.destroy_process_group()
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat, spec = pytree.tree_flatten(args)
        for name, given in (("in_placements", in_placements), ("in_grad_placements", in_grad_placements)):
            if given is not None and len(given) != len(flat):
                raise AssertionError(f"{name} length {len(given)} does not match the number of input args {len(flat)}!")
        mesh, parts = device_mesh, []
        for i, value in enumerate(flat):
            target = None if in_placements is None else in_placements[i]
            if not isinstance(value, DTensor):
                if isinstance(value, torch.Tensor) and target is not None and any(not p.is_replicate() for p in target):
                    raise ValueError(f"the plain tensor at place {i} is taken to be replicated, not {target}")
                parts.append(value)
                continue
            mesh = mesh or value.device_mesh
            if target is not None and tuple(target) != value.placements:
                if not redistribute_inputs:
                    raise ValueError(
                        f"arg {value} in local_map has a mismatched placements: arg placements is {value.placements} "
                        f"but the input placements is {target}! If redistribute_inputs is wanted, set "
                        "redistribute_inputs=True to local_map."
                    )
                value = value.redistribute(mesh, target)
            grads = None if in_grad_placements is None else in_grad_placements[i]
            parts.append(value.to_local(grad_placements=grads))
        found = func(*pytree.tree_unflatten(parts, spec), **kwargs)
        if mesh is None or not any(isinstance(value, DTensor) for value in flat) and device_mesh is None:
            return found
        results, shape = pytree.tree_flatten(found)
        several = isinstance(out_placements, tuple) and (
            not out_placements or not isinstance(out_placements[0], Placement)
        )
        each = out_placements if several else [out_placements] * len(results)
        if len(each) != len(results):
            raise AssertionError(
                f"local_map requires one PlacementType be provided for each output value, got {len(each)} "
                f"out_placements but {len(results)} is expected!"
            )
        outputs = []
        for value, places in zip(results, each, strict=True):
            if isinstance(value, torch.Tensor):
                if isinstance(value, DTensor):
                    raise AssertionError(f"torch.Tensor output expected but received {type(value)}: {value}")
                outputs.append(value if places is None else DTensor.from_local(value, mesh, places, run_check=False))
            else:
                if places is not None:
                    raise AssertionError(f"Non-tensor output expects None placements but received {places}!")
                outputs.append(value)
        return pytree.tree_unflatten(outputs, shape)

    return mapped
