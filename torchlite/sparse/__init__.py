"""`torch.sparse`: products, sums and softmax of sparse tensors, and the switch for invariant checks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._sparse.constructors import INVARIANT_CHECKS, spdiags
from .._sparse.gradcheck import as_dense_function
from .._sparse.matmul_ops import sampled_addmm, sparse_addmm, sparse_mm
from .._sparse.reductions import softmax as _softmax
from .._sparse.reductions import sparse_sum
from .._sparse.sparse_tensor import no_kernel_error

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "spdiags", "spsolve", "sum",
]  # fmt: skip


def mm(mat1, mat2, reduce=None):
    """Return the product of a sparse matrix and a matrix that is dense or sparse: (m, k) and (k, n) to (m, n). The
    gradient of a sparse matrix is sparse, with the same indices.

    With `reduce` ("sum", "mean", "amax", "amin") the products of each row of a CSR matrix are reduced by that function.
    RuntimeError for shapes or dtypes that do not fit.

    >>> import torchlite as torch
    >>> torch.sparse.mm(torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse(), torch.ones(2, 1))
    tensor([[2.],
            [0.]])
    """
    return sparse_mm(mat1, mat2, reduce)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """Return `beta * mat + alpha * mat1 @ mat2` with a sparse `mat1`; its gradient has the same indices."""
    return sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """Sum the elements of a COO tensor over all dimensions or those in `dim`. Sparse if a sparse dimension remains. The
    gradient has the indices of the input.

    >>> import torchlite as torch
    >>> torch.sparse.sum(torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse())
    tensor(5.)
    """
    return sparse_sum(input, dim, dtype)


def softmax(input, dim, *, dtype=None):
    """Softmax of a COO tensor along a dimension, over its specified elements: the others count as minus infinity.

    >>> import torchlite as torch
    >>> torch.sparse.softmax(torch.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse(), 1).to_dense()
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    return _softmax(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`, of the specified elements."""
    return _softmax(input, dim, dtype, log=True)


def spsolve(input, other, *, left=True):
    """Raise NotImplementedError: PyTorch solves sparse systems with cuDSS, which no backend has."""
    raise no_kernel_error("_spsolve", input)


class check_sparse_tensor_invariants:
    """Switch of the invariant checks in constructors of sparse tensors: `enable()`, `disable()`, `is_enabled()`; also a
    context manager or decorator.

    >>> import torchlite as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse_coo_tensor([[5]], [1.0], (2,))
    Traceback (most recent call last):
    RuntimeError: size is inconsistent with indices: for dim 0, size is 2 but found index 5
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """True if checks are on."""
        return INVARIANT_CHECKS.on

    @staticmethod
    def enable() -> None:
        """Enable the checks."""
        INVARIANT_CHECKS.on = True

    @staticmethod
    def disable() -> None:
        """Disable the checks."""
        INVARIANT_CHECKS.on = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting."
            )
        self.saved_state = INVARIANT_CHECKS.on
        INVARIANT_CHECKS.on = self.state

    def __exit__(self, *exc: object) -> None:
        INVARIANT_CHECKS.on = bool(self.saved_state)
        self.saved_state = None

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """Return a gradcheck that accepts sparse inputs: it perturbs their specified values with `masked=True`, else all
    elements.
    """

    def checked(func: Callable, inputs: Any, **kwargs: Any) -> bool:
        return gradcheck(*as_dense_function(func, inputs, kwargs.get("masked", False)), **kwargs)

    checked.masked = True  # type: ignore[attr-defined]
    return checked


def to_sparse_semi_structured(original_tensor, transposed: bool = False):
    """Raise RuntimeError: 2:4 sparsity needs NVIDIA kernels that torchlite does not have."""
    raise RuntimeError(
        f"Error original_tensor.device= {original_tensor.device} is not supported! Only CUDA tensors are currently "
        "supported."
        if original_tensor.device.type != "cuda"
        else "semi-structured (2:4) sparsity needs kernels of NVIDIA's that torchlite has not"
    )


def __getattr__(name: str) -> Any:
    if "emi_structured" in name or name.startswith("SparseSemiStructured"):
        raise AttributeError(
            f"torch.sparse.{name}: semi-structured (2:4) sparsity needs kernels of NVIDIA's that torchlite has not"
        )
    if name.endswith("Tensor"):
        from . import _legacy_tensor_types

        if name in _legacy_tensor_types.NAMES:
            made = globals()[name] = _legacy_tensor_types.find_sparse_type(name)
            return made
    raise AttributeError(f"module 'torchlite.sparse' has no attribute '{name}'")


__dir__ = make_module_dir(globals())
