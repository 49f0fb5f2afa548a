"""Device meshes: n-dimensional arrays of ranks, with a process group per dimension.

A sliced mesh keeps its *root*; each of its dimensions refers to one of the root's axes, or to several flattened ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

from ._group_creation import init_process_group, new_group
from ._group_registry import _world, get_process_group_ranks, get_rank, get_world_size, is_initialized
from ._process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class _Dim(NamedTuple):
    name: str | None
    axes: tuple[int, ...]  # of the root's array
    group: ProcessGroup | None  # this rank's line


class _MeshStack:
    """Stack of the meshes entered by `with`."""

    def __init__(self) -> None:
        self.mesh_stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        """Return the innermost one."""
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]


_mesh_resources = _MeshStack()


class DeviceMesh:
    """Array of ranks with named dimensions, and a group along each of them.

    All ranks of the world create it. ``mesh["tp"]`` is this rank's 1-d submesh along that dimension, and
    ``mesh.get_group("tp")`` its group.

    Args:
        device_type: Type of the devices, such as ``"cpu"``.
        mesh: The ranks, as nested lists, an array or a tensor.
        mesh_dim_names: A name for each dimension. Default: none.
        backend_override: A backend for each dimension. Default: that of the default group.

    Raises:
        ValueError: The names or the backends do not match the dimensions.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = dist.DeviceMesh("cpu", [[0]], mesh_dim_names=("dp", "tp"))
        >>> mesh.shape, mesh["tp"].size(), mesh.get_local_rank("tp")
        ((1, 1), 1, 0)
        >>> dist.destroy_process_group()

    See also:
        `init_device_mesh`.
    """

    _array: np.ndarray
    _dims: list[_Dim]
    _root: DeviceMesh

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Sequence[Any] | None = None,
        _init_backend: bool = True,
        _rank: int | None = None,
        _dims: list[_Dim] | None = None,
        _root: DeviceMesh | None = None,
    ) -> None:
        self._device_type = device_type
        self._flatten_mapping: dict[str, DeviceMesh] = {}
        self._root = self if _root is None else _root
        if _dims is not None:
            assert _root is not None
            self._array, self._dims = _root._array, _dims
            return
        self._array = _as_array(mesh)
        names = tuple(mesh_dim_names) if mesh_dim_names else (None,) * self._array.ndim
        if len(names) != self._array.ndim:
            raise ValueError(f"mesh_dim_names {names} should have a name for each of {self._array.ndim} dimensions")
        self._dims = [_Dim(name, (axis,), None) for axis, name in enumerate(names)]
        if backend_override is not None and len(backend_override) != self._array.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, but got "
                f"{len(backend_override)} and {self._array.ndim}."
            )
        if not is_initialized():
            init_process_group()
        world = get_world_size()
        if self._array.size > world:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world}, but found {self._array.size} ranks!"
            )
        if _init_backend:
            backends = backend_override or [None] * self._array.ndim
            self._dims = [
                dim._replace(
                    group=_create_groups_along_axes(self._array, dim.axes, backend, _group_desc(dim.name, axis))
                )
                for axis, (dim, backend) in enumerate(zip(self._dims, backends, strict=True))
            ]

    # Attributes.

    @property
    def device_type(self) -> str:
        """Type of the devices."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """Names of the dimensions."""
        names = tuple(dim.name for dim in self._dims if dim.name is not None)
        return names or None

    @property
    def mesh(self) -> torch.Tensor:
        """Ranks: of a slice those of this rank's submesh."""
        return torch.from_numpy(np.ascontiguousarray(self._ranks()))

    def _ranks(self) -> np.ndarray:
        """Return the ranks of this mesh: the root's, at this rank's coordinates in the other axes."""
        axes = [axis for dim in self._dims for axis in dim.axes]
        place = self._root._find_coordinate() or (0,) * self._array.ndim
        held = tuple(slice(None) if axis in axes else place[axis] for axis in range(self._array.ndim))
        left = sorted(axes)
        return self._array[held].transpose([left.index(axis) for axis in axes]).reshape(self.shape)

    def _find_coordinate(self) -> tuple[int, ...] | None:
        found = np.argwhere(self._array == get_rank())
        return tuple(int(i) for i in found[0]) if len(found) else None

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(int(np.prod([self._array.shape[axis] for axis in dim.axes])) for dim in self._dims)

    def size(self, mesh_dim: int | None = None) -> int:
        """Returns the number of ranks, or the size of a dimension.

        Args:
            mesh_dim: The dimension's number. Default: all.
        """
        return int(np.prod(self.shape)) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """Return this process's rank in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Return this rank's coordinates, None if it is not in the mesh."""
        found = np.argwhere(self._ranks() == get_rank())
        return tuple(int(i) for i in found[0]) if len(found) else None

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self.get_coordinate() is not None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Returns this rank's coordinate in a dimension.

        Args:
            mesh_dim: The dimension's name or number. Optional for a mesh of one dimension.

        Raises:
            RuntimeError: There are several dimensions and none is given.
        """
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        return get_rank(self.get_group(0 if mesh_dim is None else mesh_dim))

    # Groups.

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Returns this rank's group along a dimension.

        Args:
            mesh_dim: The dimension's name or number. Optional for a mesh of one dimension.

        Raises:
            RuntimeError: There are several dimensions and none is given, or the mesh has no groups.
        """
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
                "please use `get_all_groups()` instead.",
            )
        if isinstance(mesh_dim, str) and mesh_dim in self._root._flatten_mapping:
            return self._root._flatten_mapping[mesh_dim].get_group()
        number = self._get_mesh_dim_by_name(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim or 0
        found = self._dims[number].group
        if found is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the groups of all dimensions."""
        return [self.get_group(i) for i in range(self.ndim)]

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        if self.mesh_dim_names is None:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim_name not in self.mesh_dim_names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim_name}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self.mesh_dim_names}",
            )
        return self.mesh_dim_names.index(mesh_dim_name)

    # Parts of it.

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        known = {str(dim.name): dim for dim in self._dims}
        if self._root is self:
            known = {**{name: mesh._dims[0] for name, mesh in self._flatten_mapping.items()}, **known}
        if any(name not in known for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {list(known)}.")
        dims = [known[name] for name in names]
        axes = [axis for dim in dims for axis in dim.axes]
        if len(set(axes)) < len(axes):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        if axes != sorted(axes):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        return DeviceMesh(self._device_type, _dims=dims, _root=self._root)

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root

    def _get_root_mesh_dim(self) -> int | None:
        """Return the root dimension of a 1-d slice."""
        if self._root is self or self.ndim != 1 or len(self._dims[0].axes) != 1:
            return None
        return self._dims[0].axes[0]

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """Return all 1-d submeshes along a dimension."""
        dim = self._dims[self._get_mesh_dim_by_name(mesh_dim_name)]
        made = []
        for line in _ranks_along_axes(self._array, dim.axes):
            mesh = DeviceMesh(self._device_type, line, mesh_dim_names=(mesh_dim_name,), _init_backend=False)
            if get_rank() in line:
                mesh._dims = [mesh._dims[0]._replace(group=dim.group)]
            made.append(mesh)
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """Flatten the mesh to one dimension, registered with the root under its name.

        The default name joins the dimensions' names with "_". All ranks call it.
        """
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self.mesh_dim_names)
        if self.ndim == 1 and name in self.mesh_dim_names:
            return self
        if name in (self._root.mesh_dim_names or ()):
            raise ValueError(f"{name} already exists for submesh of the {self._root}.")
        axes = tuple(axis for dim in self._dims for axis in dim.axes)
        known = self._root._flatten_mapping.get(name)
        if known is not None:
            if known._dims[0].axes != axes:
                raise ValueError(f"Flatten mesh with mesh_dim_name {name} has been created before.")
            return known
        dim = _Dim(name, axes, _create_groups_along_axes(self._array, axes, backend_override, f"mesh_{name}"))
        flattened = DeviceMesh(self._device_type, _dims=[dim], _root=self._root)
        self._root._flatten_mapping[name] = flattened
        return flattened

    def _unflatten(
        self,
        dim: int | str,
        mesh_sizes: tuple[int, ...],
        mesh_dim_names: tuple[str, ...],
        backend_override: dict[int | str, Any] | None = None,
    ) -> DeviceMesh:
        """Replace one dimension by several. All ranks call it."""
        number = self._get_mesh_dim_by_name(dim) if isinstance(dim, str) else dim
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        if int(np.prod(mesh_sizes)) != self.size(number):
            raise ValueError(f"mesh_sizes {mesh_sizes} do not make up dimension {dim}, which has {self.size(number)}")
        shape = (*self.shape[:number], *mesh_sizes, *self.shape[number + 1 :])
        before = self.mesh_dim_names or tuple(f"dim_{i}" for i in range(self.ndim))
        names = (*before[:number], *mesh_dim_names, *before[number + 1 :])
        if self._root is not self and self._array.size != self.size():
            raise NotImplementedError("_unflatten of a part of a mesh")
        return DeviceMesh(self._device_type, self._ranks().reshape(shape), mesh_dim_names=names)

    @staticmethod
    def _concatenate(device_mesh_list: list[DeviceMesh]) -> DeviceMesh:
        """Concatenate the dimensions of slices of one root."""
        first = device_mesh_list[0]
        if any(mesh._root is not first._root for mesh in device_mesh_list):
            raise RuntimeError("Cannot concatenate DeviceMeshes derived from different device meshs")
        dims = [dim for mesh in device_mesh_list for dim in mesh._dims]
        axes = [axis for dim in dims for axis in dim.axes]
        if len(set(axes)) < len(axes):
            raise RuntimeError("Cannot concatenate overlapping meshes")
        return DeviceMesh(first._device_type, _dims=dims, _root=first._root)

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """Creates a mesh from groups that exist.

        Args:
            group: A group, or a list with one for each dimension of ``mesh``.
            device_type: Type of the devices.
            mesh: The ranks; optional for one group.
            mesh_dim_names: A name for each dimension; optional for one group.

        Returns:
            A `DeviceMesh`.

        Raises:
            ValueError: The ranks do not match the group, the list is empty, or an argument that it needs is missing.
        """
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            if mesh is not None and _as_array(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            groups, mesh = [group], ranks
        else:
            groups = list(group)
            if not groups:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            if mesh_dim_names is None:
                raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
            if _as_array(mesh).ndim != len(groups):
                raise ValueError(
                    "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                    f"{_as_array(mesh).tolist()} and {len(groups)} ProcessGroups"
                )
        device_mesh = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        device_mesh._dims = [dim._replace(group=each) for dim, each in zip(device_mesh._dims, groups, strict=True)]
        return device_mesh

    # As a value.

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _mesh_resources.mesh_stack.pop()

    def _comparison_key(self) -> tuple[Any, ...]:
        return self._device_type, self.mesh_dim_names, self.shape, tuple(self._ranks().ravel().tolist())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._comparison_key() == other._comparison_key())

    def __hash__(self) -> int:
        return hash(self._comparison_key())

    def __repr__(self) -> str:
        names, shape = self.mesh_dim_names, self.shape
        sizes = f"({', '.join(f'{n}={s}' for n, s in zip(names, shape, strict=True))})" if names else f"{shape}"
        steps = [int(np.prod(self._array.shape[axis + 1 :])) for axis in range(self._array.ndim)]
        strides = tuple(steps[dim.axes[-1]] for dim in self._dims)
        ranks = f", Mesh: {self._ranks().tolist()}" if os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL" else ""
        return f"DeviceMesh({sizes}, '{self._device_type}', stride={strides}{ranks})"

    def __getstate__(self) -> dict[str, Any]:
        names = [None if dim.group is None else dim.group.group_name for dim in self._dims]
        return {
            "device_type": self._device_type, "ranks": self._ranks(), "names": self.mesh_dim_names, "groups": names,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._device_type, self._array, self._flatten_mapping = state["device_type"], state["ranks"], {}
        self._root = self
        names = state["names"] or (None,) * self._array.ndim
        groups = [_world.groups.get(name) for name in state["groups"]]
        self._dims = [_Dim(name, (axis,), group) for axis, (name, group) in enumerate(zip(names, groups, strict=True))]

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self


def _as_array(mesh: Any) -> np.ndarray:
    if mesh is None:
        raise TypeError("The mesh argument is required")
    if isinstance(mesh, torch.Tensor):
        mesh = mesh.detach().cpu().numpy()
    made = np.asarray(mesh, np.int32)
    return made.reshape(1) if made.ndim == 0 else made


def _ranks_along_axes(array: np.ndarray, axes: tuple[int, ...]) -> list[list[int]]:
    """Return the ranks along some axes, for every coordinate in the others."""
    others = [axis for axis in range(array.ndim) if axis not in axes]
    count = int(np.prod([array.shape[axis] for axis in axes]))
    return array.transpose([*others, *axes]).reshape(-1, count).tolist()


def _group_desc(name: str | None, axis: int) -> str:
    return f"mesh_{name if name is not None else f'dim_{axis}'}"


def _create_groups_along_axes(array: np.ndarray, axes: tuple[int, ...], backend: Any, desc: str) -> ProcessGroup | None:
    """Return this rank's group along some axes. All ranks of the world create all of them, in the same order."""
    backend = backend[0] if isinstance(backend, tuple) else backend
    mine = None
    lines = _ranks_along_axes(array, axes)
    world = _world.default_pg
    if backend is None and world is not None and lines == [list(range(world.size()))]:
        return world
    for line in lines:
        made = new_group(line, backend=backend, group_desc=desc, sort_ranks=False)
        if get_rank() in line:
            mine = made
    return mine


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: dict[int | str, Any] | None = None,
) -> DeviceMesh:
    """Creates a mesh of the first ranks of the world, in row-major order, and the default group if there is none.

    Args:
        device_type: Type of the devices, without an index.
        mesh_shape: The sizes of the dimensions.
        mesh_dim_names: A name for each dimension. Default: none.
        backend_override: Backends by the name or number of a dimension. Default: that of the default group.

    Returns:
        A `DeviceMesh`.

    Raises:
        RuntimeError: Names repeat or do not match the shape, or ``device_type`` has an index.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))["tp"]
        DeviceMesh((tp=1), 'cpu', stride=(1,))
        >>> dist.destroy_process_group()
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    backends = None
    if backend_override is not None:
        names = mesh_dim_names or ()
        backends = [
            backend_override.get(i, backend_override.get(names[i] if i < len(names) else i))
            for i in range(len(mesh_shape))
        ]
    ranks = np.arange(int(np.prod(mesh_shape)), dtype=np.int32).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=backends)


__dir__ = make_module_dir(globals())
