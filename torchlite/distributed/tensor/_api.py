"""DTensor, the distributed tensor class, and functions that create or distribute DTensors."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._aten.torch_dispatch import _table_without_data
from torchlite._dispatch import call
from torchlite._dispatch.meta_backend import MetaArray

from ..device_mesh import DeviceMesh, _mesh_resources
from . import _sharding_rules
from ._autograd_function import run_function
from ._collective_utils import mesh_broadcast
from ._dispatch import run_record
from ._dtensor_factory import ARRIVALS, FACTORY, replicate_tensor
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._redistribute import partial_gradient, redistribute_local_tensor, sum_gradients
from ._utils import compute_global_tensor_info, compute_local_shape
from .placement_types import Partial, Placement, Replicate, Shard, concat_ranges

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]

_new = object.__new__
_DATA, _TABLE = torch.Tensor.__dict__["_tl_array"], torch.Tensor.__dict__["_tl_kernels"]


class DTensor(torch.Tensor):
    """Tensor that is distributed over a mesh of processes.

    Shape, strides and dtype are those of the full tensor; `to_local` returns this process's part. Ops on DTensors
    return
    DTensors, and so does backward. Create one with `distribute_tensor`, `DTensor.from_local`, or functions such as
    `torch.distributed.tensor.zeros`.

    Args:
        local_tensor: This process's part.
        spec: The mesh, the placements and the global shape.
        requires_grad: Whether the tensor requires grad.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.tensor import DTensor, Shard, distribute_tensor
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> x = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)])
        >>> (x * 2).sum().full_tensor()
        tensor(12.)
        >>> dist.destroy_process_group()
    """

    __slots__ = ()
    _takes_records = True
    _wraps = True
    _is_copy = False  # whether it would be a view of another DTensor, but its elements had to be gathered
    _local_tensor: Any
    _tl_array: Any
    _tl_kernels: Any
    _spec: DTensorSpec

    def __new__(cls, local_tensor: torch.Tensor, spec: DTensorSpec, *, requires_grad: bool) -> Any:
        made = wrap_local(local_tensor.detach() if local_tensor.requires_grad else local_tensor, spec, cls)
        return made.requires_grad_() if requires_grad else made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run ops by their ATen names, for modes: each is dispatched as its record."""
        return func(*args, **(kwargs or {}))

    _run_record = staticmethod(run_record)
    _run_function = staticmethod(run_function)

    # Its history is that of its part.

    @property
    def _tl_node(self) -> Any:
        return self._local_tensor._tl_node

    @_tl_node.setter
    def _tl_node(self, value: Any) -> None:
        self._local_tensor._tl_node = value

    @property
    def _tl_meta(self) -> Any:
        return self._local_tensor._tl_meta

    @_tl_meta.setter
    def _tl_meta(self, value: Any) -> None:
        self._local_tensor._tl_meta = value

    @property
    def _autograd_representative(self) -> torch.Tensor:
        """Return the tensor that represents this one in the autograd graph."""
        return self._local_tensor

    def _gradient_to_local(self, gradient: Any) -> Any:
        """Return a gradient of this tensor as that of its local tensor."""
        if gradient is None:
            return None
        if not isinstance(gradient, DTensor):
            gradient = replicate_tensor(gradient, self._spec.mesh)
        if gradient.shape != self.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output has a shape of {gradient.shape} and output has a shape of "
                f"{self.shape}."
            )
        spec = gradient._spec
        placements = gradient_placements(self.placements)
        part = redistribute_local_tensor(gradient._local_tensor, spec.shape, spec.mesh, spec.placements, placements)
        for number, placement in enumerate(self.placements):
            if placement.is_partial():
                part = sum_gradients(part, spec.mesh.get_group(number))
        return part

    def _backward_root(self, gradient: Any) -> tuple[torch.Tensor, Any]:
        """Return the root of backward in the graph, and its gradient."""
        if gradient is not None:
            return self._local_tensor, self._gradient_to_local(gradient)
        if self.numel() == 1 and any(p.is_shard() or p.is_partial() and p != Partial() for p in self.placements):
            whole = [p if p == Partial() else Replicate() for p in self.placements]
            return redistribute_local_tensor(
                self._local_tensor, self.shape, self._spec.mesh, self.placements, whole
            ), None
        return self._local_tensor, None

    def _gradient_from_local(self, gradient: Any) -> Any:
        """Return the gradient of this tensor from that of its local tensor."""
        if gradient is None:
            return None
        spec = self._spec
        for number, placement in enumerate(spec.placements):
            if placement.is_partial():
                gradient = partial_gradient(gradient, spec.mesh.get_group(number))
        meta = TensorMeta(spec.shape, spec.stride, gradient.dtype)
        return wrap_local(gradient, DTensorSpec(spec.mesh, gradient_placements(spec.placements), meta))

    @property
    def grad(self) -> Any:  # type: ignore[override]
        """Gradient, a DTensor."""
        part = self._local_tensor.grad
        if part is None:
            return None
        known = self.__dict__.get("_gradient")
        if known is None or known._local_tensor is not part:
            known = self.__dict__["_gradient"] = self._gradient_from_local(part)
        return known

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is None:
            self._local_tensor.grad = None
            self.__dict__.pop("_gradient", None)
            return
        if not isinstance(value, DTensor):
            raise TypeError(
                f"assigned grad expected to be a DTensor or None but got grad of type {type(value).__name__}"
            )
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        part = self._gradient_to_local(value)
        self._local_tensor.grad = part
        if part is value._local_tensor:
            self.__dict__["_gradient"] = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    _grad = grad

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
    ) -> Any:
        """Adds the gradients to the leaves; see `torch.autograd.backward`.

        Args:
            gradient: As for `torch.autograd.backward`.
            retain_graph: As for `torch.autograd.backward`.
            create_graph: As for `torch.autograd.backward`.
            inputs: As for `torch.autograd.backward`.
        """
        torch.autograd.backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)

    def detach(self) -> Any:
        """Return the same tensor without history."""
        return wrap_local(self._local_tensor.detach(), self._spec)._copy_is_copy_mark(self)

    def detach_(self) -> Any:
        """Drop the history in place."""
        self._local_tensor.detach_()
        return self

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The same tensor without history, whose writes are not counted."""
        return wrap_local(self._local_tensor.data, self._spec)._copy_is_copy_mark(self)

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, DTensor):
            raise TypeError(f"Variable data has to be a DTensor, but got {type(value).__name__}")
        self._local_tensor.data = value._local_tensor
        _DATA.__set__(self, value._tl_array)
        _TABLE.__set__(self, value._tl_kernels)
        call.set_dtype(self, value.dtype)
        self._spec = value._spec

    def _set_items(self, index: Any, value: Any) -> None:
        """Assign `self[index] = value` on replicated tensors."""
        items = [i.full_tensor() if isinstance(i, DTensor) else i for i in index]
        whole = self.full_tensor().clone()
        whole[tuple(items)] = value.full_tensor() if isinstance(value, DTensor) else value
        self.copy_(replicate_tensor(whole, self.device_mesh))

    def _replace_local_tensor(self, other: Any) -> Any:
        """Replace this object's local tensor and spec by another's."""
        _DATA.__set__(self, other._tl_array)
        _TABLE.__set__(self, other._tl_kernels)
        call.set_dtype(self, other.dtype)
        self._local_tensor, self._spec = other._local_tensor, other._spec
        return self._copy_is_copy_mark(other)

    def _copy_is_copy_mark(self, source: Any) -> Any:
        if source._is_copy:
            self._is_copy = True
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets whether a leaf requires grad, and returns the tensor.

        Args:
            requires_grad: Whether it does. Default: ``True``.
        """
        self._local_tensor.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Retain the gradient of a non-leaf in `.grad`."""
        self._local_tensor.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        """Registers a hook on the tensor's gradient.

        Args:
            hook: Called as ``hook(grad)`` with a DTensor; a result replaces the gradient.

        Returns:
            A handle with ``remove()``.
        """

        def call_hook_on_dtensor(gradient: torch.Tensor | None) -> Any:
            answer = hook(None if gradient is None else self._gradient_from_local(gradient))
            return None if answer is None else self._gradient_to_local(answer)

        return self._local_tensor.register_hook(call_hook_on_dtensor)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Registers a hook that runs after a gradient was added to this leaf.

        Args:
            hook: Called as ``hook(tensor)``.

        Returns:
            A handle with ``remove()``.
        """
        return self._local_tensor.register_post_accumulate_grad_hook(lambda part: hook(self))

    # Attributes.

    @property
    def device_mesh(self) -> DeviceMesh:
        """Mesh of the processes."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Placement along each dimension of the mesh."""
        return self._spec.placements

    def is_distributed(self) -> bool:
        """False, as in PyTorch."""
        return False

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        local = self._local_tensor.detach()
        shown = local.item() if not local.ndim else local
        return f"DTensor(local_tensor={shown!r}, device_mesh={self._spec.mesh}, placements={self._spec.placements})"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if not spec else format(self.item(), spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        attributes = {name: value for name, value in self.__dict__.items() if name not in _OWN_ATTRIBUTES}
        return _rebuilt, (self._local_tensor.detach(), self._spec, self.requires_grad, attributes)

    def __deepcopy__(self, memo: Any) -> Any:
        import copy

        if id(self) in memo:
            return memo[id(self)]
        made = wrap_local(copy.deepcopy(self._local_tensor, memo), self._spec)
        memo[id(self)] = made
        rest = {name: value for name, value in self.__dict__.items() if name not in _OWN_ATTRIBUTES}
        made.__dict__.update(copy.deepcopy(rest, memo))
        return made

    def __copy__(self) -> Any:
        import copy

        made = wrap_local(copy.copy(self._local_tensor), self._spec)
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in _OWN_ATTRIBUTES})
        return made

    def as_subclass(self, cls: Any) -> Any:
        """Return the same tensor as an instance of a subclass of DTensor."""
        if not issubclass(cls, DTensor):
            raise TypeError(f"a DTensor cannot be a {cls.__name__}: `full_tensor()` is a plain tensor")
        return wrap_local(self._local_tensor, self._spec, cls)

    def __tensor_flatten__(self) -> Any:
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors: Any, flatten_spec: Any, outer_size: Any, outer_stride: Any) -> Any:
        spec, requires_grad = flatten_spec
        meta = TensorMeta(torch.Size(outer_size), tuple(outer_stride), spec.tensor_meta.dtype)
        local = inner_tensors["_local_tensor"]
        return DTensor(local, DTensorSpec(spec.mesh, spec.placements, meta), requires_grad=requires_grad)

    def __coerce_tangent_metadata__(self) -> Any:
        return self.redistribute(placements=gradient_placements(self.placements))

    def _raise_if_contains_partial_placements(self) -> None:
        for placement in self._spec.placements:
            if placement.is_partial():
                raise ValueError(
                    "Any checkpointing related operations are not supported for DTensor with partial placements!"
                )

    # Elements.

    def item(self) -> Any:
        """Return the only element, by a collective."""
        return self.full_tensor().item()

    def __bool__(self) -> bool:
        return bool(self.full_tensor())

    def __float__(self) -> float:
        return float(self.full_tensor())

    def __int__(self) -> int:
        return int(self.full_tensor())

    def __index__(self) -> int:
        return self.full_tensor().__index__()

    def __complex__(self) -> complex:
        return complex(self.full_tensor())

    def __contains__(self, element: Any) -> bool:
        return bool((self == element).any())

    def tolist(self) -> Any:
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got DTensor")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def data_ptr(self) -> int:
        """Return 0: the tensor has no memory, its local tensor has."""
        return 0

    const_data_ptr = _address = data_ptr

    def untyped_storage(self) -> Any:
        """Return the storage of its local tensor."""
        return self._local_tensor.untyped_storage()

    def is_shared(self) -> bool:
        return self._local_tensor.is_shared()

    def share_memory_(self) -> Any:
        self._local_tensor.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        return self._local_tensor.is_pinned()

    def pin_memory(self, device: Any = None) -> Any:
        return wrap_local(self._local_tensor.pin_memory(), self._spec)

    # From parts, to parts, and otherwise over the mesh.

    @staticmethod
    def from_local(
        local_tensor: torch.Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: torch.Size | None = None,
        stride: tuple[int, ...] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """Creates a DTensor from this process's part, differentiably.

        Args:
            local_tensor: The part.
            device_mesh: The mesh. Default: the mesh of the enclosing ``with`` block.
            placements: The placements of the parts. Default: `Replicate`.
            run_check: Whether the first process sends its replicated parts to the others. Default: ``False``.
            shape: The global shape; needed if the parts differ in size. Default: all parts have this one's size.
            stride: The global strides; goes with ``shape``.
            grad_placements: The placements of the gradient. Default: ``placements``, with `Replicate` for `Partial`.

        Returns:
            A `DTensor`.

        Raises:
            RuntimeError: ``local_tensor`` is a DTensor.
        """
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("the local_tensor argument only accepts torch.Tensor but got DTensor type.")
        places = _normalize_placements(placements, mesh, local_tensor.ndim)
        if local_tensor.device.type != mesh.device_type and not local_tensor.is_meta:
            local_tensor = local_tensor.to(mesh.device_type)
        local = local_tensor.view_as(local_tensor)
        if mesh.get_coordinate() is None:
            local = local_tensor.new_empty(0, requires_grad=local_tensor.requires_grad)
        elif run_check:
            local = local.contiguous()
            for number, placement in enumerate(places):
                if placement.is_replicate():
                    with torch.no_grad():
                        mesh_broadcast(local.detach(), mesh, number)
        if (shape is None) != (stride is None):
            raise RuntimeError("Please pass both shape and stride at the same time.")
        if shape is None:
            shape_, stride_ = compute_global_tensor_info(local_tensor, mesh, places)
            whole = TensorMeta(torch.Size(shape_), tuple(stride_), local_tensor.dtype)
        else:
            assert stride is not None
            whole = TensorMeta(torch.Size(shape), tuple(stride), local_tensor.dtype)
        if grad_placements is not None:
            grad_places = _normalize_placements(grad_placements, mesh, local_tensor.ndim)
            local = _SetGradPlacements.apply(local, whole.shape, mesh, gradient_placements(places), grad_places)
        return wrap_local(local, DTensorSpec(mesh, places, whole))

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> torch.Tensor:
        """Returns this process's part, differentiably.

        Args:
            grad_placements: The placements of its gradient. Default: the tensor's, with `Replicate` for `Partial`.
        """
        local = self._local_tensor
        if not torch.is_grad_enabled() or not local.requires_grad:
            return local.view_as(local) if local.requires_grad else local
        local = local.view_as(local)
        if grad_placements is not None:
            given = _normalize_placements(grad_placements, self.device_mesh, self.ndim)
            own = gradient_placements(self.placements)
            local = _SetGradPlacements.apply(local, self.shape, self.device_mesh, given, own)
        return local

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: torch.dtype | None = None,
        backward_dtype: torch.dtype | None = None,
    ) -> DTensor:
        """Returns the tensor with other placements, differentiably.

        Args:
            device_mesh: The tensor's mesh; another one is not supported.
            placements: The placements.
            async_op: Whether the last messages travel while the program goes on. The first use of the result waits for
                them.
            forward_dtype: Dtype of the communication in forward. Default: the tensor's.
            backward_dtype: Dtype of the communication in backward. Default: the gradient's.

        Returns:
            A `DTensor`.

        Raises:
            RuntimeError: ``placements`` is missing, or has a `Partial` that the tensor does not have.
            NotImplementedError: ``device_mesh`` is another mesh.
        """
        mesh = device_mesh or self._spec.mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if mesh != self._spec.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        target = _normalize_placements(placements, mesh, self.ndim)
        for now, then in zip(self.placements, target, strict=True):
            if then.is_partial() and now != then:
                raise RuntimeError(
                    f"Can not redistribute from {now} to {then}, redistributing to Partial is for internal use only!"
                )
        local = self._local_tensor
        if backward_dtype is not None and backward_dtype is not local.dtype:
            local = _CastGradient.apply(local, backward_dtype)
        dtype = forward_dtype or self.dtype
        later: list | None = [] if async_op else None
        local = redistribute_local_tensor(local.to(dtype), self.shape, mesh, self.placements, target, later)
        if local is self._local_tensor:
            local = local.view_as(local)
        spec = DTensorSpec(mesh, target, TensorMeta(self.shape, self._spec.stride, local.dtype))
        made = wrap_local(local, spec)
        return ARRIVALS[0](made, later) if later else made

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> torch.Tensor:
        """Returns the full tensor, the same on all processes, differentiably.

        Args:
            grad_placements: The placements of its gradient. Default: `Replicate`.
        """
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)


_OWN_ATTRIBUTES = ("_local_tensor", "_arrival", "_spec", "_gradient", "_is_copy")


class _SetGradPlacements(torch.autograd.Function):
    """Identity on the local tensor whose gradient has given placements."""

    @staticmethod
    def forward(ctx: Any, local: Any, shape: Any, mesh: Any, given: Any, own: Any) -> Any:
        ctx.rest = shape, mesh, given, own
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return redistribute_local_tensor(grad, *ctx.rest), None, None, None, None


class _CastGradient(torch.autograd.Function):
    """Identity on the local tensor whose gradient is cast to another dtype."""

    @staticmethod
    def forward(ctx: Any, local: Any, dtype: Any) -> Any:
        ctx.dtype = local.dtype
        return local.to(dtype)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.to(ctx.dtype), None


def gradient_placements(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """Return the placements of a gradient: the tensor's, with Replicate for Partial."""
    return tuple(Replicate() if p.is_partial() else p for p in placements)


def wrap_local(local: torch.Tensor, spec: DTensorSpec, cls: Any = DTensor) -> Any:
    """Return a DTensor of a local tensor, with its history, and a spec with its `tensor_meta`."""
    whole = spec.tensor_meta
    assert whole is not None
    out = _new(cls)
    dtype: Any = whole.dtype
    _DATA.__set__(out, MetaArray(whole.shape, dtype, whole.stride))
    _TABLE.__set__(out, _table_without_data(local.device))
    call.set_dtype(out, whole.dtype)
    out._local_tensor, out._spec = local, spec
    return out


def _rebuilt(local: torch.Tensor, spec: DTensorSpec, requires_grad: bool, attributes: dict[str, Any]) -> DTensor:
    """Reconstruct a DTensor from a pickle."""
    made = DTensor(local, spec, requires_grad=requires_grad)
    made.__dict__.update(attributes)
    return made


def _normalize_placements(placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int) -> tuple[Placement, ...]:
    """Return placements for all dimensions of a mesh, replicated by default, with non-negative dimensions."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    made = []
    for placement in placements:
        if isinstance(placement, Shard) and placement.dim < 0:
            placement = placement.at(placement.dim + ndim)
        made.append(placement)
    if len(made) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(made)}, and "
            f"device_mesh.ndim: {mesh.ndim}."
        )
    return tuple(made)


def distribute_tensor(
    tensor: torch.Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Distributes a tensor that each process of a mesh has; the result is a leaf.

    Args:
        tensor: The full tensor, a leaf.
        device_mesh: The mesh. Default: the mesh of the enclosing ``with`` block.
        placements: A placement for each dimension of the mesh. Default: `Replicate`.
        src_data_rank: Coordinate of the process whose data counts, in each dimension. ``None``: each process takes its
            part of its own tensor, without communication. Default: 0.

    Returns:
        A `DTensor`.

    Raises:
        RuntimeError: The tensor is not a leaf.
        ValueError: The tensor is a DTensor of another mesh or other placements, or the number of placements is wrong.
        AssertionError: A `Shard` names a dimension that the tensor does not have.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Shard, distribute_tensor
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> distribute_tensor(torch.arange(4.0), mesh, [Shard(0)]).placements
        (Shard(dim=0),)
        >>> dist.destroy_process_group()
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != _normalize_placements(placements, mesh, tensor.ndim):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements "
                f"{placements}. do you want to call `redistribute` instead?"
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    places = _normalize_placements(placements, mesh, tensor.ndim)
    for placement in places:
        if isinstance(placement, Shard) and placement.dim >= tensor.ndim:
            raise AssertionError(f"Sharding dim {placement.dim} greater than tensor ndim {tensor.ndim}")
    if tensor.device.type != mesh.device_type and not tensor.is_meta:
        tensor = tensor.to(mesh.device_type)
    requires_grad = tensor.requires_grad
    local = tensor.detach()
    meta = TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)
    if mesh.get_coordinate() is None:
        local = local.new_empty(0)
    elif not local.is_meta:
        local = _distribute_local(local, mesh, places, src_data_rank)
    else:
        local = local.new_empty(compute_local_shape(tensor.shape, mesh, places))
    dtensor = wrap_local(local, DTensorSpec(mesh, places, meta))
    if requires_grad:
        dtensor.requires_grad_()
    return dtensor


def _distribute_local(
    local: torch.Tensor, mesh: DeviceMesh, places: Sequence[Placement], source: int | None
) -> torch.Tensor:
    """Return this process's shard of a full tensor from the source process of each mesh dimension."""
    place = mesh.get_coordinate()
    assert place is not None
    fresh = False
    for number, placement in enumerate(places):
        count = mesh.size(number)
        if source is not None and count > 1:
            local = local.clone(memory_format=torch.contiguous_format)
            mesh_broadcast(local, mesh, number, group_src=source)
            fresh = True
        if isinstance(placement, Shard):
            local = concat_ranges(
                local, placement.dim, placement.pieces(local.shape[placement.dim], count)[place[number]]
            ).clone(memory_format=torch.contiguous_format)
            fresh = True
        elif isinstance(placement, Partial) and placement.reduce_op == "sum":
            local, fresh = local / count if local.is_floating_point() else _local_or_zeros(local, place[number]), True
    return local if fresh or source is None else local.clone()


def _local_or_zeros(local: torch.Tensor, place: int) -> torch.Tensor:
    return local.clone() if place == 0 else torch.zeros_like(local)


def distribute_module(
    module: torch.nn.Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, torch.nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[torch.nn.Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[torch.nn.Module, Any, DeviceMesh], Any] | None = None,
) -> torch.nn.Module:
    """Replaces the parameters and buffers of a module by DTensors, in place.

    Args:
        module: The module.
        device_mesh: The mesh. Default: the mesh of the enclosing ``with`` block.
        partition_fn: Called as ``partition_fn(name, submodule, mesh)``; replaces parameters by DTensors. Those that it
            leaves are replicated. Default: ``None``.
        input_fn: Called as ``input_fn(module, inputs, mesh)`` before forward. Default: ``None``.
        output_fn: Called as ``output_fn(module, outputs, mesh)`` after forward. Default: ``None``.

    Returns:
        The module.

    Raises:
        RuntimeError: The module is distributed already.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import distribute_module
        >>> layer = distribute_module(torch.nn.Linear(2, 1), dist.init_device_mesh("cpu", (1,)))
        >>> layer.weight.placements
        (Replicate(),)
        >>> dist.destroy_process_group()
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on this module!"
        )

    def replicate(part: torch.nn.Module) -> None:
        whole = [Replicate()] * mesh.ndim
        for name, parameter in part._parameters.items():
            if parameter is not None and not isinstance(parameter, DTensor):
                made = distribute_tensor(parameter.data, mesh, whole)
                part.register_parameter(name, torch.nn.Parameter(made, parameter.requires_grad))
        for name, buffer in part._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[name] = distribute_tensor(buffer, mesh, whole)

    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        replicate(part)
    if input_fn is not None:
        if len(inspect.signature(input_fn).parameters) == 2:
            _warn_of_two("input_fn", "(inputs, device_mesh)", "(module, inputs, device_mesh)")
            module.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, mesh))  # type: ignore[call-arg, arg-type]
        else:
            module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        if len(inspect.signature(output_fn).parameters) == 2:
            _warn_of_two("output_fn", "(outputs, device_mesh)", "(module, outputs, device_mesh)")
            module.register_forward_hook(lambda mod, inputs, outputs: output_fn(outputs, mesh))  # type: ignore[call-arg, arg-type]
        else:
            module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    module._distribute_module_applied = True  # type: ignore[assignment]
    return module


def _warn_of_two(name: str, before: str, after: str) -> None:
    warnings.warn(
        f"Deprecating {name} that takes two arguments {before}, please use {name} that takes in {after} instead!",
        FutureWarning,
        stacklevel=3,
    )


FACTORY[:] = [wrap_local]
_ = _sharding_rules
