"""`FSDPParam`: a sharded parameter, its all-gather, and the reduce-scatter of its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite._tensor.releasable_memory import releasable_zeros, release_memory
from torchlite.distributed._local_shards import copy_local_part, distribute_like
from torchlite.distributed.device_mesh import DeviceMesh
from torchlite.distributed.tensor import DTensor, Shard
from torchlite.distributed.tensor.placement_types import _StridedShard
from torchlite.utils import swap_tensors

from ._fully_shard_policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._mesh_info import MeshInfo, check_shard_placement, chunk_range


class UnshardedStorage:
    """Memory of an unsharded parameter, allocated between all-gather and reshard.

    On the host the address range stays while the pages are freed, so that saved tensors of a graph use no memory; on
    devices the memory stays.
    """

    def __init__(self, count: int, dtype: torch.dtype, device: torch.device) -> None:
        self._raw: Any = None
        # Two tensors over the memory, each with its own version counter: a gather writes to the one and is no change of
        # the other, which graphs save.
        if device.type == "cpu":
            self._raw = releasable_zeros(count * dtype.itemsize)
            self.target, self.seen = (torch.from_numpy(self._raw).view(dtype) for _ in range(2))
        else:
            self.target = torch.empty(count, dtype=dtype, device=device)
            self.seen = self.target.data

    def release(self) -> None:
        """Free the values."""
        if self._raw is not None:
            release_memory(self._raw)


class FSDPParam:
    """A parameter in `places` ((module, name), several if it is tied), sharded along a dimension over the ranks.

    `sharded` is the parameter of modules and optimizers between passes: a DTensor, or with `plain` a Tensor of this
    rank's elements. That is flat if there are several shards.
    """

    def __init__(
        self,
        parameter: Any,
        places: list[tuple[nn.Module, str]],
        lanes: MeshInfo,
        shard: Any,
        device: torch.device,
        precision: MixedPrecisionPolicy,
        offload: OffloadPolicy,
        same: bool,
        plain: bool,
    ) -> None:
        self.places, self.lanes, self.device, self.offload = places, lanes, device, offload
        self.precision, self.plain = precision, plain
        self.name = ""  # in the root, once that is known
        self._unsharded: UnshardedStorage | None = None
        self._parameter: Any = None  # the unsharded parameter
        self._gathered: Any = None  # where the dimension is not the first: parts of all ranks
        self._part: Any = None  # shard over a subset of ranks, between forward and backward
        self.sharded = self._shard_parameter(parameter, check_shard_placement(shard))
        if same:
            swap_tensors(parameter, self.sharded)
            self.sharded = parameter
        self.to_sharded()

    def _shard_parameter(self, parameter: Any, shard: Shard) -> Any:
        """Shard a parameter that each rank has; return this rank's shard."""
        whole = parameter.detach()
        self.tensor_parallel = whole if isinstance(whole, DTensor) else None
        placements, mesh = self.lanes.placements(shard), self.lanes.mesh
        if self.tensor_parallel is not None:
            mesh = DeviceMesh._concatenate([self.lanes.mesh, whole.device_mesh])
            cut = [p for p in whole.placements if isinstance(p, Shard) and p.dim == shard.dim]
            if cut:
                parts = whole.device_mesh.size()
                placements = self.lanes.placements(_StridedShard(shard.dim, split_factor=parts))
            placements = (*placements, *whole.placements)
        local = whole.to_local() if self.tensor_parallel is not None else whole
        self.size, self.strides = whole.size(), whole.stride()
        if local.ndim == 0:
            raise ValueError("fully_shard doesn't support scalar parameters. Change to a 1D tensor with numel 1.")
        self.dim = shard.dim % local.ndim
        self.local_size = local.size()
        self.rows = -(-self.local_size[self.dim] // self.lanes.size)  # of a rank's part, but for the last ones
        begin, end = chunk_range(self.local_size[self.dim], self.lanes.size, self.lanes.rank)
        part = local.narrow(self.dim, begin, end - begin)
        if self.dim and self.local_size[self.dim] % self.lanes.size:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {self.dim}: {self.local_size} (world size: "
                f"{self.lanes.size})"
            )
        where = torch.device("cpu") if isinstance(self.offload, CPUOffloadPolicy) else self.device
        mine = part.clone(memory_format=torch.contiguous_format)
        mine = mine if mine.is_meta else mine.to(where)
        self.mesh, self.placements = mesh, placements
        self.shard_shape = mine.shape
        held = self.held_form(mine) if self.plain else self.as_dtensor(mine)
        sharded: Any = nn.Parameter(held, requires_grad=parameter.requires_grad)
        for name, value in vars(parameter).items() if hasattr(parameter, "__dict__") else ():
            if not name.startswith("_"):
                setattr(sharded, name, value)
        if self.plain:
            sharded._fsdp_flattened = True  # PyTorch's mark of a parameter of FullyShardedDataParallel
        return sharded

    def held_form(self, local: torch.Tensor) -> torch.Tensor:
        """Return a local shard in the form of a plain `sharded`."""
        return local if self.lanes.size == 1 else local.reshape(-1)

    def as_dtensor(self, local: torch.Tensor) -> Any:
        """Return a local shard, or a tensor in the form of a plain `sharded`, as a DTensor over its memory."""
        return DTensor.from_local(
            local.view(self.shard_shape), self.mesh, self.placements, run_check=False, shape=self.size,
            stride=self.strides,
        )  # fmt: skip

    def held_part(self, value: torch.Tensor) -> torch.Tensor:
        """Return this rank's part of a full tensor or DTensor in the form of a plain `sharded`."""
        part: Any = value if isinstance(value, DTensor) else distribute_like(value, self.dtensor)
        return self.held_form(part.redistribute(self.mesh, self.placements).to_local())

    @property
    def dtensor(self) -> Any:
        """The shard as a DTensor."""
        return self.as_dtensor(self.sharded.detach()) if self.plain else self.sharded

    @property
    def local(self) -> torch.Tensor:
        """This rank's shard."""
        return self.sharded.detach().view(self.shard_shape) if self.plain else self.sharded.detach().to_local()

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the unsharded parameter."""
        return self.precision.param_dtype or self.sharded.dtype

    # -- gathering

    @property
    def _padded_shard_shape(self) -> tuple[int, ...]:
        """Return the shape of a padded shard."""
        return (*self.local_size[: self.dim], self.rows, *self.local_size[self.dim + 1 :])

    def _padded_local_shard(self) -> torch.Tensor:
        """Return the shard to send: in the unsharded dtype, and padded."""
        local = self.local.to(self.device, self.dtype)
        if local.shape[self.dim] == self.rows:
            return local.contiguous()
        padded = torch.zeros(self._padded_shard_shape, dtype=local.dtype, device=local.device)
        padded.narrow(self.dim, 0, local.shape[self.dim]).copy_(local)
        return padded

    def gather(self, few: Any = None) -> Any:
        """Start the all-gather over all ranks, or over a subset with larger shards."""
        part = self._padded_local_shard() if few is None else self._part
        count = part.numel() * (self.lanes.size if few is None else few.size())
        if self._unsharded is None or self._unsharded.target.dtype is not self.dtype:
            self._unsharded = UnshardedStorage(count, self.dtype, self.device)
            self._parameter = None
        target = self._unsharded.target
        if self.dim and few is None:
            target = self._gathered = torch.empty(count, dtype=self.dtype, device=self.device)
        return dist.all_gather_into_tensor(
            target, part.view(-1), group=self.lanes.group if few is None else few, async_op=True
        )

    def finish_gather(self) -> None:
        """Finish the all-gather: the unsharded parameter replaces the shard."""
        assert self._unsharded is not None
        if self._gathered is not None:
            parts = self._gathered.view(self.lanes.size, *self._padded_shard_shape).unbind(0)
            torch.cat(parts, self.dim, out=self._unsharded.target.view(self.local_size))
            self._gathered = None
        if self._parameter is None:
            self._parameter = self._make_unsharded_parameter()
        self._parameter.requires_grad_(self.sharded.requires_grad)
        self._part = None
        self._set_on_modules(self._parameter)

    def _make_unsharded_parameter(self) -> Any:
        """Return the unsharded parameter. Padding rows follow it in memory."""
        assert self._unsharded is not None
        rows = self._unsharded.seen
        seen = rows[: torch.Size(self.local_size).numel()].view(self.local_size)
        if self.tensor_parallel is not None:
            like = self.tensor_parallel
            seen = DTensor.from_local(
                seen, like.device_mesh, like.placements, run_check=False, shape=self.size, stride=self.strides
            )
        made = nn.Parameter(seen, requires_grad=self.sharded.requires_grad)
        # Gradients of leaves without a hook are reduced after backward, all of them unsharded until then.
        with torch.enable_grad():
            made.requires_grad_(True).register_post_accumulate_grad_hook(lambda parameter: None)
        return made

    def to_sharded(self) -> None:
        """Replace the unsharded parameter by the shard, and free its memory."""
        self._set_on_modules(self.sharded)
        if self._unsharded is not None:
            self._unsharded.release()

    def keep_part(self, few: Any) -> None:
        """Before resharding, keep a larger shard over a subset of ranks."""
        assert self._unsharded is not None
        self._part = self._unsharded.target.view(few.size(), -1)[few.rank()].clone()

    def _set_on_modules(self, parameter: Any) -> None:
        for module, name in self.places:
            module._parameters[name] = parameter

    def renew(self) -> None:
        """Update the shard from the module: `to_empty`, `to` and `load_state_dict(assign=True)` replace it."""
        module, name = self.places[0]
        found = module._parameters[name]
        if found is not self.sharded and found is not self._parameter:
            self.sharded = found
            self._set_on_modules(found)
        if self.local.is_meta:
            raise RuntimeError(
                "FSDP parameters should be materialized from meta device before training, but the following were "
                f"still on meta device: {[self.name or name]}\nFor example, call module.to_empty(device) to "
                "materialize to device and call module.reset_parameters() on each module to initialize values."
            )

    def show_gradient(self) -> None:
        """Set the unsharded parameter's gradient to the unsharded gradient."""
        if self.sharded.grad is not None:
            self._parameter.grad = self._dtensor_gradient().full_tensor().to(self.dtype)

    def _dtensor_gradient(self) -> Any:
        return self.as_dtensor(self.sharded.grad) if self.plain else self.sharded.grad

    def write_back(self, values: bool, gradients: bool) -> None:
        """Copy changes of the unsharded parameter, and of its gradient, to the shard."""
        if values:
            copy_local_part(self.dtensor, self._parameter.detach())
        if gradients and self._parameter.grad is not None:
            if values:
                copy_local_part(self._dtensor_gradient(), self._parameter.grad)
            self._parameter.grad = None

    # -- gradients

    def take_gradient(self) -> Any:
        """Return the unsharded gradient, and remove it from the parameter; None if there is none."""
        if self._parameter is None or self._parameter.grad is None:
            return None
        grad, self._parameter.grad = self._parameter.grad, None
        if self.tensor_parallel is not None:
            like = self.tensor_parallel
            if grad.placements != like.placements:
                grad = grad.redistribute(like.device_mesh, like.placements)
            grad = grad.to_local()
        return grad

    @property
    def has_gradient(self) -> bool:
        """True if an unsharded gradient is to be reduced."""
        return self._parameter is not None and self._parameter.grad is not None

    def reduce(
        self, grad: torch.Tensor, dtype: torch.dtype, hook: Callable[..., Any] | None = None
    ) -> tuple[torch.Tensor, Any]:
        """Start the reduction of a gradient; return this rank's result, and the work. A hook has no work."""
        grad = grad.to(dtype)
        if self.dim:
            sent = torch.cat(grad.chunk(self.lanes.size, self.dim)).contiguous()
        elif self.local_size[0] == self.rows * self.lanes.size:
            sent = grad.contiguous()
        else:
            sent = torch.zeros(self.rows * self.lanes.size, *self.local_size[1:], dtype=dtype, device=grad.device)
            sent[: self.local_size[0]].copy_(grad)
        out = torch.empty(self._padded_shard_shape, dtype=dtype, device=grad.device)
        if hook is not None:
            return self._run_comm_hook(hook, sent.view(-1), out.view(-1)).view(self._padded_shard_shape), None
        work = dist.reduce_scatter_tensor(out.view(-1), sent.view(-1), group=self.lanes.group, async_op=True)
        return out, work

    def _run_comm_hook(self, hook: Callable[..., Any], grad: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        """Run a hook on a flat gradient: in place if there are only replicas, else into a shard."""
        if self.lanes.copies is not None:
            hook(grad)
            return grad
        hook(grad, part)
        return part

    def add_gradient(self, part: torch.Tensor) -> None:
        """Accumulate this rank's shard of the gradient."""
        shard = self.sharded
        found = part.narrow(self.dim, 0, self.shard_shape[self.dim])
        if found.numel() < part.numel():
            found = found.clone()
        found = found.to(self.local.device, shard.dtype)
        if shard.grad is not None:
            if self.plain:
                shard.grad.add_(self.held_form(found))
            else:
                shard.grad._local_tensor.add_(found)
        else:
            shard.grad = self.held_form(found) if self.plain else self.as_dtensor(found)
