"""`torch`'s functions by their public names, for modules that `import torchlite` itself stands on."""

from __future__ import annotations

from typing import Any

from .op_functions import namespace_function


class _PublicFunctions:
    """`torch.zeros_like` … as attributes: the functions of op records, no others."""

    def __getattr__(self, name: str) -> Any:
        found = namespace_function("torch", name)
        setattr(self, name, found)
        return found


torch = _PublicFunctions()
