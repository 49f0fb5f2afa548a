"""Handles that take a hook away again."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


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
