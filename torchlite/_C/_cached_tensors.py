"""The tensors that a cache of results keeps alive, which PyTorch does not count as uses of their memory."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from torchlite._settings.fork_locks import acquire_before_fork


class _Cache:
    def __init__(self) -> None:
        self.enabled = False
        self.lock = acquire_before_fork(threading.Lock())
        self.kept: dict[int, weakref.ref[Any]] = {}


_cache = _Cache()


def _set_cached_tensors_enabled(enabled: bool) -> None:
    """Say whether tensors are noted as cached."""
    _cache.enabled = enabled


def _add_cached_tensor(tensor: Any) -> None:
    """Note a tensor as cached, until it is removed or gone. RuntimeError while that is off."""
    if not _cache.enabled:
        raise RuntimeError("cached tensors are not enabled: torch._C._set_cached_tensors_enabled(True)")
    with _cache.lock:
        key = id(tensor)
        _cache.kept[key] = weakref.ref(tensor, lambda _: _cache.kept.pop(key, None))


def _remove_cached_tensor(tensor: Any) -> None:
    """Note that a tensor is not cached any more. RuntimeError while that is off."""
    if not _cache.enabled:
        raise RuntimeError("cached tensors are not enabled: torch._C._set_cached_tensors_enabled(True)")
    with _cache.lock:
        _cache.kept.pop(id(tensor), None)


def _is_cached_tensor(tensor: Any) -> bool:
    """Whether a tensor is noted as cached."""
    return _cache.enabled and id(tensor) in _cache.kept
