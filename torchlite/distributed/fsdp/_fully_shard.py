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
    """Shards a module's parameters, gradients and optimizer state over the ranks of a mesh.

    The module becomes an `FSDPModule` too, and its parameters become DTensors. Apply it to inner modules first and to
    the
    full model last, then create the optimizer. The parameters outside of inner FSDPModules form one group. The group is
    gathered before the module's forward and backward, while earlier modules still compute, and resharded afterwards.
    Backward averages the gradients over the ranks.

    Args:
        module: The module, or a list of modules that form one group.
        mesh: A mesh of one dimension, or of two (replicate, shard). Default: all ranks.
        reshard_after_forward: Whether to reshard between forward and backward; an integer reshards to that many ranks.
            Default: ``True``, except for the root.
        shard_placement_fn: Returns `Shard` for a parameter, or ``None`` for dimension 0. Default: ``None``.
        mp_policy: The dtypes. Default: those of the parameters.
        offload_policy: Where shards are. Default: on the mesh's device.
        ignored_params: Parameters that are not sharded. Default: none.
        dp_mesh_dims: The names of the mesh's dimensions to shard and replicate over. Default: ``None``.

    Returns:
        The module, or the list.

    Raises:
        ValueError: A module is a ModuleList or ModuleDict, or a parameter is a scalar or sharded already.

    Example:
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

    References:
        - S. Rajbhandari, J. Rasley, O. Ruwase, Y. He. ZeRO: memory optimizations toward training trillion parameter
          models. 2020.
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
    plain: bool = False,
) -> None:
    """Shard the parameters of modules that no inner one manages, and register the forward hooks.

    With `same` the shards keep the parameters' identity: an optimizer may have them already. With `plain` they are
    Tensors of this rank's elements, not DTensors.
    """
    device = _device_of(lanes.mesh)
    managed = _get_managed_modules(modules)
    for buffer in {id(b): b for part in managed for b in part.buffers(recurse=False)}.values():
        if buffer.device.type not in (device.type, "meta"):
            buffer.data = buffer.to(device)
    parameters = []
    for parameter, places in _get_parameters(managed, ignored):
        shard = None if placement is None else placement(parameter)
        parameters.append(FSDPParam(parameter, places, lanes, shard, device, precision, offload, same, plain))
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
    return torch.device(mesh.device_type, torch.get_device_module(mesh.device_type).current_device())


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
    """Methods of a module after `fully_shard`.

    Example:
        >>> from torchlite.distributed.fsdp import FSDPModule, fully_shard
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = fully_shard(torch.nn.Linear(2, 1))
        >>> model.set_requires_gradient_sync(False)
        >>> isinstance(model, FSDPModule)
        True
        >>> torch.distributed.destroy_process_group()
    """

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
        """Gathers the module's parameters.

        Args:
            async_op: Whether to return at once, with a handle that has ``wait()``. Default: ``False``.
        """
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
        """Sets whether the next backward is the last one over the same forward passes.

        Args:
            is_last_backward: Whether it is.
        """
        passing = self._get_fsdp_state().begin()
        passing.is_last = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Sets whether backward reduces gradients; without, they add up unsharded on each rank.

        Args:
            requires_gradient_sync: Whether it does.
            recurse: Whether inner FSDPModules are set too. Default: ``True``.
        """
        for group in self._groups(recurse):
            group.reduces = group.reduces_copies = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Sets whether backward reduces gradients over the replicas of a mesh of two dimensions.

        Args:
            requires_all_reduce: Whether it does.
            recurse: Whether inner FSDPModules are set too. Default: ``True``.
        """
        for group in self._groups(recurse):
            group.reduces_copies = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Sets whether forward reshards the parameters at its end.

        Args:
            reshard_after_forward: Whether it does.
            recurse: Whether inner FSDPModules are set too. Default: ``True``.

        Raises:
            ValueError: ``reshard_after_forward`` is not a bool.
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state.reshards_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Sets whether backward reshards the parameters at its end.

        Args:
            reshard_after_backward: Whether it does.
            recurse: Whether inner FSDPModules are set too. Default: ``True``.
        """
        for state in self._states(recurse):
            state.reshards_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Sets the modules whose parameters are gathered at the start of this module's forward.

        Args:
            modules: The modules.

        Raises:
            ValueError: One is not an FSDPModule.
        """
        self._get_fsdp_state().forward_prefetch = [_check_fsdp_module(module)._get_fsdp_state() for module in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Sets the modules whose parameters are gathered at the start of this module's backward.

        Without a call it is the previous module.

        Args:
            modules: The modules.

        Raises:
            ValueError: One is not an FSDPModule.
        """
        self._get_fsdp_state().backward_prefetch = [_check_fsdp_module(module)._get_fsdp_state() for module in modules]

    def set_all_reduce_hook(self, hook: Callable[[torch.Tensor], None], *, stream: Any = None) -> None:
        """Sets a function that is called with each averaged part of the module's gradients.

        Args:
            hook: Called as ``hook(gradient)``; may change it.
            stream: The stream in which it runs. Default: the current one.
        """
        if stream is not None:
            hook = _run_in_stream(hook, stream)
        for group in self._groups(False):
            group.hook = hook

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Sets the divisor of summed gradients.

        Args:
            factor: The divisor; without a call, the number of ranks.
        """
        for group in self._groups(False):
            group.divisor = factor

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """Calls `set_gradient_divide_factor`, its newer name.

        Args:
            factor: The divisor.
        """
        self.set_gradient_divide_factor(factor)

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Sets whether backward gathers the module's parameters.

        Args:
            unshard_in_backward: Whether it does.
        """
        self._get_fsdp_state().unshards_in_backward = unshard_in_backward

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.reshard()
        return super()._apply(*args, **kwargs)  # type: ignore[misc]


def _check_fsdp_module(module: Any) -> FSDPModule:
    if not isinstance(module, FSDPModule):
        raise ValueError(f"Each module must be an FSDPModule, but got {type(module)}: {module}")
    return module


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """Makes a method of a sharded module gather parameters as `forward` does; other modules do not change.

    Args:
        module: The module.
        method_name: The method's name.

    Raises:
        ValueError: There is no such method.

    Example:
        >>> from torchlite.distributed.fsdp import fully_shard, register_fsdp_forward_method
        >>> class Model(torch.nn.Linear):
        ...     def generate(self, x):
        ...         return torch.nn.functional.linear(x, self.weight)
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = fully_shard(Model(2, 1))
        >>> register_fsdp_forward_method(model, "generate")
        >>> model.generate(torch.ones(3, 2)).shape
        torch.Size([3, 1])
        >>> torch.distributed.destroy_process_group()
    """
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
    """Makes several roots share one communication context, if their backward passes follow one another.

    Args:
        modules: The roots.

    Raises:
        ValueError: One is not an FSDPModule.

    Example:
        >>> from torchlite.distributed.fsdp import fully_shard, share_comm_ctx
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> share_comm_ctx([fully_shard(torch.nn.Linear(2, 2)), fully_shard(torch.nn.Linear(2, 1))])
        >>> torch.distributed.destroy_process_group()
    """
    passings = [_check_fsdp_module(module)._get_fsdp_state().begin() for module in modules]
    for passing in passings[1:]:
        for state in passing.states:
            state.passing = passings[0]
            if state not in passings[0].states:
                passings[0].states.append(state)
