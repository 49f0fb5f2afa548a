"""Hooks: handles that take one away again, and what saved-tensor hooks make of what a node saves."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

_ids = itertools.count()


class RemovableHandle:
    """Remembers where a hook was put; `remove()` takes it away. Also a context manager.

    `RemovableHandle(hooks)` makes an id for the caller to use as a key; with a hook given, it is put there at once.
    """

    def __init__(self, hooks_dict: Any, hook: Callable[..., Any] | None = None, *, extra_dict: Any = None) -> None:
        self.id = next(_ids)
        try:
            self._where: Callable[[], Any] = weakref.ref(hooks_dict)
        except TypeError:
            self._where = lambda: hooks_dict
        self._extra = [extra_dict] if extra_dict is not None and not isinstance(extra_dict, list) else extra_dict or []
        if hook is not None:
            hooks_dict[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; again is harmless."""
        for where in (self._where(), *self._extra):
            if where is not None:
                where.pop(self.id, None)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> Any:
        self.remove()


class Packed:
    """A saved tensor that saved-tensor hooks packed."""

    __slots__ = ("value", "unpack")

    def __init__(self, value, unpack):
        self.value, self.unpack = value, unpack


class _SavedTensorHooks(threading.local):
    """Each thread's pairs of hooks, the innermost last; None where they are forbidden."""

    stack: list[tuple[Any, Any] | None] = []


saved_tensor_hooks = _SavedTensorHooks()


def pack(tensor) -> Packed | None:
    """What the innermost saved-tensor hooks make of a tensor that a node saves; None when there are none."""
    if not saved_tensor_hooks.stack or saved_tensor_hooks.stack[-1] is None:
        return None
    pack_hook, unpack_hook = saved_tensor_hooks.stack[-1]
    return Packed(pack_hook(tensor.detach()), unpack_hook)
