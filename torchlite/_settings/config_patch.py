"""`patch` for settings modules: changes settings temporarily. Settings may have older names."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any


def make_patch(module: str, settings: dict[str, Any], aliases: dict[str, str] | None = None) -> Any:
    """Return the function `patch` for the globals of a settings module. aliases: other names of settings."""

    @contextlib.contextmanager
    def patch(changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        """Change settings within a context or decorated function: `patch("verbose", True)`, `patch({"verbose": True})`
        or `patch(verbose=True)`. Raise AttributeError for an unknown setting.
        """
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
        wanted = {(aliases or {}).get(name, name): one for name, one in wanted.items()}
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


class _SettingsModule(types.ModuleType):
    """A settings module that knows some settings by two names."""

    _aliases: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if name != "_aliases" and name in self._aliases:
            return getattr(self, self._aliases[name])
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._aliases.get(name, name), value)


def add_aliases(module: str) -> None:
    """Let settings of a module be read and set by other names too: those that it has in `_aliases`."""
    sys.modules[module].__class__ = _SettingsModule
