"""`patch` for settings modules: changes settings temporarily."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def make_patch(module: str, settings: dict[str, Any]) -> Any:
    """Return the function `patch` for the globals of a settings module."""

    @contextlib.contextmanager
    def patch(changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        """Change settings within a context or decorated function: `patch("verbose", True)`, `patch({"verbose": True})`
        or `patch(verbose=True)`. Raise AttributeError for an unknown setting.
        """
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
        for name in wanted:
            if name not in settings:
                raise AttributeError(f"{module}.{name} does not exist")
        before = {name: settings[name] for name in wanted}
        settings.update(wanted)
        try:
            yield
        finally:
            settings.update(before)

    return patch
