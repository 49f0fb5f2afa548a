"""Special functions under PyTorch's names: `torch.special.erfcx`, `torch.special.zeta`, ... Each is an op declared in
`torchlite/_ops`.
"""

from __future__ import annotations

from typing import Any

from ._dispatch import NAMESPACES, namespace_function


def __getattr__(name: str) -> Any:
    if name in NAMESPACES["special"]:
        found = globals()[name] = namespace_function("special", name)
        return found
    raise AttributeError(f"module 'torchlite.special' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(NAMESPACES["special"])
