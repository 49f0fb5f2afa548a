"""RemoteModule: a module of another worker."""

from __future__ import annotations

from typing import Any

import torchlite as torch
import torchlite.distributed.rpc as rpc
from torchlite import nn
from torchlite.futures import Future
from torchlite.utils import _pytree as pytree

from ...remote_device import _remote_device

__all__ = ["RemoteModule"]


def _create_module(module_cls: Any, args: Any, kwargs: Any, device: str) -> nn.Module:
    module = module_cls(*args, **kwargs)
    if not isinstance(module, nn.Module):
        raise ValueError(
            "Expect `module_cls(*args, **kwargs)` returns an instance of <class nn.Module>, "
            f"but it returns an instance of {type(module)}."
        )
    return module.to(device)


def _parameter_references(module_rref: rpc.RRef, recurse: bool) -> list[rpc.RRef]:
    return [rpc.RRef(parameter) for parameter in module_rref.local_value().parameters(recurse)]


def _set_training(module_rref: rpc.RRef, mode: bool) -> None:
    module_rref.local_value().train(mode)


def _run_forward(module_rref: rpc.RRef, device: str, has_device_map: bool, args: Any, kwargs: Any) -> Any:
    """Run the module here, on its device; without a map of devices the result returns to the host."""
    module, target = module_rref.local_value(), torch.device(device)
    if target.type == "cpu":
        return module.forward(*args, **kwargs)

    def move(value: Any, to: Any) -> Any:
        return value.to(to) if isinstance(value, torch.Tensor) else value

    args, kwargs = pytree.tree_map(lambda value: move(value, target), (args, kwargs))
    out = module.forward(*args, **kwargs)
    return out if has_device_map else pytree.tree_map(lambda value: move(value, "cpu"), out)


def _make_unsupported(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(f"Method ``{name}`` not supported for RemoteModule")

    method.__name__ = name
    return method


class RemoteModule(nn.Module):
    """A module that another worker makes and runs. It may be an argument of a call.

    Within `torch.distributed.autograd.context`, gradients of its parameters stay on that worker.
    `torch.distributed.optim.DistributedOptimizer` takes `remote_parameters`.

    Args:
        remote_device: The worker and its device: ``"worker1/cpu"``, ``"worker1"`` or ``"rank:1/cuda:0"``.
        module_cls: The class of the module, or a function that returns one.
        args: Its arguments. Default: none.
        kwargs: Its named arguments. Default: none.

    Raises:
        AssertionError: RPC is not initialized.
        ValueError: ``remote_device`` has another form. A method other than ``forward``, ``forward_async``, ``train``,
            ``eval`` and those below is called. The class makes no module; raised by ``forward``.

    Example:
        >>> import torchlite.distributed.rpc as rpc
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://localhost:0")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> layer = torch.distributed.nn.RemoteModule("alone/cpu", torch.nn.Linear, (3, 2))
        >>> layer(torch.ones(4, 3)).shape, len(layer.remote_parameters())
        (torch.Size([4, 2]), 2)
        >>> rpc.shutdown()
    """

    def __init__(
        self, remote_device: str, module_cls: Any, args: tuple | None = None, kwargs: dict[str, Any] | None = None
    ) -> None:
        self._set_place(remote_device)
        self.module_rref = rpc.remote(self.on, _create_module, (module_cls, args or (), kwargs or {}, self.device))

    def _set_place(self, remote_device: str) -> None:
        super().__init__()
        if not rpc._is_current_rpc_agent_set():
            raise AssertionError("RemoteModule only works in RPC.")
        place = _remote_device(remote_device)
        on = place.worker_name() if place.worker_name() is not None else place.rank()
        agent = rpc._get_current_rpc_agent()
        worker = agent.me if on is None else agent.get_worker_info(on)  # a device alone is one of this worker
        self.on: str | int = worker.id if on is None else on
        self.device, self.is_scriptable = str(place.device()), False
        self.is_device_map_set = bool(agent.options.device_maps.get(worker.name))

    @staticmethod
    def init_from_module_rref(remote_device: str, module_rref: rpc.RRef) -> RemoteModule:
        """Returns a module that runs one which exists.

        Args:
            remote_device: The worker and the device of the module.
            module_rref: A reference to it.
        """
        made = RemoteModule.__new__(RemoteModule)
        made._set_place(remote_device)
        made.module_rref = module_rref
        return made

    def _reduce_for_peer(self) -> tuple:
        owner = self.module_rref.owner()
        return RemoteModule.init_from_module_rref, (f"{owner.name}/{self.device}", self.module_rref)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "Cannot pickle RemoteModule in python pickler. RemoteModule can only be pickled when using RPC"
        )

    def __repr__(self) -> str:
        return f"RemoteModule({self.on}/{self.device})"

    def forward_async(self, *args: Any, **kwargs: Any) -> Future:
        """Runs the module, and returns a future of the result.

        Args:
            args: The module's arguments.
            kwargs: Its named arguments.
        """
        values = self.module_rref, self.device, self.is_device_map_set, args, kwargs
        return rpc.rpc_async(self.module_rref.owner(), _run_forward, values)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module, and returns the result.

        Args:
            args: The module's arguments.
            kwargs: Its named arguments.
        """
        return self.forward_async(*args, **kwargs).wait()

    def remote_parameters(self, recurse: bool = True) -> list[rpc.RRef]:
        """Returns references to the module's parameters.

        Args:
            recurse: Whether those of inner modules belong to them.
        """
        return rpc.rpc_sync(self.module_rref.owner(), _parameter_references, (self.module_rref, recurse))

    def get_module_rref(self) -> rpc.RRef:
        """Returns a reference to the module."""
        return self.module_rref

    def train(self, mode: bool = True) -> RemoteModule:
        """Sets whether the module trains, on its worker.

        Args:
            mode: Whether it does.
        """
        rpc.rpc_sync(self.module_rref.owner(), _set_training, (self.module_rref, mode))
        return self

    def eval(self) -> RemoteModule:
        """Sets that the module does not train, on its worker."""
        return self.train(False)


for _name in (
    "add_module apply bfloat16 buffers children cpu cuda double extra_repr float half ipu load_state_dict modules "
    "named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer "
    "register_forward_hook register_forward_pre_hook register_parameter requires_grad_ share_memory state_dict to type "
    "xpu zero_grad"
).split():
    setattr(RemoteModule, _name, _make_unsupported(_name))
