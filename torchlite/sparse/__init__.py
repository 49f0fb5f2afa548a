"""`torch.sparse`: products, sums and softmax of sparse tensors, and the switch for invariant checks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._sparse.constructors import INVARIANT_CHECKS
from .._sparse.constructors import spdiags as _spdiags
from .._sparse.gradcheck import as_dense_function
from .._sparse.matmul_ops import sampled_addmm as _sampled_addmm
from .._sparse.matmul_ops import sparse_addmm, sparse_mm
from .._sparse.reductions import softmax as _softmax
from .._sparse.reductions import sparse_sum
from .._sparse.sparse_tensor import no_kernel_error

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "spdiags", "spsolve", "sum",
]  # fmt: skip


def mm(mat1, mat2, reduce=None):
    """Multiply a sparse matrix by a matrix that is dense or sparse.

    The gradient of a sparse matrix is sparse, with the same indices. At least one of the matrices is sparse.

    Args:
        mat1: Matrix of shape ``(m, k)``.
        mat2: Matrix of shape ``(k, n)``.
        reduce: How the products of a row of a CSR matrix ``mat1`` are reduced: ``"sum"``, ``"mean"``, ``"amax"`` or
            ``"amin"``. Default: ``None``, by their sum.

    Returns:
        The product of shape ``(m, n)``, sparse if both matrices are, else dense.

    Raises:
        RuntimeError: Shapes or dtypes do not fit, or ``reduce`` has another value.
        NotImplementedError: There is no kernel for the layouts: with ``reduce``, ``mat1`` is not a CSR matrix.

    Example:
        >>> torch.sparse.mm(torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse(), torch.ones(2, 1))
        tensor([[2.],
                [0.]])

    See also:
        `addmm`, `sampled_addmm`.
    """
    return sparse_mm(mat1, mat2, reduce)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """Compute ``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``.

    The gradient of ``mat1`` is sparse, with the same indices.

    Args:
        mat: Dense matrix of shape ``(m, n)``.
        mat1: Sparse matrix of shape ``(m, k)``.
        mat2: Dense matrix of shape ``(k, n)``.
        beta: Factor of ``mat``. Default: 1.0.
        alpha: Factor of the product. Default: 1.0.

    Returns:
        A matrix of shape ``(m, n)``.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> sparse = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
        >>> torch.sparse.addmm(torch.ones(2, 1), sparse, torch.ones(2, 1), alpha=3.0)
        tensor([[7.],
                [1.]])

    See also:
        `mm`.
    """
    return sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """Compute ``beta * input + alpha * (mat1 @ mat2)`` at the specified elements of a sparse ``input``.

    Only those elements of the dense product are computed.

    Args:
        input: CSR or CSC matrix of shape ``(m, n)``.
        mat1: Dense matrix of shape ``(m, k)``.
        mat2: Dense matrix of shape ``(k, n)``.
        beta: Factor of ``input``. Default: 1.0.
        alpha: Factor of the product. Default: 1.0.

    Returns:
        A sparse matrix with the layout and the indices of ``input``.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.
        NotImplementedError: ``input`` has another layout.

    Example:
        >>> mask = torch.tensor([[0.0, 1.0], [0.0, 0.0]]).to_sparse_csr()
        >>> torch.sparse.sampled_addmm(mask, torch.ones(2, 3), torch.ones(3, 2)).to_dense()
        tensor([[0., 4.],
                [0., 0.]])

    See also:
        `addmm`.
    """
    return _sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """Sum the elements of a COO tensor over all dimensions or some of them.

    The gradient has the indices of the input.

    Args:
        input: COO tensor.
        dim: Dimension or dimensions to sum over. Default: ``None``, all.
        dtype: dtype of the result. Default: ``None``: that of ``input``, and int64 for integers and bools if no sparse
            dimension remains.

    Returns:
        A COO tensor if a sparse dimension remains, else a dense tensor.

    Raises:
        RuntimeError: ``input`` has another layout, or ``dim`` has a dimension twice.
        NotImplementedError: ``dim`` is given and ``input`` has another layout.

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> torch.sparse.sum(x)
        tensor(5.)
        >>> torch.sparse.sum(x, 0).to_dense()
        tensor([3., 2.])
    """
    return sparse_sum(input, dim, dtype)


def softmax(input, dim, *, dtype=None):
    """Compute the softmax of a COO tensor along a dimension, over its specified elements.

    Elements that are not specified count as minus infinity.

    Args:
        input: COO tensor.
        dim: Dimension along which the specified elements sum to 1.
        dtype: dtype to which the values are cast first. Default: ``None``, that of ``input``.

    Returns:
        A COO tensor with the indices of ``input``.

    Raises:
        NotImplementedError: ``input`` has another layout, or its values have no floating-point dtype.

    Example:
        >>> torch.sparse.softmax(torch.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse(), 1).to_dense()
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])

    See also:
        `log_softmax`, `torch.masked.softmax`.
    """
    return _softmax(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """Compute the logarithm of the softmax of a COO tensor along a dimension, over its specified elements.

    Args:
        input: COO tensor.
        dim: Dimension along which the softmax of the specified elements sums to 1.
        dtype: dtype to which the values are cast first. Default: ``None``, that of ``input``.

    Returns:
        A COO tensor with the indices of ``input``.

    Raises:
        NotImplementedError: ``input`` has another layout, or its values have no floating-point dtype.

    Example:
        >>> torch.sparse.log_softmax(torch.tensor([[0.0, 0.0], [3.0, 3.0]]).to_sparse(), 1).to_dense()
        tensor([[ 0.0000,  0.0000],
                [-0.6931, -0.6931]])

    See also:
        `softmax`.
    """
    return _softmax(input, dim, dtype, log=True)


def spdiags(diagonals, offsets, shape, layout=None):
    """Create a sparse matrix from its diagonals.

    Column ``j`` of a row of ``diagonals`` is in column ``j`` of the matrix; entries outside of the matrix are dropped.

    Args:
        diagonals: Tensor of shape ``(count, length)`` with a diagonal in each row, or a vector for a single one.
        offsets: int64 tensor of shape ``(count,)``, without duplicates: 0 is the main diagonal, a positive offset is
            above it.
        shape: Shape of the matrix, two ints.
        layout: ``torch.sparse_coo``, ``torch.sparse_csr`` or ``torch.sparse_csc``. Default: ``None``,
            ``torch.sparse_coo``.

    Returns:
        The sparse matrix.

    Raises:
        RuntimeError: The arguments' shapes, the offsets or the layout do not fit.

    Example:
        >>> torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([1]), (2, 2)).to_dense()
        tensor([[0., 1.],
                [0., 0.]])
    """
    return _spdiags(diagonals, offsets, shape, layout)


def spsolve(input, other, *, left=True):
    """Raise NotImplementedError: PyTorch solves sparse systems with cuDSS, which no backend of torchlite has.

    Args:
        input: Sparse square matrix.
        other: Right-hand side.
        left: Whether the matrix is on the left of the unknown. Default: ``True``.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> torch.sparse.spsolve(torch.eye(2).to_sparse_csr(), torch.ones(2))
        Traceback (most recent call last):
        NotImplementedError: Could not run 'aten::_spsolve' with arguments from the 'SparseCsrCPU' backend...
    """
    raise no_kernel_error("_spsolve", input)


class check_sparse_tensor_invariants:
    """Switches on or off the invariant checks in the constructors of sparse tensors.

    `enable` and `disable` switch for good. An instance is a context manager and a decorator that switches for a while.

    Args:
        enable: Whether the checks are on inside of the context. Default: ``True``.

    Raises:
        RuntimeError: An instance is entered twice.

    Example:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     torch.sparse_coo_tensor([[5]], [1.0], (2,))
        Traceback (most recent call last):
        RuntimeError: size is inconsistent with indices: for dim 0, size is 2 but found index 5
        >>> torch.sparse.check_sparse_tensor_invariants.is_enabled()
        False
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Return whether the checks are on."""
        return INVARIANT_CHECKS.on

    @staticmethod
    def enable() -> None:
        """Switch the checks on."""
        INVARIANT_CHECKS.on = True

    @staticmethod
    def disable() -> None:
        """Switch the checks off."""
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
    """Return a gradcheck function that accepts sparse inputs.

    With ``masked=True`` it perturbs the specified values of sparse inputs, else all elements.

    Args:
        gradcheck: `torch.autograd.gradcheck`, or a function with its arguments.

    Returns:
        A function with the same arguments.

    Example:
        >>> gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        >>> x = torch.tensor([[0.0, 2.0]], dtype=torch.float64).to_sparse().requires_grad_()
        >>> gradcheck(lambda x: torch.sparse.sum(x * x), (x,), masked=True)
        True
    """

    def checked(func: Callable, inputs: Any, **kwargs: Any) -> bool:
        return gradcheck(*as_dense_function(func, inputs, kwargs.get("masked", False)), **kwargs)

    checked.masked = True  # type: ignore[attr-defined]
    return checked


_SEMI_STRUCTURED = (
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _SEMI_STRUCTURED:
        from . import semi_structured

        return getattr(semi_structured, name)
    if name.endswith("Tensor"):
        from . import _legacy_tensor_types

        if name in _legacy_tensor_types.NAMES:
            made = globals()[name] = _legacy_tensor_types.find_sparse_type(name)
            return made
    raise AttributeError(f"module 'torchlite.sparse' has no attribute '{name}'")


__dir__ = make_module_dir(globals())
