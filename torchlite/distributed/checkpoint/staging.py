"""Staging: copies of a state dict for asynchronous saves."""

from __future__ import annotations

from concurrent.futures import Future as ConcurrentFuture
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torchlite as torch
from torchlite.distributed.tensor import DTensor

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Protocol of objects that copy a state dict for `async_save`.

    Example:
        >>> from torchlite.distributed.checkpoint.staging import AsyncStager, BlockingAsyncStager
        >>> isinstance(BlockingAsyncStager(), AsyncStager)
        True
    """

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """True if `synchronize_staging` must be called after the save has started."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """Returns a copy of a state dict, or a future of one.

        Args:
            state_dict: The state dict.
        """

    def synchronize_staging(self) -> None:
        """Wait until the copy is complete."""

    def close(self) -> None:
        """Release resources."""


def _copy_to_host(value: Any, kept: Any = None) -> Any:
    """Copy all tensors to host memory, reusing an earlier copy's; return other values unchanged."""
    if isinstance(value, DTensor):
        local = _copy_to_host(value.to_local(), None if kept is None else kept.to_local())
        return DTensor.from_local(
            local, value.device_mesh, value.placements, run_check=False, shape=value.shape, stride=value.stride()
        )
    if isinstance(value, torch.Tensor):
        fits = isinstance(kept, torch.Tensor) and kept.shape == value.shape and kept.dtype == value.dtype
        target: Any = kept if fits else torch.empty(value.shape, dtype=value.dtype)
        target.copy_(value.detach())
        return target
    if isinstance(value, dict):
        before = kept if isinstance(kept, dict) else {}
        return {key: _copy_to_host(item, before.get(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        earlier = kept if isinstance(kept, list | tuple) and len(kept) == len(value) else [None] * len(value)
        items = [_copy_to_host(item, old) for item, old in zip(value, earlier, strict=True)]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return items if isinstance(value, list) else tuple(items)
    return value


class BlockingAsyncStager(AsyncStager):
    """Copies a state dict before the call returns.

    Args:
        cache_staged_state_dict: Whether the next copy uses the same memory. Default: ``False``.
        type_check: Has no effect.

    Example:
        >>> from torchlite.distributed.checkpoint.staging import BlockingAsyncStager
        >>> BlockingAsyncStager().stage({"weight": torch.ones(2)})
        {'weight': tensor([1., 1.])}
    """

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict[str, Any] | None = None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Returns the copy.

        Args:
            state_dict: The state dict.
        """
        made = _copy_to_host(state_dict, self.state_dict_cache)
        if self.cache_staged_state_dict:
            self.state_dict_cache = made
        return made  # type: ignore[no-any-return]

    def synchronize_staging(self) -> None:
        """Do nothing: the copy is synchronous."""

    def close(self) -> None:
        """Release the memory of the last copy."""
        self.state_dict_cache = None


@dataclass
class StagingOptions:
    """Options of `DefaultStager`.

    Args:
        use_pinned_memory: Has no effect.
        use_shared_memory: Has no effect.
        use_async_staging: Whether a thread of its own makes the copy. Default: ``True``.
        use_non_blocking_copy: Has no effect.

    Example:
        >>> from torchlite.distributed.checkpoint.staging import StagingOptions
        >>> StagingOptions(use_async_staging=False).use_async_staging
        False
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


_DEFAULTS = StagingOptions()


class DefaultStager(AsyncStager):
    """Copies a state dict in a thread of its own; the state dict must not change until the copy is complete.

    Args:
        config: The options. Default: those of `StagingOptions`.

    Example:
        >>> from torchlite.distributed.checkpoint.staging import DefaultStager
        >>> stager = DefaultStager()
        >>> stager.stage({"weight": torch.ones(2)}).result()
        {'weight': tensor([1., 1.])}
        >>> stager.close()
    """

    def __init__(self, config: StagingOptions = _DEFAULTS) -> None:
        self._config = config
        self._pool = ThreadPoolExecutor(1) if config.use_async_staging else None
        self._last: ConcurrentFuture[dict[str, Any]] | None = None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Returns a future of the copy; the copy itself without ``use_async_staging``.

        Args:
            state_dict: The state dict.
            kwargs: Ignored.
        """
        if self._pool is None:
            return _copy_to_host(state_dict)
        self._last = self._pool.submit(_copy_to_host, state_dict)
        return self._last

    def synchronize_staging(self) -> None:
        """Wait for the last copy."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Stop the thread."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
