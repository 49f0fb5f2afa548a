"""Options of the RPC backend."""

from __future__ import annotations

from typing import Any

from torchlite._types.devices import device as Device

from . import constants


class RpcBackendOptions:
    """Options that every backend has.

    Args:
        rpc_timeout: Seconds that a call may take; 0 means without a limit.
        init_method: Where the ranks meet, as for `init_process_group`.

    Example:
        >>> torch.distributed.rpc.RpcBackendOptions().rpc_timeout
        60.0
    """

    def __init__(
        self, rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC, init_method: str = constants.DEFAULT_INIT_METHOD
    ) -> None:
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Options of the backend. Its name is PyTorch's; messages travel over TCP.

    Args:
        num_worker_threads: How many requests of others run at a time. One that waits for another call is not counted.
        rpc_timeout: Seconds that a call may take; 0 means without a limit.
        init_method: Where the ranks meet, as for `init_process_group`.
        device_maps: For each callee's name, a dict from devices here to devices there.
        devices: Not supported: devices follow from the maps.
        _transports: Not supported, as ``_channels``: messages travel over TCP.

    Raises:
        ValueError: A map has one target for two devices, or ``num_worker_threads`` is not positive.
        NotImplementedError: ``devices``, ``_transports`` or ``_channels`` is given.

    Example:
        >>> torch.distributed.rpc.TensorPipeRpcBackendOptions(num_worker_threads=4).num_worker_threads
        4
    """

    def __init__(
        self,
        *,
        num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = constants.DEFAULT_INIT_METHOD,
        device_maps: dict[str, dict[Any, Any]] | None = None,
        devices: list[Any] | None = None,
        _transports: list[str] | None = None,
        _channels: list[str] | None = None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads <= 0:
            raise ValueError(f"num_worker_threads must be positive, got {num_worker_threads}")
        for option, value in (("devices", devices), ("_transports", _transports), ("_channels", _channels)):
            if value:
                raise NotImplementedError(
                    f"TensorPipeRpcBackendOptions: {option} is not supported; messages travel over TCP, and devices "
                    "follow from device_maps"
                )
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, dict[Any, Any]] = {}
        for name, pairs in (device_maps or {}).items():
            self.set_device_map(name, pairs)

    def set_device_map(self, to: str, device_map: dict[Any, Any]) -> None:
        """Adds devices to the map for a callee.

        Args:
            to: Name of the callee.
            device_map: From a device here to a device there.

        Raises:
            ValueError: A device has two targets, or a target two devices.
        """
        merged = dict(self.device_maps.get(to, {}))
        for source, target in device_map.items():
            key, value = Device(source), Device(target)
            if key in merged and merged[key] != value:
                raise ValueError(
                    f"`set_device_map` only supports 1-to-1 mapping, trying to map {key} to {value} and {merged[key]}"
                )
            merged[key] = value
        if len(set(merged.values())) != len(merged):
            raise ValueError(f"`set_device_map` only supports 1-to-1 mapping, got {device_map}")
        self.device_maps[to] = merged
