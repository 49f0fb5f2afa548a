"""Swapping of the contents of two tensors; references to them stay valid."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from torchlite import Tensor

_SLOTS = ("_tl_array", "_tl_kernels", "dtype", "_tl_node", "_tl_meta")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swap two tensors: data, class, gradient, history and attributes. RuntimeError if a weak reference to one of them
    exists; TypeError or AttributeError if their classes are incompatible.

    >>> a, b = torchlite.zeros(2), torchlite.ones(3)
    >>> torchlite.utils.swap_tensors(a, b)
    >>> a
    tensor([1., 1., 1.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"swap_tensors(): {name} must be Tensor, not {type(tensor).__name__}")
        if any(not isinstance(ref.__callback__, weakref.finalize) for ref in weakref.getweakrefs(tensor)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    first, second = dict(t1.__dict__), dict(t2.__dict__)
    for tensor, attributes in ((t1, second), (t2, first)):
        tensor.__dict__.clear()
        tensor.__dict__.update(attributes)
    for slot in (vars(torch.Tensor)[name] for name in _SLOTS):  # a subclass may have something else by the name
        for tensor, found in zip((t1, t2), (_take_slot(slot, t2), _take_slot(slot, t1)), strict=True):
            for value in found:
                slot.__set__(tensor, value)


def _take_slot(slot: Any, tensor: Tensor) -> list[Any]:
    """Remove the value of a tensor's slot and return it in a list, which is empty if the slot was unset."""
    try:
        found = [slot.__get__(tensor)]
    except AttributeError:
        return []
    slot.__delete__(tensor)
    return found
