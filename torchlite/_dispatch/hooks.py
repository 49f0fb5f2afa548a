"""RemovableHandle and saved-tensor hooks."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .dispatch_state import recording
from .interceptors import count_active


def _weak_reference(hooks: Any) -> Callable[[], Any]:
    """A weak reference to a dictionary of hooks, if its class supports that; else a strong one."""
    try:
        return weakref.ref(hooks)
    except TypeError:
        return lambda: hooks


class RemovableHandle:
    """Handle of a registered hook; `remove()` removes it. Also a context manager.

    `RemovableHandle(hooks)` makes an id for the caller to use as a key; with a hook given, it is put there at once.
    extra_dict: a dictionary, or a list of them, that may have something more under the id. A handle can be pickled with
    the dictionaries.
    """

    next_id = 0

    def __init__(self, hooks_dict: Any, hook: Callable[..., Any] | None = None, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = _weak_reference(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = extra_dict if isinstance(extra_dict, list) else [extra_dict] if extra_dict is not None else []
        self.extra_dict_ref = tuple(map(_weak_reference, extra))
        if hook is not None:
            hooks_dict[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; again is harmless."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        if not self.extra_dict_ref:
            return self.hooks_dict_ref(), self.id
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, *rest = state
        extra = rest[0] if rest and rest[0] is not None else ()
        self.hooks_dict_ref, *others = (_weak_reference(OrderedDict() if d is None else d) for d in (hooks, *extra))
        self.extra_dict_ref = tuple(others)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> Any:
        self.remove()


RemovableHandle.__module__ = "torchlite.utils.hooks"  # where programs and pickles find it


class PackedTensor:
    """A saved tensor that saved-tensor hooks packed. `edge` is the edge of the tensor's gradient: None, a leaf, a node
    or an output of one. A number is an index of the saving node's outputs, -1 for its only one.
    """

    __slots__ = ("value", "unpack", "edge")

    def __init__(self, value, unpack, edge):
        self.value, self.unpack, self.edge = value, unpack, edge

    def open(self):
        """Unpack the tensor."""
        before = saved_tensor_hooks.stack
        found = self.unpack(self.value)
        if saved_tensor_hooks.stack is not before:  # what it entered or left is so for itself alone
            count_active(len(before) - len(saved_tensor_hooks.stack))
            saved_tensor_hooks.stack = before
        if not hasattr(found, "_tl_array"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(found).__name__}"
            )
        return found


class _SavedTensorHooks(threading.local):
    """Each thread's pairs of hooks, the innermost last, and why they are forbidden, if they are."""

    stack: list[tuple[Any, Any]] = []
    forbidden: str | None = None


saved_tensor_hooks = _SavedTensorHooks()


def pack_saved_tensor(tensor, edge) -> PackedTensor | None:
    """Pack a tensor with the innermost saved-tensor hooks; None if there are none."""
    if not saved_tensor_hooks.stack:
        return None
    return pack_with(*saved_tensor_hooks.stack[-1], tensor, edge)


def pack_with(pack_hook, unpack_hook, tensor, edge) -> PackedTensor:
    """Pack a tensor with these hooks. RuntimeError if the pack hook writes to it."""
    counts = not tensor.is_inference()
    before = tensor._version if counts else 0
    with recording(False):
        value = pack_hook(tensor)
    if counts and tensor._version != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
            "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
            "you need to perform in-place operations on the input to a pack hook."
        )
    return PackedTensor(value, unpack_hook, edge)
