"""The keys by which PyTorch's dispatcher knows devices and what is done around an op."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["DispatchKey", "DispatchKeySet"]


class DispatchKey(enum.IntEnum):
    """The keys that programs name."""

    Undefined = 0
    Dense = 1
    CPU = 2
    CUDA = 3
    Meta = 4
    XPU = 5
    MPS = 6
    QuantizedCPU = 7
    SparseCPU = 8
    SparseCUDA = 9
    BackendSelect = 10
    Python = 11
    Functionalize = 12
    ADInplaceOrView = 13
    AutogradOther = 14
    AutogradFunctionality = 15
    AutogradCPU = 16
    AutogradCUDA = 17
    AutogradMeta = 18
    AutocastCPU = 19
    AutocastCUDA = 20
    FuncTorchBatched = 21
    PythonTLSSnapshot = 22
    PreDispatch = 23
    Autograd = 24
    CompositeImplicitAutograd = 25
    CompositeExplicitAutograd = 26


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self.keys = frozenset(keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether the set has a key."""
        return key in self.keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """The set with one key more."""
        return DispatchKeySet(*self.keys, key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(*(self.keys - {key}))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self.keys & other.keys))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, DispatchKeySet) and self.keys == other.keys

    def __hash__(self) -> int:
        return hash(self.keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in sorted(self.keys))})"


def _dispatch_has_kernel_for_dispatch_key(name: str, dispatch_key: Any) -> bool:
    """Whether PyTorch's dispatcher has a kernel: torchlite's ops are not its."""
    return False
