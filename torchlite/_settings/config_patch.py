"""Settings in a module's names, and their change for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def make_patch(module: str, settings: dict[str, Any]) -> Any:
    """The function `patch` of a module of settings, its globals."""

    @contextlib.contextmanager
    def patch(changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        """Within this (or a function that it decorates) settings are others: `patch("verbose", True)`,
        `patch({"verbose": True})` or `patch(verbose=True)`. AttributeError for a setting that there is not.
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
