"""Functions that create DTensors as `torch` creates tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch

from ..device_mesh import DeviceMesh, _mesh_resources
from ._api import DTensor, _normalize_placements, wrap_local
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._random import draw_dtensor
from ._utils import compute_local_shape, normalize_to_torch_size
from .placement_types import Placement

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]

_FACTORY_DOC = """Creates the DTensor that `torch.{name}` creates as a tensor; {how}.

Args:
    size: The global sizes, as integers or one sequence.
    dtype: The dtype. Default: the default dtype.
    layout: Must be ``torch.strided``.
    requires_grad: Whether the result requires grad. Default: ``False``.
    device_mesh: The mesh. Default: the mesh of the enclosing ``with`` block.
    placements: A placement for each dimension of the mesh. Default: `Replicate`.

Returns:
    A `DTensor`.

Raises:
    AssertionError: ``layout`` is another one.

Example:
    >>> import torchlite.distributed as dist
    >>> from torchlite.distributed.tensor import Shard, {name}
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> {name}(4, 2, device_mesh=mesh, placements=[Shard(0)]).to_local().shape
    torch.Size([4, 2])
    >>> dist.destroy_process_group()
"""


def _make_dtensor(
    size: Any, mesh: Any, placements: Any, make: Callable[[torch.Size], torch.Tensor], requires_grad: bool
) -> DTensor:
    """Return a DTensor whose local tensors `make` creates from their sizes."""
    found = mesh or _mesh_resources.get_current_mesh()
    shape = normalize_to_torch_size(size)
    places = _normalize_placements(placements, found, len(shape))
    own = torch.Size(compute_local_shape(shape, found, places))
    local = make(own)
    whole = torch.empty(shape, device="meta")
    made = wrap_local(local, DTensorSpec(found, places, TensorMeta(shape, whole.stride(), local.dtype)))
    return made.requires_grad_() if requires_grad else made


def _fill_factory(name: str) -> Callable[..., DTensor]:
    fill = getattr(torch, name)

    def function(
        *size: Any,
        dtype: torch.dtype | None = None,
        layout: Any = torch.strided,
        requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        _check_layout(layout)
        return _make_dtensor(
            size, mesh, placements, lambda own: fill(own, dtype=dtype, device=mesh.device_type), requires_grad
        )

    function.__name__ = function.__qualname__ = name
    function.__module__ = "torchlite.distributed.tensor"
    function.__doc__ = _FACTORY_DOC.format(name=name, how="each process creates its shard")
    return function


def _check_layout(layout: Any) -> None:
    if layout is not torch.strided:
        raise AssertionError("layout value not supported!")


ones, empty, zeros = _fill_factory("ones"), _fill_factory("empty"), _fill_factory("zeros")


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = torch.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Creates a DTensor filled with a number; each process fills its shard.

    Args:
        size: The global sizes.
        fill_value: The number.
        dtype: The dtype. Default: as for `torch.full`.
        layout: Must be ``torch.strided``.
        requires_grad: Whether the result requires grad. Default: ``False``.
        device_mesh: The mesh. Default: the mesh of the enclosing ``with`` block.
        placements: A placement for each dimension of the mesh. Default: `Replicate`.

    Returns:
        A `DTensor`.

    Raises:
        AssertionError: ``layout`` is another one.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> torch.distributed.tensor.full((2,), 7.0, device_mesh=mesh).full_tensor()
        tensor([7., 7.])
        >>> dist.destroy_process_group()
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    _check_layout(layout)

    def make(own: torch.Size) -> torch.Tensor:
        return torch.full(own, fill_value, dtype=dtype, device=mesh.device_type)

    return _make_dtensor(size, mesh, placements, make, requires_grad)


def _make_random_factory(name: str) -> Callable[..., DTensor]:
    draw = getattr(torch, name)

    def function(
        *size: Any,
        requires_grad: bool = False,
        dtype: torch.dtype | None = None,
        layout: Any = torch.strided,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        _check_layout(layout)
        shape = normalize_to_torch_size(size)
        places = _normalize_placements(placements, mesh, len(shape))
        made = draw_dtensor(lambda: draw(shape, dtype=dtype, device=mesh.device_type), mesh, places)
        return made.requires_grad_() if requires_grad else made

    function.__name__ = function.__qualname__ = name
    function.__module__ = "torchlite.distributed.tensor"
    function.__doc__ = _FACTORY_DOC.format(name=name, how="the numbers do not depend on the placements")
    return function


rand, randn = _make_random_factory("rand"), _make_random_factory("randn")
