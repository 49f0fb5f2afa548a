"""Handles that take a hook away again, and the hooks of modules' backward passes."""

from typing import TYPE_CHECKING

from .._dispatch.hooks import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle"]

if TYPE_CHECKING:
    from ._backward_hook import BackwardHook
else:

    def __getattr__(name):
        if name == "BackwardHook":
            from ._backward_hook import BackwardHook

            globals()[name] = BackwardHook
            return BackwardHook
        raise AttributeError(f"module 'torchlite.utils.hooks' has no attribute '{name}'")
