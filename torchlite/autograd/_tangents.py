"""Tangents of tensors: their storage and memory layout.

A level of forward-mode differentiation stores a tensor's tangent in the tensor's `AutogradMeta`, under the level as
key. The tangent of a view is the same view of its base's tangent, so a write through one is visible in the other. A
tensor that represents one example inside `vmap` uses the tangent of its batch; a tangent may be batched when its tensor
is not.
"""

from __future__ import annotations

import contextlib
from typing import Any

from .._dispatch import MODE, F
from .._dispatch.autograd_graph import AutogradMeta, autograd_meta_of, base_of
from .._dispatch.interceptors import stack
from .._tensor import Tensor


class vmap_levels:
    """Context manager in which the `vmap` levels of these tensors are the active ones."""

    def __init__(self, *tensors: Any, apart: Any = None):
        self.tensors, self.apart = tensors, apart

    def __enter__(self):
        self.contexts = contextlib.ExitStack()
        found: list = [self.apart]
        for tensor in self.tensors:
            for level in levels_of(tensor) if isinstance(tensor, Tensor) else ():
                if not any(level is other for other in found):
                    found.append(level)
        for level in sorted(found[1:], key=lambda level: level.number):
            self.contexts.enter_context(level.again())

    def __exit__(self, *exc):
        self.contexts.close()


def tangent_of(tensor: Any, level: Any) -> Any:
    """The tangent that a tensor has at a level, or None."""
    if tensor._tl_level is not None:
        with level.below_level():
            inner = tangent_of(tensor._value, level)
            return None if inner is None else tensor._batch_like(inner)
    found = tensor._tl_meta
    if found is None:
        return None
    if found.__class__ is AutogradMeta and found.tangents is not None and level in found.tangents:
        return found.tangents[level]
    base = base_of(tensor)
    if base is None or found.__class__ is AutogradMeta and found.apart or has_internal_overlap(base):
        return None
    whole = _make_base_tangent(base, level)
    if whole is None:
        return None
    with level.below_level(), vmap_levels(whole):
        part = _make_view_tangent(tensor, base, whole)
    _store_tangent(tensor, level, part)
    return part


def stored_tangent(tensor: Any, level: Any) -> Any:
    """The tangent that was given to a tensor at a level, or None."""
    if tensor._tl_level is not None:
        inner = stored_tangent(tensor._value, level)
        return None if inner is None else tensor._batch_like(inner)
    found = tensor._tl_meta
    return None if found.__class__ is not AutogradMeta or found.tangents is None else found.tangents.get(level)


def _store_tangent(tensor: Any, level: Any, tangent: Any) -> None:
    meta = autograd_meta_of(tensor)
    if meta.tangents is None:
        meta.tangents = {}
    meta.tangents[level] = tangent
    level.known.add(meta)


def _make_base_tangent(base: Any, level: Any) -> Any:
    """The tangent of a base, lying as it does, so that its views have parts of it."""
    found = tangent_of(base, level)
    if found is None or has_same_layout(base, found) or has_internal_overlap(base):
        return found
    with level.below_level(), vmap_levels(found):
        made = zeros_like(base, found)
        made.copy_(found)
    _store_tangent(base, level, made)
    return made


def has_internal_overlap(tensor: Any) -> bool:
    """True if elements share places in memory."""
    while tensor._tl_level is not None:
        tensor = tensor._value
    return any(n > 1 and step == 0 for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _make_view_tangent(view: Any, base: Any, whole: Any) -> Tensor:
    """The view's tangent, as a view of its base's tangent."""
    offset, start = view.storage_offset(), base.storage_offset()
    if base.dtype.is_complex and not view.dtype.is_complex:
        whole, start = F.view_as_real(whole), 2 * start
    elif view.dtype.is_complex and not base.dtype.is_complex:
        whole, start = F.view_as_complex(F.unflatten(whole, -1, (-1, 2)) if whole.shape[-1] != 2 else whole), start // 2
    part = F._as_strided(whole, view.shape, view.stride(), offset - start + whole.storage_offset())
    return part.conj() if view.is_conj() and not base.is_conj() else part


def has_same_layout(tensor: Any, tangent: Any) -> bool:
    """True if a tangent has its tensor's memory layout, so that views of one correspond to views of the other."""
    if tensor.is_conj() != tangent.is_conj() or tensor.is_neg() != tangent.is_neg():
        return False
    if tensor.shape != tangent.shape:
        return False
    numbers = zip(tensor.shape, tensor.stride(), tangent.stride(), strict=True)
    if tensor.numel() == 0:
        return True
    if any(n > 1 and a != b for n, a, b in numbers):
        return False
    if tangent._tl_level is not None:
        return True
    return tensor.storage_offset() == tangent.storage_offset() and _empty_like(tensor) == _empty_like(tangent)


def _empty_like(tensor: Any) -> int:
    return tensor.untyped_storage().nbytes() // tensor.dtype.itemsize


def levels_of(tangent: Any) -> list:
    """The levels of `vmap` in which a tensor is batched."""
    found = []
    while tangent._tl_level is not None:
        found.append(tangent._tl_level)
        tangent = tangent._value
    return found


def is_writable(target: Any, value: Any) -> bool:
    """True if one tangent can be written into another, which must be batched if the first is, and have no overlapping
    elements.
    """
    mine = levels_of(target)
    return not has_internal_overlap(target) and all(any(level is other for other in mine) for level in levels_of(value))


def zeros_like(tensor: Any, tangent: Any) -> Tensor:
    """A tangent of zeros with a tensor's memory layout; batched if `tangent` is."""
    if tangent._tl_level is not None:
        return tangent._to_same_levels(F._zeros_like(tensor.detach()))
    if tensor._tl_kernels.wraps or tensor._tl_is_sparse:
        return F._zeros_like(tensor.detach())
    flat = tensor.new_zeros(_empty_like(tensor))
    made = F._as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset())
    return made.detach()


def set_tangent(tensor: Any, level: Any, tangent: Any) -> None:
    """Set a tensor's tangent at a level; for a view, its base's too."""
    if tensor._tl_level is not None:
        with level.below_level():
            return set_tangent(tensor._value, level, tensor._as_batch(tangent))
    base, found = base_of(tensor), tensor._tl_meta
    if has_internal_overlap(tensor):  # such a tensor is never written to
        return _store_tangent(tensor, level, tangent)
    if base is not None and not (found.__class__ is AutogradMeta and found.apart):
        with level.below_level(), vmap_levels(tangent):
            whole = _make_base_tangent(base, level)
            if whole is None and base.shape == tensor.shape and base.stride() == tensor.stride():
                set_tangent(base, level, tangent)
                tangent = tangent_of(base, level)
            else:
                if whole is None:
                    whole = zeros_like(base, tangent)
                    _store_tangent(base, level, whole)
                elif not is_writable(whole, tangent):
                    before, whole = whole, zeros_like(base, tangent if tangent._tl_level is not None else whole)
                    whole.copy_(before)
                    _store_tangent(base, level, whole)
                part = _make_view_tangent(tensor, base, whole)
                part.copy_(tangent)
                tangent = part
    elif not has_same_layout(tensor, tangent):
        with level.below_level(), vmap_levels(tangent):
            copied: Any = zeros_like(tensor, tangent)
            if tensor.is_conj():
                copied = copied.conj()
            if tensor.is_neg():
                copied = copied._neg_view()
            copied.copy_(tangent)
            tangent = copied
    return _store_tangent(tensor, level, tangent)


def copy_tangents(source: Any, target: Any, change: Any = None) -> Tensor:
    """The target with the tangents that the source has at all levels, or what `change` makes of them; both lie
    alike.
    """
    for item in MODE.forwards:  # also the levels above, which saved tensors of backward refer to
        tangent = tangent_of(source, item) if item in stack.items else stored_tangent(source, item)
        if tangent is not None:
            assign_tangent(target, item, tangent if change is None else change(tangent))
    return target


def assign_tangent(target: Any, level: Any, tangent: Any) -> None:
    """Set a tensor's tangent, which has its layout or does not need it."""
    if target._tl_level is not None:
        with level.below_level():
            assign_tangent(target._value, level, target._as_batch(tangent))
    else:
        _store_tangent(target, level, tangent)


def visible_tangents(tensor: Any) -> list:
    """The tangents of a tensor at the active levels."""
    found = [tangent_of(tensor, item) for item in stack.items if item.is_forward]
    return [tangent for tangent in found if tangent is not None]


def drop_tangents(tensor: Any) -> None:
    """Remove a tensor's tangents."""
    meta = autograd_meta_of(tensor)
    meta.tangents, meta.apart = None, True


def map_tangents(source: Any, target: Any, function: Any) -> None:
    """Set the target's tangents to a function of the source's tangents, at all active levels."""
    for item in stack.items:
        tangent = tangent_of(source, item) if item.is_forward else None
        if tangent is not None:
            with item.below_level(), vmap_levels(tangent):
                set_tangent(target, item, function(tangent))
