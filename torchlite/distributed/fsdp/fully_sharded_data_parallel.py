"""FullyShardedDataParallel: wrapper class over `fully_shard`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed.device_mesh import DeviceMesh

from ._fsdp_state import FSDPState, plain_shards, state_of
from ._full_params import clip_sharded_grad_norm, unshard_params
from ._fully_shard import apply_fully_shard
from ._fully_shard_policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._mesh_info import MeshInfo
from ._optim_state_dict import OptimStateDictMixin
from ._state_dict_types import PREFIX, StateDictTypeMixin, register_state_dict_hooks
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import CustomPolicy, ModuleWrapPolicy, _or_policy, _Policy, _post_order_apply, _recursive_wrap

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip

_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_KEEPS = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


class FullyShardedDataParallel(nn.Module, OptimStateDictMixin, StateDictTypeMixin):
    """Wraps a module and shards its parameters over the ranks of a group; `fully_shard` as a module.

    Create the optimizer afterwards. The parameters are separate tensors, not one flat tensor. Between passes each holds
    this rank's elements, flat if there are several shards. With ``use_orig_params`` they are the module's own objects,
    and the optimizer may be created before.

    Args:
        module: The module.
        process_group: The group; for the hybrid strategies a pair (shard, replicate). Default: the default group.
        sharding_strategy: A `ShardingStrategy`. Default: ``FULL_SHARD``.
        cpu_offload: Whether shards are in host memory. Default: no.
        auto_wrap_policy: Chooses the submodules to wrap; see `torch.distributed.fsdp.wrap`. Default: none.
        backward_prefetch: Has no effect: one group is gathered ahead.
        mixed_precision: The dtypes. Default: those of the parameters.
        ignored_modules: Modules that are not sharded. Default: none.
        param_init_fn: Initializes a module on the device "meta". Default: ``to_empty`` and ``reset_parameters``.
        device_id: The device to move the module to. Default: ``None``.
        sync_module_states: Whether rank 0 sends its parameters and buffers to the others. Default: ``False``.
        forward_prefetch: Has no effect: one group is gathered ahead.
        limit_all_gathers: Has no effect: one group is gathered ahead.
        use_orig_params: Whether the parameters keep their identity. Default: ``False``.
        ignored_states: Parameters or modules that are not sharded. Default: none.
        device_mesh: The mesh, in place of a group. Default: ``None``.

    Raises:
        ValueError: ``module`` is a `FullyShardedDataParallel`.

    Example:
        >>> from torchlite.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = FSDP(torch.nn.Linear(2, 1))
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> list(model.state_dict())
        ['weight', 'bias']
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: nn.Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable[..., Any] | ModuleWrapPolicy | CustomPolicy | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[nn.Module] | None = None,
        param_init_fn: Callable[[nn.Module], None] | None = None,
        device_id: int | torch.device | None = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        if isinstance(module, FullyShardedDataParallel):
            raise ValueError("FSDP cannot be applied to a module that is wrapped in FSDP already")
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        ignored, parameters = _get_ignored(ignored_modules, ignored_states)
        lanes = MeshInfo(_mesh_of_strategy(process_group, device_mesh, strategy))
        self.sharding_strategy, self.mixed_precision = strategy, mixed_precision or MixedPrecision()
        self.cpu_offload, self.backward_prefetch = cpu_offload or CPUOffload(), backward_prefetch
        self.process_group = lanes.group
        if auto_wrap_policy is not None:
            inner = {
                "process_group": process_group, "sharding_strategy": sharding_strategy, "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch, "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn, "device_id": device_id, "sync_module_states": sync_module_states,
                "forward_prefetch": forward_prefetch, "limit_all_gathers": limit_all_gathers,
                "use_orig_params": use_orig_params, "ignored_states": parameters, "device_mesh": lanes.mesh,
            }  # fmt: skip
            inner["process_group"] = None
            _auto_wrap(module, auto_wrap_policy, ignored, parameters, inner)
        _materialize_meta_module(module, param_init_fn, device_id)
        if sync_module_states:
            _sync_module_params_and_buffers(module, lanes, parameters)
        self._fsdp_wrapped_module = module
        low = self.mixed_precision
        policy = MixedPrecisionPolicy(
            low.param_dtype, low.reduce_dtype or low.param_dtype, None, low.cast_forward_inputs
        )
        offload = CPUOffloadPolicy() if self.cpu_offload.offload_params else OffloadPolicy()
        reshards = False if strategy in _KEEPS else None
        without = parameters | {p for one in ignored for p in one.parameters()}
        apply_fully_shard((self,), lanes, reshards, None, policy, offload, without, same=use_orig_params, plain=True)
        register_state_dict_hooks(self)

    @property
    def module(self) -> nn.Module:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: int) -> Any:
        return self.module.__getitem__(key)  # type: ignore[operator]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        low, state = self.mixed_precision, self._state()
        if state.is_root:
            if low.cast_root_forward_inputs and low.param_dtype is not None:
                args, kwargs = _cast_inputs((args, kwargs), low.param_dtype)
            for buffer in self.buffers() if low.buffer_dtype is not None else ():
                if buffer.is_floating_point():
                    buffer.data = buffer.to(low.buffer_dtype)
        return self._fsdp_wrapped_module(*args, **kwargs)

    def _state(self) -> FSDPState:
        state = state_of(self)
        assert state is not None
        return state

    # -- queries

    def check_is_root(self) -> bool:
        """True for the outermost wrapper, which the first forward or this call determines."""
        self._state().begin()
        return self._state().is_root

    @staticmethod
    def fsdp_modules(module: nn.Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Returns the wrappers in a module.

        Args:
            module: The module.
            root_only: Whether only the outermost ones count. Default: ``False``.
        """
        found = [one for one in module.modules() if isinstance(one, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {id(other) for one in found for other in one.modules() if other is not one}
        return [one for one in found if id(one) not in inner]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yields names and parameters; inside `summon_full_params` the names are those of the wrapped module.

        Args:
            args: As for `torch.nn.Module.named_parameters`.
            kwargs: As for `torch.nn.Module.named_parameters`.
        """
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield (name.replace(PREFIX, "") if self._state().summoned else name), parameter

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yields names and buffers; inside `summon_full_params` the names are those of the wrapped module.

        Args:
            args: As for `torch.nn.Module.named_buffers`.
            kwargs: As for `torch.nn.Module.named_buffers`.
        """
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield (name.replace(PREFIX, "") if self._state().summoned else name), buffer

    def apply(self, fn: Callable[[nn.Module], None]) -> FullyShardedDataParallel:
        """Calls a function with each module, with full parameters whose changes are kept.

        Args:
            fn: The function.

        Returns:
            The module.
        """
        if self._state().summoned:
            return super().apply(fn)  # type: ignore[return-value]
        with self.summon_full_params(self):
            return super().apply(fn)  # type: ignore[return-value]

    # -- parameters and gradients

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: nn.Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Gathers the parameters for a block.

        Args:
            module: The module.
            recurse: Whether inner wrappers are gathered too. Default: ``True``.
            writeback: Whether changes are kept. Default: ``True``.
            rank0_only: Whether other ranks stay sharded. Default: ``False``.
            offload_to_cpu: Whether the parameters are in host memory; not supported for a device. Default: ``False``.
            with_grads: Whether the gradients are gathered too. Default: ``False``.

        Raises:
            NotImplementedError: ``offload_to_cpu`` is set and parameters are on a device.
        """
        if offload_to_cpu and any(not p.is_cpu for p in module.parameters()):
            raise NotImplementedError("summon_full_params(): offload_to_cpu of parameters on a device")
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            wrappers = wrappers[:1]
        with unshard_params([one._state() for one in wrappers], writeback, rank0_only, with_grads):
            yield

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager in which backward accumulates gradients unsharded, for a later one to reduce."""
        groups = [one._state().group for one in self.fsdp_modules(self)]
        held = [(group, group.reduces, group.reduces_copies) for group in groups if group is not None]
        for group, _, _ in held:
            group.reduces = group.reduces_copies = False
        try:
            yield
        finally:
            for group, reduces, copies in held:
                group.reduces, group.reduces_copies = reduces, copies

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Scales the gradients so that their total norm is at most ``max_norm``.

        Args:
            max_norm: The greatest norm.
            norm_type: The order of the norm. Default: 2.

        Returns:
            The norm before.

        Raises:
            RuntimeError: The module is not the outermost one.
        """
        if not self.check_is_root():
            raise RuntimeError("`clip_grad_norm_()` should only be called on the root FSDP instance")
        return clip_sharded_grad_norm(self._state(), list(self.parameters()), float(max_norm), float(norm_type))

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Registers a function that reduces gradients, in place of the mean over the ranks.

        `torch.distributed.algorithms._comm_hooks.default_hooks` has some.

        Args:
            state: The function's first argument.
            hook: Called as ``hook(state, gradient, part)``; writes this rank's part of the flat, padded gradient. With
                ``NO_SHARD`` called as ``hook(state, gradient)`` for each parameter; writes the mean in place.

        Raises:
            AssertionError: The module is not the outermost one, a strategy is hybrid, or there is a hook.
            ValueError: ``hook`` is not callable.
        """
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        wrappers = self.fsdp_modules(self)
        if any(one.sharding_strategy in _HYBRID for one in wrappers):
            raise AssertionError("Communication hook is not supported for hybrid strategies")
        groups = [group for one in wrappers if (group := one._state().group) is not None]
        if any(group.comm_hook is not None for group in groups):
            raise AssertionError("A communication hook is already registered")
        if not callable(hook):
            raise ValueError(f"The communication hook must be callable but got {hook}")
        for group in groups:
            group.comm_hook = functools.partial(hook, state)


def _get_ignored(modules: Iterable[nn.Module] | None, states: Iterable[Any] | None) -> tuple[set[nn.Module], set[Any]]:
    """Return the modules and parameters that are not sharded."""
    if modules is not None and states is not None:
        raise ValueError("Cannot pass both ignored_modules and ignored_states at the same time.")
    listed = list(states or [])
    roots = [*(modules or []), *(one for one in listed if isinstance(one, nn.Module))]
    wrong = [one for one in roots if not isinstance(one, nn.Module)]
    if wrong:
        raise TypeError(f"`ignored_modules` should be an iterable of `torch.nn.Module`s, but got {wrong[0]!r}")
    return {inner for one in roots for inner in one.modules()}, {p for p in listed if isinstance(p, torch.Tensor)}


def _mesh_of_strategy(group: Any, mesh: DeviceMesh | None, strategy: ShardingStrategy) -> DeviceMesh:
    """Return the mesh of a strategy: without shards one with replicas only."""
    kind = dist.distributed_c10d._get_pg_default_device().type
    if mesh is not None:
        if group is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time. Please just pass only "
                             "one of them.")  # fmt: skip
        if strategy is ShardingStrategy.NO_SHARD and mesh.ndim == 1:
            return _replicate_mesh(mesh.get_group(), kind)
        return mesh
    if strategy in _HYBRID:
        if not isinstance(group, tuple):
            raise ValueError(
                "Expected device_mesh, or process_group to be passed in as a tuple (of the shards, of the copies) when "
                f"sharding_strategy is {strategy}"
            )
        shards, copies = group
        return _mesh_of_group_pair(shards, copies, kind)
    group = dist.distributed_c10d._get_default_group() if group is None else group
    return _replicate_mesh(group, kind) if strategy is ShardingStrategy.NO_SHARD else DeviceMesh.from_group(group, kind)


def _replicate_mesh(group: Any, kind: str) -> DeviceMesh:
    """Return a mesh of full replicas: each rank is the only one of its shards."""
    ranks = dist.get_process_group_ranks(group)
    alone = next(made for rank, made in [(r, dist.new_group([r])) for r in ranks] if rank == dist.get_rank())
    return DeviceMesh.from_group([group, alone], kind, [[rank] for rank in ranks], mesh_dim_names=("copies", "shards"))


def _mesh_of_group_pair(shards: Any, copies: Any, kind: str) -> DeviceMesh:
    lines: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(lines, dist.get_process_group_ranks(shards))
    rows = sorted({tuple(line) for line in lines})
    return DeviceMesh.from_group([copies, shards], kind, [list(r) for r in rows], mesh_dim_names=("copies", "shards"))


def _auto_wrap(
    module: nn.Module, policy: Any, ignored: set[nn.Module], parameters: set[Any], kwargs: dict[str, Any]
) -> None:
    low = kwargs["mixed_precision"]
    exact = tuple(low._module_classes_to_ignore) if low is not None and low.param_dtype is not None else ()
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(module, ignored, kwargs)
        chosen |= {one: {**kwargs, "mixed_precision": None} for one in module.modules() if isinstance(one, exact)}
        chosen.pop(module, None)
        _post_order_apply(module, chosen, FullyShardedDataParallel)
        return
    if exact:
        for one in module.modules():
            if isinstance(one, exact):
                one._wrap_overrides = {"mixed_precision": None}
        of_exact = lambda module, recurse, **rest: recurse or isinstance(module, exact)
        both = [policy, of_exact]
        policy = lambda module, recurse, nonwrapped_numel: _or_policy(module, recurse, nonwrapped_numel, both)
    _recursive_wrap(module, policy, FullyShardedDataParallel, ignored, parameters, only_wrap_children=True, **kwargs)


def _materialize_meta_module(module: nn.Module, init: Callable[[nn.Module], None] | None, device: Any) -> None:
    """Initialise parameters on the device "meta"."""
    without = [one for one in module.modules() if any(p.is_meta for p in one._parameters.values() if p is not None)]
    for one in without:
        if state_of(one) is not None:
            continue
        if init is not None:
            init(one)
        else:
            one.to_empty(device="cpu" if device is None else device, recurse=False)
            with torch.no_grad():
                one.reset_parameters()  # type: ignore[operator]


def _sync_module_params_and_buffers(module: nn.Module, lanes: MeshInfo, ignored: set[Any]) -> None:
    from torchlite.distributed._ddp.sync_module_states import broadcast_coalesced

    shards = plain_shards(module)
    states: list[Any] = [p for p in module.parameters() if p not in ignored and id(p) not in shards]
    states += list(module.buffers())
    for group in (lanes.group, lanes.copies):
        if group is not None:
            with torch.no_grad():
                broadcast_coalesced(group, states, 0)


def _cast_inputs(value: Any, dtype: torch.dtype) -> Any:
    from torchlite.utils import _pytree as pytree

    change = lambda x: x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x
    return pytree.tree_map(change, value)
