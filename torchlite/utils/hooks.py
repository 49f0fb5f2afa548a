"""Handles that take a hook away again."""

from .._dispatch.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
