"""Remote procedure calls: unsupported."""

from torchlite._settings.module_dir import make_module_dir

from .._unavailable_stubs import make_unavailable_class, make_unavailable_function
from . import api as api

_HERE = "torch.distributed.rpc"

__all__ = ["RRef", "get_worker_info", "init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]

RRef = make_unavailable_class("RRef", _HERE)
get_worker_info, init_rpc, remote, rpc_async, rpc_sync, shutdown = (
    make_unavailable_function(name, _HERE)
    for name in ("get_worker_info", "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown")
)


def is_available() -> bool:
    """Returns ``False``: RPC is not supported.

    Example:
        >>> torch.distributed.rpc.is_available()
        False
    """
    return False


__dir__ = make_module_dir(globals())
