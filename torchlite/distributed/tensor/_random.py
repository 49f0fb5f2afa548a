"""Random numbers that all processes of a mesh agree on.

A mesh has a generator of its own, which begins where that of its first process stood when the first DTensor was drawn.
Each process draws the whole tensor and keeps its part, so that numbers do not depend on how the tensor lies, nor on how
many processes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._device.generators import default_of
from torchlite._dispatch import table_of

from ..device_mesh import DeviceMesh
from ._collective_utils import mesh_broadcast
from ._dtensor_factory import local_part, make_dtensor
from ._dtensor_spec import DTensorSpec, TensorMeta
from .placement_types import Placement

_GENERATORS: dict[Any, torch.Generator] = {}


def generator_of(mesh: DeviceMesh) -> torch.Generator:
    """The mesh's generator, made with the others of the mesh when it is first asked for."""
    found = _GENERATORS.get(mesh)
    if found is None:
        found = _GENERATORS[mesh] = torch.Generator(mesh.device_type)
        state = _default(mesh).get_state()
        for number in range(mesh.ndim):
            mesh_broadcast(state, mesh, number)
        found.set_state(state)
    return found


def manual_seed(seed: int, device_mesh: DeviceMesh) -> None:
    """Begin the mesh's random numbers at a seed, which all its processes give."""
    _GENERATORS[device_mesh] = torch.Generator(device_mesh.device_type).manual_seed(seed)


class use_mesh_generator:
    """Inside, the process's generator gives the mesh's numbers."""

    def __init__(self, mesh: DeviceMesh) -> None:
        self.mesh = mesh

    def __enter__(self) -> None:
        self.generator = generator_of(self.mesh)
        self.own = _default(self.mesh)
        self.before = self.own.get_state()
        self.own.set_state(self.generator.get_state())

    def __exit__(self, *error: object) -> None:
        self.generator.set_state(self.own.get_state())
        self.own.set_state(self.before)


def _default(mesh: DeviceMesh) -> Any:
    """The generator that ops of this process draw from."""
    where: Any = torch.device(mesh.device_type)
    return default_of(table_of(where))


def draw_dtensor(draw: Callable[[], torch.Tensor], mesh: DeviceMesh, placements: Sequence[Placement]) -> Any:
    """A DTensor of what `draw()` draws as a whole."""
    with use_mesh_generator(mesh):
        whole = draw()
    return make_dtensor(
        local_part(whole, mesh, placements),
        DTensorSpec(mesh, placements, TensorMeta(whole.shape, whole.stride(), whole.dtype)),
    )
