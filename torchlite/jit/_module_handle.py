"""ModuleHandle: the C++ module API of PyTorch (`module._c`)."""

from __future__ import annotations

from typing import Any

from . import _freeze, _save
from ._script_modules import RecursiveScriptModule


class ModuleHandle:
    """Access to a program's attributes by name."""

    def __init__(self, module: Any):
        self._module = module

    def hasattr(self, name: str) -> bool:
        """True if the class has an attribute."""
        return name in self._module._script.types

    def getattr(self, name: str) -> Any:
        """Return an attribute's value, a submodule's handle. Raise RuntimeError if there is none."""
        if not self.hasattr(name):
            raise RuntimeError(f"Module {self._module.original_name} has no attribute {name}")
        found = getattr(self._module, name)
        return ModuleHandle(found) if isinstance(found, RecursiveScriptModule) else found

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute."""
        setattr(self._module, name, value._module if isinstance(value, ModuleHandle) else value)

    def _method_names(self) -> list[str]:
        return list(self._module._script.methods)

    def _has_method(self, name: str) -> bool:
        return name in self._module._script.methods

    def _get_method(self, name: str) -> Any:
        if not self._has_method(name):
            raise AttributeError(f"Method '{name}' is not defined.")
        return getattr(self._module, name)

    def _get_methods(self) -> list:
        return [self._get_method(name) for name in self._method_names()]

    def _type(self) -> str:
        return self._module._script.name

    @property
    def qualified_name(self) -> str:
        """Return the qualified class name."""
        return self._module._script.name

    def dump_to_str(self, code: bool, attrs: bool, params: bool) -> str:
        """Return the text of the methods."""
        return "\n".join(self._module._script.texts.values())

    def save(self, f: Any, **kwargs: Any) -> None:
        """Write the program to a file."""
        _save.save(self._module, f, kwargs.get("_extra_files"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_module":
            raise AttributeError(name)
        return getattr(self._module, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._module(*args, **kwargs)


def _freeze_module(
    module: ModuleHandle, preservedAttrs: Any = (), freezeInterfaces: bool = True, preserveParameters: bool = False
) -> ModuleHandle:
    """Return the handle of a frozen copy."""
    return ModuleHandle(_freeze.freeze(module._module, list(preservedAttrs)))
