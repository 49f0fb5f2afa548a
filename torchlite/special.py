"""Special functions under PyTorch's names: `torch.special.erfcx`, `torch.special.zeta`, ... Each is an op declared in
`torchlite/_ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._dispatch import NAMESPACES, namespace_function

if TYPE_CHECKING:
    from ._stubs.special import *
else:

    def __getattr__(name):
        if name in NAMESPACES["special"]:
            found = globals()[name] = namespace_function("special", name)
            return found
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(NAMESPACES["special"])
