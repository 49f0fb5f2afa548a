"""Calls to other processes: none."""

from .._absent import absent, kind
from . import api as api

_HERE = "torch.distributed.rpc"

__all__ = ["RRef", "get_worker_info", "init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]

RRef = kind("RRef", _HERE)
get_worker_info, init_rpc, remote, rpc_async, rpc_sync, shutdown = (
    absent(name, _HERE) for name in ("get_worker_info", "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown")
)


def is_available() -> bool:
    """Whether other processes can be called: they cannot."""
    return False
