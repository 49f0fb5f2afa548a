"""Linear algebra under PyTorch's names: `torch.linalg.svd`, `torch.linalg.solve`, ... Each is an op declared in
`torchlite/_ops/linalg_*.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._dispatch import NAMESPACES, namespace_function
from ._ops._linalg_common import LinAlgError

__all__ = ["LinAlgError"]
# Names that only the Array API has.
LINALG = ("matrix_transpose", "outer", "tensordot", "trace")


if TYPE_CHECKING:
    from ._stubs.linalg import *
else:

    def __getattr__(name):
        if name in NAMESPACES["linalg"]:
            found = globals()[name] = namespace_function("linalg", name)
            return found
        if name in LINALG:
            from ._tensor import array_api_functions

            return getattr(array_api_functions, name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*NAMESPACES["linalg"], *LINALG, *__all__})
