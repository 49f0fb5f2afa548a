"""Weak references to tensors, and dictionaries keyed by tensor identity."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from torchlite._settings.module_dir import make_module_dir

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that compares by the identity of its object, not by the object's `__eq__`.

    Args:
        key: The object.
        callback: Function that is called with the reference when the object is gone. Default: none.

    Example:
        >>> from torchlite.utils.weak import WeakIdRef
        >>> x, y = torch.ones(2), torch.ones(2)
        >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(y)
        (True, False)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        theirs = other() if isinstance(other, weakref.ref) else None
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose keys are objects by identity, weakly referenced.

    Args:
        dict: Entries to begin with. Default: none.
        ref_type: Class of the references. Default: `WeakIdRef`.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.utils.weak import WeakIdKeyDictionary
        >>> x = torch.ones(2)
        >>> notes = WeakIdKeyDictionary({x: "ones"})
        >>> notes[x], torch.ones(2) in notes
        ('ones', False)
    """

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        for key, value in (dict or {}).items():
            self[key] = value

    def _ref(self, key: Any) -> Any:
        data = weakref.ref(self)

        def gone(reference: Any) -> None:
            owner = data()
            if owner is not None:
                owner.data.pop(reference, None)

        return self.ref_type(key, gone)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._ref(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # objects without weak reference support
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return a copy with the same keys and values."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def keyrefs(self) -> list:
        """The references to the keys."""
        return list(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; a call returns the tensor, or None if it is gone.

    Args:
        tensor: The tensor.

    Raises:
        AssertionError: The argument is no tensor.

    Example:
        >>> from torchlite.utils.weak import TensorWeakRef
        >>> x = torch.ones(2)
        >>> TensorWeakRef(x)() is x
        True
    """

    def __init__(self, tensor: Any) -> None:
        from torchlite import Tensor

        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected a Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()


__dir__ = make_module_dir(globals())
