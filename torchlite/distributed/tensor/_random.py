"""Random number generators of device meshes, synchronised over their processes.

A mesh has a separate generator, initialised from that of its first process when the first DTensor is drawn. Each
process draws the full tensor and keeps its shard, so numbers depend neither on placements nor on the number of
processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._device.generators import default_generator_of
from torchlite._dispatch import table_of

from ..device_mesh import DeviceMesh
from ._collective_utils import mesh_broadcast
from ._dtensor_factory import make_dtensor, take_local_shard
from ._dtensor_spec import DTensorSpec, TensorMeta
from .placement_types import Placement

_GENERATORS: dict[Any, torch.Generator] = {}


def generator_of(mesh: DeviceMesh) -> torch.Generator:
    """Return the mesh's generator, synchronised with the other processes on first use."""
    found = _GENERATORS.get(mesh)
    if found is None:
        found = _GENERATORS[mesh] = torch.Generator(mesh.device_type)
        state = _default_generator(mesh).get_state()
        for number in range(mesh.ndim):
            mesh_broadcast(state, mesh, number)
        found.set_state(state)
    return found


def manual_seed(seed: int, device_mesh: DeviceMesh) -> None:
    """Seed the mesh's generator; all its processes pass the same seed."""
    _GENERATORS[device_mesh] = torch.Generator(device_mesh.device_type).manual_seed(seed)


class use_mesh_generator:
    """Context manager: the process's default generator is the mesh's."""

    def __init__(self, mesh: DeviceMesh) -> None:
        self.mesh = mesh

    def __enter__(self) -> None:
        self.generator = generator_of(self.mesh)
        self.own = _default_generator(self.mesh)
        self.before = self.own.get_state()
        self.own.set_state(self.generator.get_state())

    def __exit__(self, *error: object) -> None:
        self.generator.set_state(self.own.get_state())
        self.own.set_state(self.before)


def _default_generator(mesh: DeviceMesh) -> Any:
    """Return the default generator of this process's ops."""
    where: Any = torch.device(mesh.device_type)
    return default_generator_of(table_of(where))


def draw_dtensor(draw: Callable[[], torch.Tensor], mesh: DeviceMesh, placements: Sequence[Placement]) -> Any:
    """Return a DTensor from the full tensor of `draw()`."""
    with use_mesh_generator(mesh):
        whole = draw()
    return make_dtensor(
        take_local_shard(whole, mesh, placements),
        DTensorSpec(mesh, placements, TensorMeta(whole.shape, whole.stride(), whole.dtype)),
    )
