"""RPC functions under PyTorch's names: unsupported."""

from typing import Any


def _require_initialized(func: Any) -> Any:
    """Decorate a function that needs RPC: a call raises RuntimeError."""
    import functools

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")

    return wrapper
