"""SciPy's special functions called on Tensors: the ufuncs of `scipy.special` that torch has, by name. They are
differentiable and return Tensors. The loops' dtypes are SciPy's. `numpy_protocols` runs the other ones on arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import special
from .._dispatch.public_functions import torch

# SciPy's name -> the op. The ufuncs behind scipy.special.zeta have private names.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(special, name)
        for name in (
            "entr", "erfcx", "expit", "gammainc", "gammaincc", "gammaln", "i0e", "i1", "i1e", "log_ndtr", "ndtr",
            "ndtri", "psi", "xlog1py",
        )
    },
    "exp10": lambda x: torch.pow(10.0, x),
    "log_expit": lambda x: -torch.logaddexp(torch.zeros_like(x), -x),
    "_riemann_zeta": lambda x: special.zeta(x, 1.0),
    "_zeta": special.zeta,
}  # fmt: skip
# Arguments for which SciPy has values and torch raises.
_REAL_ONLY = frozenset(_FUNCTIONS) - {"exp10", "expit"}


def find_special(name: str, is_complex: bool) -> Callable[..., Any] | None:
    """Return the function of Tensors for a SciPy ufunc's name; None if torch has none for the arguments."""
    return None if is_complex and name in _REAL_ONLY else _FUNCTIONS.get(name)
