"""Calls to other processes: none."""

from typing import Any


def _require_initialized(func: Any) -> Any:
    """Mark a function that needs other processes: calling it raises RuntimeError."""
    import functools

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")

    return wrapper
