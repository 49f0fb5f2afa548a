"""Printing, by the name of PyTorch's module."""

from __future__ import annotations

from typing import Any

from ._tensor.printing import OPTIONS as PRINT_OPTS
from ._tensor.printing import add_suffixes, format_array, get_printoptions, printoptions, set_printoptions, tensor_repr

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self: Any, indent: int) -> str:
    """A tensor's numbers as they are printed, lines after the first indented."""
    return format_array(self.detach().cpu()._host_array(), indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text of a tensor closed by what stands behind its numbers."""
    return add_suffixes(tensor_str, suffixes, indent, force_newline)


def _str(self: Any, *, tensor_contents: Any = None) -> str:
    """`repr` of a tensor. `tensor_contents`: the text for its numbers."""
    return tensor_repr(self, tensor_contents)


def _str_intern(inp: Any, *, tensor_contents: Any = None) -> str:
    """The same, as classes with a `__repr__` of their own call it."""
    return tensor_repr(inp, tensor_contents)
