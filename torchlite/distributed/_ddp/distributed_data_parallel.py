"""DistributedDataParallel: replicas of a model that average their gradients."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._grad_bucket import BuiltinCommHookType, GradBucket
from torchlite.distributed.algorithms.join import Join, Joinable, JoinHook
from torchlite.nn.modules.module import Module

from .delayed_all_reduce import DelayedAllReduce
from .gradient_buckets import BUCKET_CAP_MB, FIRST_BUCKET_BYTES
from .reducer import Reducer
from .sync_module_states import broadcast_coalesced, sync_module_states, verify_shapes


@dataclass
class _MixedPrecision:
    """Dtypes of the computation, of the gradients' reduction (None: `param_dtype`) and of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


class _DDPJoinHook(JoinHook):
    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        ddp = self.ddp
        ddp.reducer.rebuild()
        if ddp.will_sync_module_buffers():
            ddp._sync_module_buffers(ddp._agree_on_rank(False))
        wanted = torch.zeros(1, device=ddp.device)
        dist.all_reduce(wanted, group=ddp.process_group)
        ddp.require_forward_param_sync = bool(wanted.item())
        if wanted.item():
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        ddp = self.ddp
        source = ddp._agree_on_rank(is_last_joiner)
        sync_module_states(ddp.module, ddp.process_group, source, ddp.parameters_to_ignore, ddp.forward_sync_buffers)


class DistributedDataParallel(Module, Joinable):
    """Wraps a model that each process of a group has, and averages the gradients over the processes.

    The constructor sends rank 0's parameters and buffers to the others. Backward reduces the gradients in buckets while
    it
    runs. Afterwards `.grad` is the same on all ranks: the gradient of the mean of the ranks' losses. The names in the
    `state_dict` begin with "module.".

    Args:
        module: The model.
        device_ids: A list of at most one device, to which inputs are moved. Default: none.
        output_device: The device of the output. Default: that of ``device_ids``.
        dim: The batch dimension. Default: 0.
        broadcast_buffers: Older name of ``forward_sync_buffers``.
        init_sync: Whether the constructor compares the models and sends rank 0's. Default: ``True``.
        process_group: The group. Default: the default group.
        bucket_cap_mb: Size of a bucket in MiB. Default: 25.
        find_unused_parameters: Whether some parameters may not affect a loss. They may differ between ranks. Default:
            ``False``.
        check_reduction: Deprecated; warns.
        gradient_as_bucket_view: Whether `.grad` is a view of the bucket. Default: ``False``.
        static_graph: Whether each iteration uses the same parameters equally often. Default: ``False``.
        delay_all_reduce_named_params: Names and parameters that are reduced after all others. Default: none.
        param_to_hook_all_reduce: The parameter whose gradient starts that reduction; goes with the argument before.
        mixed_precision: Dtypes of parameters, reduction and buffers. Default: those of the model.
        device_mesh: A mesh of one dimension, in place of a group. Default: none.
        skip_all_reduce_unused_params: Whether parameters that no rank uses are not reduced. Default: ``False``.
        bucket_cap_mb_list: Sizes of the buckets in MiB, one by one. Default: none.
        batched_grad_copy: Has no effect.
        forward_sync_buffers: Whether rank 0 sends its buffers before a forward. Default: ``True``.

    Raises:
        ValueError: There is no process group.
        RuntimeError: The ranks' models differ, or no parameter requires grad. Forward raises it too, if backward left
            parameters without a gradient.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.weight.grad, list(model.state_dict())
        (tensor([[3., 3.]]), ['module.weight', 'module.bias'])
        >>> torch.distributed.destroy_process_group()

    References:
        - S. Li et al. PyTorch distributed: experiences on accelerating data parallel training. 2020.
    """

    module: Module
    _active_ddp_module: Any = None
    _compiled_part = "module"  # the attribute that `torch.compile` compiles

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: list[tuple[str, Any]] | None = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        self.process_group = _resolve_group(process_group, device_mesh)
        if device_mesh is not None:
            self.device_mesh = device_mesh
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        delayed = list(delay_all_reduce_named_params or [])
        self.parameters_to_ignore |= {name for name, _ in delayed}
        named = [(name, p) for name, p in module.named_parameters() if name not in self.parameters_to_ignore]
        if not any(p.requires_grad for _, p in named) and not delayed:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self._take_devices([p for _, p in named] or [p for _, p in delayed], device_ids, output_device)
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using "
                "it.",
                FutureWarning,
                stacklevel=2,
            )
        if any(isinstance(p, torch.nn.parameter.UninitializedParameter) for _, p in named):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy "
                "forward pass to correctly initialize the modules"
            )
        self.forward_sync_buffers, init_buffers = _parse_broadcast_buffers(broadcast_buffers, forward_sync_buffers)
        self.dim, self.module = dim, module
        self.static_graph = False
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.skip_all_reduce_unused_params, self.batched_grad_copy = skip_all_reduce_unused_params, batched_grad_copy
        self.mixed_precision = mixed_precision
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._divide_by_initial_world_size = True
        self._limits = _bucket_size_limits(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap = self._limits[-1]
        self._comm_hooks: list[tuple[Callable[..., Any], Any]] = []
        self._delayed = None
        if init_sync:
            verify_shapes(self.process_group, [p for _, p in named if p.requires_grad])
            sync_module_states(module, self.process_group, 0, self.parameters_to_ignore, init_buffers)
        if delayed:
            self._delayed = DelayedAllReduce(self.process_group, [p for _, p in delayed], param_to_hook_all_reduce)
        self._make_reducer(static_graph)
        self._assign_modules_buffers()

    # -- making

    def _take_devices(self, parameters: list[Any], device_ids: Any, output_device: Any) -> None:
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        kinds = {p.device.type for p in parameters}
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module "
                f"parameters locate in {kinds}."
            )
        self.device, self.device_type = parameters[0].device, parameters[0].device.type
        self.is_multi_device_module = len({p.device for p in parameters}) > 1
        self.device_ids: list[Any] | None = None
        self.output_device: Any = None
        if not device_ids or self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with "
                    "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                    f"{device_ids}, output_device {output_device}, and module parameters "
                    f"{ {p.device for p in parameters} }."
                )
            return
        self.device_ids = [
            torch.device(self.device_type, where) if isinstance(where, int) else torch.device(where)
            for where in device_ids
        ]
        self.output_device = self.device_ids[0] if output_device is None else output_device

    def _parameters_to_reduce(self) -> list[tuple[str, Any, bool]]:
        """Return names, parameters, and whether their gradients are sparse: each parameter once."""
        found: dict[int, tuple[str, Any, bool]] = {}
        for prefix, module in self.module.named_modules():
            sparse = isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse
            for name, parameter in module.named_parameters(recurse=False):
                full = f"{prefix}.{name}" if prefix else name
                if parameter.requires_grad and full not in self.parameters_to_ignore and id(parameter) not in found:
                    found[id(parameter)] = full, parameter, sparse
        return list(found.values())

    def _make_reducer(self, static_graph: bool) -> None:
        reduced = self._parameters_to_reduce()
        self.reducer: Any = None
        self.static_graph = static_graph
        if not reduced:
            return
        self.reducer = Reducer(
            [parameter for _, parameter, _ in reduced],
            [name for name, _, _ in reduced],
            [sparse for _, _, sparse in reduced],
            self.process_group,
            self._limits,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.skip_all_reduce_unused_params,
        )
        self.reducer.static = static_graph
        if self.mixed_precision is not None:
            low = self.mixed_precision.reduce_dtype or self.mixed_precision.param_dtype
            if low is not None:
                self.reducer.set_low_precision(low)

    def _assign_modules_buffers(self) -> None:
        self.named_module_buffers = {
            name: buffer for name, buffer in self.module.named_buffers() if name not in self.parameters_to_ignore
        }
        self.modules_buffers = list(self.named_module_buffers.values())

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group != dist.group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, "
                "when you have called init_process_group and have not passed process_group argument to DDP constructor"
            )
        state = copy.copy(self.__dict__)
        for name in ("process_group", "reducer", "_delayed"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = dist.distributed_c10d._get_default_group()
        self._delayed = None
        self._comm_hooks = []
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._make_reducer(self.static_graph)
        self._assign_modules_buffers()

    # -- forward and backward

    @property
    def broadcast_buffers(self) -> bool:
        """`forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        return self._post_forward(self._run_ddp_forward(*inputs, **kwargs))

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Prepare a forward of the module; return its inputs."""
        if self.reducer is not None:
            self._prepare_reducer()
        if self.device_ids:
            inputs, kwargs = _to_device((inputs, kwargs), self.device_ids[0])
        return inputs, kwargs

    def _post_forward(self, output: Any) -> Any:
        """Finish a forward of the module; return its output."""
        if torch.is_grad_enabled() and self.require_backward_grad_sync and self.reducer is not None:
            self.require_forward_param_sync = True
            self._expects_backward(output)
        else:
            self.require_forward_param_sync = False
        if self._delayed is not None:
            self._delayed.clear()
        return output

    def _prepare_reducer(self) -> None:
        work = Join.notify_join_context(self)
        if work is not None:
            self.reducer.prior = work, work._counted, self._divide_by_initial_world_size
        if torch.is_grad_enabled():
            self.reducer.rebuild()
        if self.will_sync_module_buffers():
            self._sync_buffers()
        if self._join_config.enable:
            wanted = torch.full((1,), float(self.require_backward_grad_sync), device=self.device)
            dist.all_reduce(wanted, group=self.process_group)

    def _expects_backward(self, output: Any) -> None:
        search = self.find_unused_parameters and not self.static_graph
        self.reducer.prepare(list(_find_tensors(output)) if search else None)

    def _run_ddp_forward(self, *inputs: Any, **kwargs: Any) -> Any:
        with self._inside_ddp_forward():
            low = self.mixed_precision
            if low is None or (low.param_dtype is None and low.buffer_dtype is None):
                return self.module(*inputs, **kwargs)
            inputs, kwargs = _cast_to_mixed_precision((inputs, kwargs), low.param_dtype)
            states = {
                name: _cast_to_mixed_precision(value, low.param_dtype) for name, value in self.module.named_parameters()
            }
            buffers = low.buffer_dtype or low.param_dtype
            states |= {name: _cast_to_mixed_precision(value, buffers) for name, value in self.module.named_buffers()}
            return torch.func.functional_call(self.module, states, inputs, kwargs)

    @contextlib.contextmanager
    def _inside_ddp_forward(self) -> Iterator[None]:
        outer, DistributedDataParallel._active_ddp_module = DistributedDataParallel._active_ddp_module, self
        try:
            yield
        finally:
            DistributedDataParallel._active_ddp_module = outer

    @classmethod
    def _get_active_ddp_module(cls) -> Any:
        return cls._active_ddp_module

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager: backward accumulates into `.grad` without a reduction; the first one after it reduces the
        sum.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def train(self, mode: bool = True) -> Any:
        """Sets the mode of this module and of the model.

        Args:
            mode: Whether it is training mode. Default: ``True``.

        Returns:
            The module.
        """
        super().train(mode)
        return self

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """Splits arguments over devices.

        Args:
            inputs: The positional arguments.
            kwargs: The keyword arguments.
            device_ids: The devices.

        Returns:
            The positional arguments and the keyword arguments of each device.
        """
        from ...nn.parallel.scatter_gather import scatter_kwargs

        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Merges the outputs of several devices; see `torch.nn.parallel.gather`.

        Args:
            outputs: The outputs.
            output_device: The device of the result.
        """
        from ...nn.parallel.scatter_gather import gather

        return gather(outputs, output_device, dim=self.dim)

    # -- buffers

    def will_sync_module_buffers(self) -> bool:
        """True if the next forward broadcasts rank 0's buffers."""
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self.modules_buffers)

    def _sync_buffers(self) -> None:
        source = self._agree_on_rank(True) if self._join_config.enable else 0
        self._assign_modules_buffers()
        self._sync_module_buffers(source)

    def _sync_module_buffers(self, source: int) -> None:
        with torch.no_grad():
            broadcast_coalesced(self.process_group, self.modules_buffers, source)

    def _agree_on_rank(self, candidate: bool) -> int:
        """Return the highest rank that is a candidate."""
        found = torch.tensor([self.process_group.rank() if candidate else -1], device=self.device)
        dist.all_reduce(found, op=dist.ReduceOp.MAX, group=self.process_group)
        return int(found.item())

    @property
    def _distributed_rank(self) -> int:
        return self.process_group.rank()

    # -- joining

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Trains with inputs of different length in a block: a finished process adds zero gradients for the others.

        Args:
            divide_by_initial_world_size: Whether gradients are divided by the number of all processes; otherwise of
                those
                that have inputs left. Default: ``True``.
            enable: Whether the block does this. Default: ``True``.
            throw_on_early_termination: Whether all processes raise as soon as one is finished. Default: ``False``.

        Returns:
            A `torch.distributed.algorithms.Join`.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns the hook that repeats this model's collectives, for `Join`.

        Args:
            kwargs: ``divide_by_initial_world_size``, as for `join`.
        """
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """Device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """Group of the processes."""
        return self.process_group

    # -- hooks and logging

    def register_comm_hook(self, state: object, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Registers a function that reduces the gradients of a bucket, in place of the mean.

        Args:
            state: The function's first argument.
            hook: Called as ``hook(state, bucket)`` with a `GradBucket`; returns a future of the reduced gradients,
                already
                divided.

        Raises:
            RuntimeError: There is a hook.
        """
        _check_hook(hook)
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hooks.append((hook, state))
        self.reducer.hook = state, hook

    def _register_builtin_comm_hook(self, comm_hook_type: int) -> None:
        from torchlite.distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        self.register_comm_hook(self.process_group, hooks[comm_hook_type])

    def _set_static_graph(self) -> None:
        """Declare that the graph is the same in all iterations."""
        if self.static_graph:
            warnings.warn("You've set static_graph to be True, no need to set it again.", stacklevel=2)
            return
        self.static_graph = self.reducer.static = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Set the names of parameters and buffers that DistributedDataParallel ignores; call it before the
        constructor.
        """
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Return information about the buckets and the last iteration."""
        reducer = self.reducer
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": dist.get_backend(self.process_group),
            "device_ids": ", ".join(map(str, self.device_ids or [])),
            "output_device": -1 if self.output_device is None else self.output_device,
            "broadcast_buffers": int(self.forward_sync_buffers),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "is_multi_device_module": int(self.is_multi_device_module),
            "iteration": reducer.iteration,
            "num_parameter_tensors": len(reducer.parameters),
            "total_parameter_size_bytes": sum(p.nbytes for p in reducer.parameters),
            "bucket_sizes" if not reducer.rebuilt else "rebuilt_bucket_sizes": _bucket_sizes(reducer),
            "has_rebuilt_buckets": int(reducer.rebuilt),
            "num_buckets_reduced": len(reducer.buckets),
            "backward_comm_wait_time": int(reducer.waited * 1e9),
            "has_sync_bn": int(any(isinstance(m, torch.nn.SyncBatchNorm) for m in self.module.modules())),
            "comm_hook": getattr(reducer.hook[1], "__name__", "") if reducer.hook else "",
            "dtypes": ", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in reducer.parameters})),
            "master_addr": os.environ.get("MASTER_ADDR", "N/A"),
            "master_port": os.environ.get("MASTER_PORT", "N/A"),
            "torch_distributed_debug": os.environ.get("TORCH_DISTRIBUTED_DEBUG", "N/A"),
        }

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """Set the sample rate of timings, which has no effect. ValueError below 1."""
        if sample_rate < 1:
            raise ValueError("DDP runtime logging sample rate should be equal or greater than 1")

    def _check_reducer_finalized(self) -> None:
        self.reducer.check_finished()

    def _remove_autograd_hooks(self) -> None:
        self.reducer.remove()


def _bucket_sizes(reducer: Reducer) -> str:
    return ", ".join(str(bucket.nbytes) for bucket in reducer.buckets)


def _resolve_group(process_group: Any, device_mesh: Any) -> Any:
    if process_group is not None and device_mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if device_mesh is None:
        return dist.distributed_c10d._get_default_group() if process_group is None else process_group
    if device_mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
    return device_mesh.get_group(mesh_dim=0)


def _parse_broadcast_buffers(broadcast: bool | None, forward: bool | None) -> tuple[bool, bool]:
    """Return whether buffers are synchronised before a forward, and in the constructor."""
    if broadcast is not None:
        words = (
            "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and "
            "its value is ignored when `forward_sync_buffers` is provided."
            if forward is not None
            else "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead, which leaves the "
            "synchronisation of buffers when the model is wrapped as it is."
        )
        warnings.warn(words, FutureWarning, stacklevel=3)
    if forward is not None:
        return forward, True
    wanted = True if broadcast is None else broadcast
    return wanted, wanted


def _bucket_size_limits(cap: float | None, caps: list[float] | None) -> list[int]:
    """Return the sizes of the buckets in bytes; the last number holds for all further ones."""
    if caps is not None:
        if not caps or any(one <= 0 for one in caps):
            raise ValueError("bucket_cap_mb_list must be a list of positive numbers")
        return [int(one * 1024 * 1024) for one in caps]
    if cap is not None:
        return [int(cap * 1024 * 1024)]
    return [FIRST_BUCKET_BYTES, BUCKET_CAP_MB * 1024 * 1024]


def _check_hook(hook: Any) -> None:
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    annotation = signature.parameters["bucket"].annotation
    if annotation not in (inspect.Parameter.empty, GradBucket) and not str(annotation).endswith("GradBucket"):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    annotation = signature.return_annotation
    fits = annotation is inspect.Signature.empty or "Future[torch.Tensor]" in str(annotation)
    if not fits and annotation != torch.futures.Future[torch.Tensor]:
        raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")


def _find_tensors(output: Any) -> Iterator[Any]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        for item in output.values():
            yield from _find_tensors(item)
    elif isinstance(output, list | tuple | set):
        for item in output:
            yield from _find_tensors(item)
    elif is_dataclass(output) and not isinstance(output, type):
        for field in fields(output):
            yield from _find_tensors(getattr(output, field.name))


def _map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return type(value)((key, _map_tensors(item, change)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map_tensors(item, change) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(_map_tensors(item, change) for item in value)
    return value


def _to_device(value: Any, device: Any) -> Any:
    return _map_tensors(value, lambda tensor: tensor.to(device))


def _cast_to_mixed_precision(value: Any, dtype: Any) -> Any:
    return _map_tensors(value, lambda tensor: tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor)
