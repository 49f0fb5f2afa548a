"""Backend names, their registration, and the backend of each device type."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from ._transports import find_transport, is_installed


class _Plugin(NamedTuple):
    creator_fn: Callable[..., Any]
    extended_api: bool


class Backend(str):
    """Lower-case name of a communication backend.

    ``"mpi"`` and ``"gloo"`` are one transport, over host memory. ``"nccl"`` is for CUDA devices. `register_backend`
    adds
    others.

    Args:
        name: The name, in any case.

    Raises:
        ValueError: ``name`` is not a string.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.Backend("GLOO")
        'gloo'
    """

    UNDEFINED = "undefined"
    GLOO, NCCL, UCC, MPI, XCCL, FAKE = "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    _BackendPlugin = _Plugin
    _plugins: dict[str, _Plugin] = {}
    backend_list = [UNDEFINED, GLOO, NCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "opencl": GLOO}
    backend_capability = {GLOO: ["cpu", "cuda", "opencl"], NCCL: ["cuda"], MPI: ["cpu", "cuda", "opencl"]}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return getattr(Backend, name.upper(), name.lower())

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[..., Any], extended_api: bool = False, devices: str | list[str] | None = None
    ) -> None:
        """Registers a backend of another package.

        Args:
            name: Its name.
            func: Called as ``func(store, rank, size, timeout)`` for each group; returns an object with the methods of
                `ProcessGroup`.
            extended_api: Whether ``func`` takes an object with these values, and the group's options. Default:
                ``False``.
            devices: The device types that it serves. Default: ``["cpu", "cuda"]``, with a warning.

        Raises:
            RuntimeError: There is a backend of that name.
        """
        if name == Backend.NCCL or (name.upper() in cls._plugins):
            raise RuntimeError(f"{name} c10d backend already exist")
        setattr(Backend, name.upper(), name.lower())
        if name.lower() not in Backend.backend_list:
            Backend.backend_list.append(name.lower())
        if devices is None:
            warnings.warn(
                f"Device capability of {name} unspecified, assuming `cpu` and `cuda` or `xpu`. Please specify it via "
                "the `devices` argument of `register_backend`.",
                stacklevel=2,
            )
            devices = ["cpu", "cuda"]
        devices = [devices] if isinstance(devices, str) else devices
        for device in devices:
            Backend.default_device_backend_map.setdefault(device, name.lower())
        Backend.backend_capability[name.lower()] = devices
        Backend._plugins[name.upper()] = _Plugin(func, extended_api)


class BackendConfig:
    """Backend of each device type.

    Args:
        backend: A backend's name, or text such as ``"cpu:gloo,cuda:nccl"``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.BackendConfig("cpu:gloo,cuda:nccl").get_device_backend_map()
        {'cpu': 'gloo', 'cuda': 'nccl'}
    """

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = _parse_device_backends(str(backend))

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """Return the backends by device type."""
        return self.device_backend_map


def _parse_device_backends(backend: str) -> dict[str, str]:
    if backend == Backend.UNDEFINED:
        found = {"cpu": Backend.GLOO, "opencl": Backend.GLOO}
        return {**found, "cuda": Backend.NCCL} if is_backend_available("nccl") else {**found, "cuda": Backend.GLOO}
    if backend.lower() in Backend.backend_capability:
        return dict.fromkeys(Backend.backend_capability[backend.lower()], Backend(backend))
    if ":" not in backend:
        warnings.warn(
            f"Device capability of {backend} unknown, assuming `cpu` and `cuda`. You can specify it in "
            "`device:backend` format in `init_process_group` call.",
            stacklevel=4,
        )
        return dict.fromkeys(("cpu", "cuda"), Backend(backend))
    words = (
        f"The custom backend string argument is invalid: {backend}.\n                Custom backend string is an "
        "experimental feature where the backend string must be in the format:\n                "
        "\"<device_type1>:<backend1>,<device_type2>:<backend2>...\". e.g. 'cpu:gloo,cuda:nccl'"
    )
    devices: dict[str, str] = {}
    for pair in backend.lower().split(","):
        device, colon, name = pair.partition(":")
        if not colon or ":" in name:
            raise ValueError(f"Invalid device:backend pairing: {pair}. {words}")
        if device in devices:
            raise ValueError(f"Duplicate device type {device} in backend string: {name}. {words}")
        devices[device] = Backend(name)
    return devices


def is_mpi_available() -> bool:
    """Returns whether mpi4py is installed, which a world of several processes needs.

    Example:
        >>> isinstance(torch.distributed.is_mpi_available(), bool)
        True
    """
    return is_installed("mpi")


def is_gloo_available() -> bool:
    """Returns ``True``: "gloo" uses the transport of "mpi", and a world of one process needs none.

    Example:
        >>> torch.distributed.is_gloo_available()
        True
    """
    return True


def is_nccl_available() -> bool:
    """Returns whether CuPy finds NCCL, which sends between CUDA devices.

    Example:
        >>> isinstance(torch.distributed.is_nccl_available(), bool)
        True
    """
    return is_installed("nccl") and not find_transport("nccl").why_not()


def is_ucc_available() -> bool:
    """Returns ``False``: UCC is not supported.

    Example:
        >>> torch.distributed.is_ucc_available()
        False
    """
    return False


def is_xccl_available() -> bool:
    """Returns ``False``: XCCL is not supported.

    Example:
        >>> torch.distributed.is_xccl_available()
        False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Returns whether a backend is built in and usable, or registered.

    Args:
        backend: Its name, in any case.

    Example:
        >>> torch.distributed.is_backend_available("gloo"), torch.distributed.is_backend_available("ucc")
        (True, False)
    """
    known = {"mpi": is_mpi_available, "gloo": is_gloo_available, "nccl": is_nccl_available}
    found = known.get(backend.lower())
    return found() if found is not None else backend.lower() in Backend.backend_capability
