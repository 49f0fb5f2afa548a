"""`fully_shard`: shards a module's parameters, with an all-gather around forward and backward."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed.device_mesh import DeviceMesh, init_device_mesh

from ._fsdp_param import FSDPParam
from ._fsdp_param_group import FSDPParamGroup
from ._fsdp_state import FSDPState, state_of
from ._fully_shard_policies import DataParallelMeshDims, MixedPrecisionPolicy, OffloadPolicy
from ._mesh_info import MeshInfo

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx"]

_PLAIN, _STAY = MixedPrecisionPolicy(), OffloadPolicy()


class UnshardHandle:
    """Result of `unshard(async_op=True)`."""

    def __init__(self, group: FSDPParamGroup | None = None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the parameters are unsharded."""
        if self._group is not None:
            self._group.unshard()
            self._group = None


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = _PLAIN,
    offload_policy: OffloadPolicy = _STAY,
    ignored_params: set[Any] | None = None,
    dp_mesh_dims: DataParallelMeshDims | None = None,
) -> Any:
    """Shard a module's parameters, gradients and optimizer state over the ranks of a mesh.

    The module becomes an FSDPModule too; its parameters become DTensors. Apply it to inner modules first and to the
    full model last, then create the optimizer.

    All parameters of no inner FSDPModule form one group. It is gathered before the module's forward and backward, while
    earlier modules still compute, and resharded afterwards; gradients are averaged over the ranks during backward.

    module: a Module, or a list that forms one group. mesh: 1-d, or 2-d (replicate, shard); all ranks by default.
    reshard_after_forward: reshard between forward and backward; None: unless the module is the root; an integer:
    reshard to that many ranks. shard_placement_fn: returns for a parameter `Shard(dim)`, or None for dimension 0.
    ignored_params: not sharded.

    ValueError for containers (ModuleList, ModuleDict), scalars, and sharded parameters.

    >>> import torchlite as torch
    >>> from torchlite.distributed.fsdp import fully_shard
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    >>> for layer in model:
    ...     _ = fully_shard(layer)
    >>> _ = fully_shard(model)
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
    >>> model(torch.ones(4, 2)).sum().backward()
    >>> optimizer.step()
    >>> type(model).__name__, tuple(model[0].weight.to_local().shape)
    ('FSDPSequential', (3, 2))
    >>> torch.distributed.destroy_process_group()
    """
    listed = (module,) if isinstance(module, nn.Module) else tuple(module)
    _check_modules(listed)
    lanes = MeshInfo(_resolve_mesh(mesh, dp_mesh_dims))
    apply_fully_shard(
        listed, lanes, reshard_after_forward, shard_placement_fn, mp_policy, offload_policy, ignored_params or set()
    )
    for one in listed:
        cls: Any = type(one)
        one.__class__ = _make_fsdp_class(cls)
    return module


def apply_fully_shard(
    modules: tuple[nn.Module, ...],
    lanes: MeshInfo,
    reshards: bool | int | None,
    placement: Callable[[Any], Any] | None,
    precision: MixedPrecisionPolicy,
    offload: OffloadPolicy,
    ignored: set[Any],
    same: bool = False,
) -> None:
    """Shard the parameters of modules that no inner one manages, and register the forward hooks.

    With `same` the shards keep the parameters' identity: an optimizer may have them already.
    """
    device = _device_of(lanes.mesh)
    managed = _get_managed_modules(modules)
    for buffer in {id(b): b for part in managed for b in part.buffers(recurse=False)}.values():
        if buffer.device.type not in (device.type, "meta"):
            buffer.data = buffer.to(device)
    parameters = []
    for parameter, places in _get_parameters(managed, ignored):
        shard = None if placement is None else placement(parameter)
        parameters.append(FSDPParam(parameter, places, lanes, shard, device, precision, offload, same))
    group = FSDPParamGroup(parameters, modules, lanes, precision) if parameters else None
    if isinstance(reshards, int) and not isinstance(reshards, bool):
        if group is not None:
            group.few = _neighbour_group(lanes, reshards)
        reshards = True
    state = FSDPState(modules, group, precision, reshards)
    for one in modules:
        one.__dict__["_fsdp_state"] = state


def _check_modules(modules: tuple[nn.Module, ...]) -> None:
    for module in modules:
        if isinstance(module, nn.ModuleList | nn.ModuleDict) and type(module).forward is nn.Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
        if state_of(module) is not None:
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once. fully_shard has "
                f"already been applied to the following module:\n{module}"
            )


def _resolve_mesh(mesh: DeviceMesh | None, dims: DataParallelMeshDims | None) -> DeviceMesh:
    if mesh is None:
        kind = dist.distributed_c10d._get_pg_default_device().type
        return init_device_mesh(kind, (dist.get_world_size(),))
    if dims is None:
        return mesh
    names: list[str] = []
    for name in (dims.replicate, dims.shard):
        if name is not None:
            names += [name] if isinstance(name, str) else list(name)
    return mesh[tuple(names)]


def _device_of(mesh: DeviceMesh) -> torch.device:
    if mesh.device_type == "cpu":
        return torch.device("cpu")
    return torch.device(mesh.device_type, torch.accelerator.current_device_index())


def _get_managed_modules(roots: tuple[nn.Module, ...]) -> list[nn.Module]:
    """Return the modules of the group: those in the roots that are not yet sharded."""
    found: dict[int, nn.Module] = {}

    def visit(module: nn.Module, is_root: bool) -> None:
        if (not is_root and state_of(module) is not None) or id(module) in found:
            return
        found[id(module)] = module
        for child in module.children():
            visit(child, False)

    for root in roots:
        visit(root, True)
    return list(found.values())


def _get_parameters(modules: list[nn.Module], ignored: Iterable[Any]) -> list[tuple[Any, list[tuple[nn.Module, str]]]]:
    """Return the distinct parameters, with all modules and names that have them."""
    without = {id(parameter) for parameter in ignored}
    found: dict[int, tuple[Any, list[tuple[nn.Module, str]]]] = {}
    for module in modules:
        for name, parameter in module._parameters.items():
            if parameter is not None and id(parameter) not in without:
                found.setdefault(id(parameter), (parameter, []))[1].append((module, name))
    return list(found.values())


def _neighbour_group(lanes: MeshInfo, count: int) -> Any:
    """Return the group of `count` neighbours that share an unsharded copy; None if these are all ranks."""
    if count < 1 or lanes.size % count:
        raise ValueError(
            f"If reshard_after_forward is an int, it should be a factor of {lanes.size}, not {count} (shard mesh size)"
        )
    if count == lanes.size:
        return None
    mine = None
    ranks = lanes.mesh.mesh.view(-1, lanes.size) if lanes.mesh.ndim == 2 else lanes.mesh.mesh.view(1, -1)
    for line in ranks.tolist():
        for begin in range(0, lanes.size, count):
            members = line[begin : begin + count]
            group = dist.new_group(members)
            if dist.get_rank() in members:
                mine = group
    return mine


@functools.cache
def _make_fsdp_class(cls: type) -> type:
    return type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__deepcopy__": _raise_on_deepcopy})


def _raise_on_deepcopy(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


def _run_in_stream(hook: Callable[[torch.Tensor], None], stream: Any) -> Callable[[torch.Tensor], None]:
    def run(gradient: torch.Tensor) -> None:
        with stream:
            hook(gradient)

    return run


class FSDPModule:
    """Mixin of modules after `fully_shard`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # A sharded module's class constructs objects of the original class, since programs call type(m).
        original = cls.__mro__[2]
        made = original.__new__(original, *args, **kwargs)  # type: ignore[call-overload]
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> FSDPState:
        state = state_of(self)  # type: ignore[arg-type]
        if state is None:
            raise AssertionError(f"No FSDP state found on {self}")
        return state

    def _states(self, recurse: bool = True) -> list[FSDPState]:
        modules: Any = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        found = map(state_of, modules)
        return list(dict.fromkeys(state for state in found if state is not None))

    def _groups(self, recurse: bool = True) -> list[FSDPParamGroup]:
        return [state.group for state in self._states(recurse) if state.group is not None]

    def reshard(self) -> None:
        """Reshard the module's parameters."""
        self._get_fsdp_state().reshard()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Unshard the module's parameters; with `async_op` start it, and return a handle to wait for."""
        state = self._get_fsdp_state()
        if state.group is not None:
            for parameter in state.group.parameters:
                parameter.renew()
            state.group.begin_unshard()
        handle = UnshardHandle(state.group)
        if async_op:
            return handle
        handle.wait()
        return None

    def reset_iter_state(self) -> None:
        """Drop the state of an aborted iteration, and reshard."""
        for state in self._states():
            state.forget()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Set whether the next backward is the last one over the same forwards."""
        passing = self._get_fsdp_state().begin()
        passing.is_last = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Set whether backward reduces gradients; otherwise they accumulate unsharded on each rank."""
        for group in self._groups(recurse):
            group.reduces = group.reduces_copies = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """On a 2-d mesh: set whether backward all-reduces gradients over the replicas."""
        for group in self._groups(recurse):
            group.reduces_copies = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether forward reshards afterwards."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state.reshards_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Set whether backward reshards afterwards."""
        for state in self._states(recurse):
            state.reshards_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Set the modules to prefetch at the start of this one's forward."""
        self._get_fsdp_state().forward_prefetch = [_check_fsdp_module(module)._get_fsdp_state() for module in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Set the modules to prefetch at the start of this one's backward, instead of the previous one."""
        self._get_fsdp_state().backward_prefetch = [_check_fsdp_module(module)._get_fsdp_state() for module in modules]

    def set_all_reduce_hook(self, hook: Callable[[torch.Tensor], None], *, stream: Any = None) -> None:
        """Have `hook(gradient)` called with each of the module's averaged parts of gradients, which it may change.

        stream: the stream in which the hook runs.
        """
        if stream is not None:
            hook = _run_in_stream(hook, stream)
        for group in self._groups(False):
            group.hook = hook

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set the divisor of summed gradients, by default the number of ranks."""
        for group in self._groups(False):
            group.divisor = factor

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """Old name of `set_gradient_divide_factor`."""
        self.set_gradient_divide_factor(factor)

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Set whether backward unshards the module's parameters."""
        self._get_fsdp_state().unshards_in_backward = unshard_in_backward

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()
        return super()._apply(*args, **kwargs)  # type: ignore[misc]


def _check_fsdp_module(module: Any) -> FSDPModule:
    if not isinstance(module, FSDPModule):
        raise ValueError(f"Each module must be an FSDPModule, but got {type(module)}: {module}")
    return module


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """Make a method unshard parameters as `forward` does. No effect on modules that are not sharded."""
    state = state_of(module)
    if state is None:
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(type(module), method_name)

    @functools.wraps(original)
    def wrapped(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(self, args, kwargs)
        return state.after_forward(self, args, original(self, *args, **kwargs))

    setattr(module, method_name, types.MethodType(wrapped, module))


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Share one communication context among several roots, whose backwards follow one another."""
    passings = [_check_fsdp_module(module)._get_fsdp_state().begin() for module in modules]
    for passing in passings[1:]:
        for state in passing.states:
            state.passing = passings[0]
            if state not in passings[0].states:
                passings[0].states.append(state)
