"""Shared parts of the linear-algebra families: argument checks with PyTorch's errors, and building blocks of formulas
over `F`.
"""

from __future__ import annotations

import numpy as np

from .._dispatch import Out
from .._dispatch.shape_and_value_checks import unwrap_batched
from .._types.dtypes import int64


class _LinAlgError(RuntimeError):
    """Raised when a matrix is singular, not positive-definite, or an iteration does not converge."""


LinAlgError = _LinAlgError


# --- checks (run on Tensors) ----------------------------------------------------------------------

CASTABLE_OUT = Out(
    message="{dotted}: Expected result to be safely castable from {want} dtype, but got result with dtype {got}"
)


def check_matrix(name, A, argument="A"):
    """At least two dimensions."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_tolerance(function, name, limit):
    """RuntimeError for a tolerance that is a complex tensor."""
    dtype = getattr(limit, "dtype", None)
    if dtype is not None and dtype.category == 3:
        raise RuntimeError(f"{function}: {name} tensor of complex type is not supported. Got {dtype.scalar_name}")


def check_square(name, A, argument="A"):
    """Batches of square matrices."""
    check_matrix(name, A, argument)
    if A.shape[-1] != A.shape[-2]:
        prefix = f"{name}: " if name else ""
        raise RuntimeError(
            f"{prefix}{argument} must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} "
            "matrices"
        )


def is_low(dtype) -> bool:
    """True if a dtype is half precision or less, complex32 among them."""
    return (dtype.to_real() if dtype.is_complex else dtype).itemsize < 4


def machine_epsilon(x):
    """The distance from 1 to the next number of the dtype, as a float."""
    return float(np.finfo(x.dtype.np).eps)


def check_float(name, A, low_precision=False):
    """Floating point or complex, and not of low precision unless that is allowed."""
    if A.dtype.category < 2:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}")
    if not low_precision and is_low(A.dtype):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {A.dtype.scalar_name}")


def check_kernel_float(kernel, A):
    """Raise PyTorch's missing-kernel error unless LAPACK supports the dtype."""
    if A.dtype.category < 2 or is_low(A.dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{A.dtype.scalar_name}'")


def check_same_dtype(name, A, B, names=("A", "B")):
    """Raise unless both operands have the same dtype."""
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected {names[0]} and {names[1]} to have the same dtype, but found {names[0]} of type "
            f"{A.dtype.scalar_name} and {names[1]} of type {B.dtype.scalar_name} instead"
        )


def check_fit(name, A, B, left):
    """The rows (or columns, for X A = B) of B fit A."""
    if A.shape[-2] != B.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )


def find_first_failure(info):
    """(which matrix failed first, "" or "(Batch element i): ", its info), or None when none did."""
    if info.device.type == "meta":
        return None
    values = np.array(unwrap_batched(info).cpu().tolist())
    if not values.any():
        return None
    flat = values.reshape(-1)
    index = int(flat.nonzero()[0][0])
    return index, "" if values.ndim == 0 else f"(Batch element {index}): ", int(flat[index])


def check_singular(name, info):
    """LinAlgError when an inversion met a zero pivot."""
    failed = find_first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[1]}The diagonal element {failed[2]} is zero, the inversion could not be completed "
            "because the input matrix is singular."
        )


def check_solved(name, info):
    """LinAlgError when a solver met a singular matrix."""
    failed = find_first_failure(info)
    if failed:
        raise LinAlgError(f"{name}: {failed[1]}The solver failed because the input matrix is singular.")


def run_until_converged(name, call, A, *args):
    """Run a decomposition of A; LinAlgError when it does not converge."""
    try:
        return call(A, *args)
    except (LinAlgError, np.linalg.LinAlgError):
        failed = find_first_failure((A - A != 0).any(-1).any(-1))
        raise LinAlgError(
            f"{name}: {failed[1] if failed else ''}The algorithm failed to converge because the input matrix contained "
            "non-finite values."
        ) from None


# --- formulas over F ------------------------------------------------------------------------------


def swap_last_dims(F, a):
    """The last two dimensions exchanged."""
    return F.transpose(a, -1, -2)


def batch_shape(a):
    """The leading dimensions of a batch of matrices."""
    return tuple(a.shape[:-2])


def min_matrix_dim(a):
    """The smaller side of a batch of matrices."""
    return min(a.shape[-2], a.shape[-1])


def adjoint(F, a):
    """The conjugate transpose of the last two dimensions."""
    return F.conj(F.transpose(a, -1, -2))


def multiply_matrices(F, *factors):
    """A product of matrices, from the left."""
    result = factors[0]
    for factor in factors[1:]:
        result = F.matmul(result, factor)
    return result


def as_row(F, v):
    """A vector as rows that scale columns: (..., n) -> (..., 1, n)."""
    return F.unsqueeze(v, -2)


def as_column(F, v):
    """A vector as columns that scale rows: (..., n) -> (..., n, 1)."""
    return F.unsqueeze(v, -1)


def identity(F, like, n):
    """The identity in the dtype of `like`."""
    place = F._new_arange(like, 0, n, 1, int64)
    return F.to(F.eq(F.unsqueeze(place, -1), place), F.dtype_of(like))


def diagonal_mask(F, like, n):
    """A mask of the diagonal of n x n matrices."""
    place = F._new_arange(like, 0, n, 1, int64)
    return F.eq(F.unsqueeze(place, -1), place)


def diagonal_matrix(F, v):
    """Vectors as diagonal matrices."""
    return F.mul(as_row(F, v), identity(F, v, v.shape[-1]))


def strictly_lower_part(F, a):
    """The part below the diagonal."""
    return F.tril(a, -1)


def lower_half(F, a):
    """The lower triangle with half the diagonal: the adjoint of taking a Hermitian matrix apart."""
    return F.sub(F.tril(a, 0), F.mul(diagonal_matrix(F, F.diagonal(a, 0, -2, -1)), 0.5))


def hermitian_part(F, a):
    """(a + a^H) / 2."""
    return F.mul(F.add(a, adjoint(F, a)), 0.5)


def right_solve_adjoint_upper(F, b, a):
    """b a^-H for upper triangular a."""
    return adjoint(F, F._triangular_core(a, adjoint(F, b), True, False))


def right_solve_lower(F, b, a):
    """x of x a = b, a lower triangular."""
    return adjoint(F, F._triangular_core(adjoint(F, a), adjoint(F, b), True, False))


def zero_if_none(F, g, like):
    """A gradient, or zeros where an output was not used."""
    return F._zeros_like(like) if g is None else g


def sum_two(F, a, b):
    """a + b where either may be None."""
    return b if a is None else a if b is None else F.add(a, b)
