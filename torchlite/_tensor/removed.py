"""Functions that PyTorch has removed, whose names still say what to use in their place."""

from __future__ import annotations

from typing import Any, NoReturn

_WORDS = {
    "eig": "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
    "mimicking complex tensors.\n\nSee `torch.linalg.eig` for the replacement.",
    "lstsq": "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n\nSee `torch.linalg.lstsq` for the "
    "replacement.",
    "matrix_rank": "\n\nPlease use the `torch.linalg.matrix_rank` function instead.",
    "symeig": "The default behavior has changed from using the upper triangular portion of the matrix by default to "
    "using the lower triangular portion.\n\nSee `torch.linalg.eigh` for the replacement.",
    "solve": "`torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments "
    "reversed and does not return the LU factorization.\n\nSee `torch.linalg.solve` for the replacement.",
}


def _removed(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. {_WORDS[name]}".replace(". \n", ".\n")
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed from PyTorch: RuntimeError. Use `torch.linalg.{name}` or its successor."
    return function


eig, lstsq, matrix_rank, symeig, solve = (_removed(name) for name in ("eig", "lstsq", "matrix_rank", "symeig", "solve"))
