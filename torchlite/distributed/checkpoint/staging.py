"""Copies of a state dict that a save in the background writes while training goes on."""

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
    """What copies a state dict for `async_save`."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `synchronize_staging` is to be called once the save was begun."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """A copy of a state dict, or a future of one."""

    def synchronize_staging(self) -> None:
        """Wait until the copy is made."""

    def close(self) -> None:
        """Let go of what copies need."""


def _copy_to_host(value: Any, kept: Any = None) -> Any:
    """A copy of all tensors, in the host's memory, in those of an earlier copy where these fit; all else as it is."""
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
    """Copies at once. cache_staged_state_dict: the next copy takes this one's memory."""

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict[str, Any] | None = None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The copy."""
        made = _copy_to_host(state_dict, self.state_dict_cache)
        if self.cache_staged_state_dict:
            self.state_dict_cache = made
        return made  # type: ignore[no-any-return]

    def synchronize_staging(self) -> None:
        """The copy was made at once."""

    def close(self) -> None:
        """The memory of the last copy goes."""
        self.state_dict_cache = None


@dataclass
class StagingOptions:
    """How copies are made; on the host there is one way, in the caller's thread or, with `use_async_staging`, not."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


_DEFAULTS = StagingOptions()


class DefaultStager(AsyncStager):
    """Copies in a thread of its own, as its options say. The state dict must stay as it is until the copy is made."""

    def __init__(self, config: StagingOptions = _DEFAULTS) -> None:
        self._config = config
        self._pool = ThreadPoolExecutor(1) if config.use_async_staging else None
        self._last: ConcurrentFuture[dict[str, Any]] | None = None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        """The copy, or a future of it."""
        if self._pool is None:
            return _copy_to_host(state_dict)
        self._last = self._pool.submit(_copy_to_host, state_dict)
        return self._last

    def synchronize_staging(self) -> None:
        """Wait for the last copy."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
