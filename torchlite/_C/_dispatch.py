"""The keys by which PyTorch's dispatcher knows devices and what is done around an op."""

from __future__ import annotations

import contextlib
import enum
from typing import Any

_DEVICES = ("CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta").split()
_BASE_KEYS = (
    "Undefined Dense _ _ _ Quantized _ _ Sparse SparseCsr NestedTensor BackendSelect _ Python "
    "FuncTorchDynamicLayerBackMode Functionalize Conjugate Negative ZeroTensor ADInplaceOrView AutogradOther "
    "AutogradFunctionality AutogradNestedTensor _ AutocastCPU _ _ AutocastXPU AutocastIPU AutocastHPU _ AutocastMPS "
    "AutocastCUDA AutocastPrivateUse1 FuncTorchBatched _ FuncTorchVmapMode _ _ FuncTorchGradWrapper _ "
    "PythonTLSSnapshot FuncTorchDynamicLayerFrontMode _ _ PreDispatch PythonDispatcher"
).split()
_GROUPS = (
    "Autograd CompositeImplicitAutograd FuncTorchBatchedDecomposition CompositeImplicitAutogradNestedTensor "
    "CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional"
).split()


def _keys() -> dict[str, int]:
    """PyTorch's numbers: single keys, then for each kind one a device, then keys that stand for several."""
    found = {name: i for i, name in enumerate(_BASE_KEYS) if name != "_"}
    for kind in ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd"):
        start = max(found.values()) + (2 if not kind else 1)
        found |= {f"{kind}{device}": start + 1 + i for i, device in enumerate(_DEVICES)}
    first = max(found.values()) + 1
    return found | {name: first + i for i, name in enumerate(_GROUPS)}


DispatchKey = enum.IntEnum("DispatchKey", _keys(), module=__name__)  # type: ignore[misc]
DispatchKey.__doc__ = "The keys of PyTorch's dispatcher. torchlite's own dispatch does not use them."


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


class _ExcludeDispatchKeyGuard:
    """Within this what some keys stand for is left out: of these keys torchlite knows autocast's, which is off."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self.types = [kind for kind in ("cpu", "cuda") if keys.has(DispatchKey[f"Autocast{kind.upper()}"])]

    def __enter__(self) -> None:
        from ..amp.autocast_mode import autocast

        self.stack = contextlib.ExitStack()
        for kind in self.types:
            self.stack.enter_context(autocast(kind, enabled=False))

    def __exit__(self, *error: Any) -> None:
        self.stack.close()


class _AutoDispatchBelowAutograd:
    """Within this, ops are called below autograd: nothing gets a history."""

    def __enter__(self) -> None:
        from .._dispatch.dispatch_state import recording

        self.off = recording(False)
        self.off.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.off.__exit__(*error)
