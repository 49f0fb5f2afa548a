"""SVD by one-sided Jacobi rotations (Demmel and Veselic, 1992), ops that depend on it, and the matrix exponential."""

from __future__ import annotations

import numpy as np

from torchlite_backends.kernel_sources.dtype_kinds import COMPLEX_KIND, REAL_KIND
from torchlite_backends.kernel_sources.svd import EXPONENTIAL, JACOBI, SVD_PRODUCTS

from ..array_ops.creation import full
from ..array_ops.pointwise import conj
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.host_transfer import to_numpy
from ..core.pointwise_dispatch import cast
from ..core.views import expand
from .eigen import _eigh_core
from .factorisations import BLOCKED, LU, _det_core, compute_reflector_workspace
from .matrix_launch import count_elements, launch_per_element, launch_per_matrix, real_kind_of

# --- singular values ---


def jacobi_svd(input: Array, full_matrices: bool, wanted: bool = True) -> tuple[Array, Array, Array, Array]:
    """Return U, S, Vh and info: 1 for a matrix with NaN or infinity, whose results are NaN."""
    *batch, rows, columns = input.shape
    device, kind, real, count = input.device, input.kind, real_kind_of(input.kind), count_elements(batch)
    n, m, wide = min(rows, columns), max(rows, columns), rows < columns
    long = m if full_matrices else n
    u = empty(device, (*batch, rows, n if wide else long) if wanted else (), kind)
    vh = empty(device, (*batch, long if wide else n, columns) if wanted else (), kind)
    values, info = empty(device, (*batch, n), real), full(device, batch, 0, "i32")
    if values.size:
        w = empty(device, (*batch, n, m), kind)
        launch_per_element(
            device,
            kind,
            SVD_PRODUCTS,
            "adjoint",
            "ppiii",
            w.size,
            as_contiguous(input),
            w,
            *((1, m * n) if wide else (m, n)),
        )
        if not wide and kind in REAL_KIND:
            w = conj(w)
        room = n + compute_reflector_workspace(m, long)
        sizes = (count * n * n, count * (m * n + room), count * m * long) if wanted else (1, 1, 1)
        scratch = [empty(device, (size,), kind) for size in sizes]
        launch_per_matrix(
            device,
            kind,
            JACOBI,
            "svd",
            "ppppppppppiiiiii",
            count,
            w,
            *scratch,
            empty(device, (count, n), real),
            empty(device, (count, n), "i32"),
            info,
            u,
            values,
            vh,
            n,
            m,
            int(wide),
            long,
            int(wanted),
            room,
        )
    elif wanted:
        for x in (u, vh):
            launch_per_element(device, kind, LU, "identity", "piii", x.size, x, *x.shape[-2:])
    return u, values, vh, info


def _check_converged(result: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Return singular values and vectors. LinAlgError for a non-finite matrix, for which the host waits."""
    *parts, info = result
    if info.size and np.any(to_numpy(info)):
        raise np.linalg.LinAlgError("SVD did not converge")
    return tuple(parts)  # type: ignore[return-value]


def _svd_core(input, full_matrices):
    return _check_converged(jacobi_svd(input, bool(full_matrices)))


def _svdvals_core(input):
    return _check_converged(jacobi_svd(input, False, False))[1]


# --- ops based on the SVD ---


def _negated_matmul(x: Array, y: Array) -> Array:
    """Return -x y for contiguous batches."""
    *batch, m, k = x.shape
    n = y.shape[-1]
    out, wide = empty(x.device, (*batch, m, n), x.kind), 64
    if out.size:
        parts = -(-n // wide)
        launch_per_matrix(
            x.device,
            x.kind,
            SVD_PRODUCTS,
            "product",
            "pppiiiii",
            count_elements(batch) * parts,
            x,
            y,
            out,
            m,
            k,
            n,
            parts,
            wide,
        )
    return out


def _scale_columns(x: Array, factors: Array, turned: bool) -> Array:
    """Return -x diag(factors), or -x^H diag(factors)."""
    *batch, rows, columns = x.shape
    n, k = (columns, rows) if turned else (rows, columns)
    out = empty(x.device, (*batch, n, k), x.kind)
    launch_per_element(
        x.device, x.kind, SVD_PRODUCTS, "scaled", "pppiiii", out.size, x, factors, out, n, k, int(turned)
    )
    return out


def _conjugate_transpose(x: Array) -> Array:
    *batch, m, n = x.shape
    out = empty(x.device, (*batch, n, m), x.kind)
    launch_per_element(x.device, x.kind, SVD_PRODUCTS, "adjoint", "ppiii", out.size, x, out, m, n)
    return out


def _cast_to_kind(x: Array, kind: str) -> Array:
    return x if x.kind == kind else cast(x, kind)


def _tolerance_array(value, batch: tuple[int, ...], like: Array) -> tuple[Array, int]:
    """Return a tolerance as an array and its stride between matrices."""
    if value.__class__ is not Array:
        return full(like.device, (1,), float(value), like.kind), 0
    value = value if value.kind == like.kind else cast(value, like.kind)
    return (as_contiguous(value), 0) if value.size == 1 else (as_contiguous(expand(value, batch)), 1)


def _pinv_core(input, rtol, atol, hermitian):
    *batch, rows, columns = input.shape
    device, kind = input.device, input.kind
    if not input.size:
        return full(device, (*batch, columns, rows), 0, kind)
    if hermitian:
        values, u = _eigh_core(input, "L")
        vh = _conjugate_transpose(u)
    else:
        u, values, vh = _check_converged(jacobi_svd(input, False))
    inverse, k = empty(device, values.shape, values.kind), values.shape[-1]
    (rtol, rtol_step), (atol, atol_step) = (
        _tolerance_array(rtol, tuple(batch), values),
        _tolerance_array(atol, tuple(batch), values),
    )
    launch_per_element(
        device,
        kind,
        SVD_PRODUCTS,
        "inverses",
        "ppppiiii",
        count_elements(batch),
        values,
        rtol,
        atol,
        inverse,
        k,
        rtol_step,
        atol_step,
    )
    return _negated_matmul(_scale_columns(vh, _cast_to_kind(inverse, kind), True), _conjugate_transpose(u))


def _lstsq_rank(input, rcond):
    values = _svdvals_core(input)
    if not values.size:
        return full(input.device, values.shape[:-1], 0, "i64")
    rank = empty(input.device, values.shape[:-1], "i64")
    number = "d" if values.kind == "f64" else "f"
    launch_per_element(
        input.device,
        input.kind,
        SVD_PRODUCTS,
        "ranks",
        f"ppi{number}i",
        rank.size,
        values,
        rank,
        values.shape[-1],
        float(rcond),
    )
    return rank


def _conj_cofactor_matrix(input, det):
    if not input.size:
        return empty(input.device, input.shape, input.kind)
    u, values, vh, _ = jacobi_svd(input, False)
    factors = empty(input.device, values.shape, input.kind)
    launch_per_element(
        input.device,
        input.kind,
        SVD_PRODUCTS,
        "others",
        "ppppii",
        factors.size,
        values,
        _det_core(u),
        _det_core(vh),
        factors,
        values.shape[-1],
    )
    return _negated_matmul(_scale_columns(u, factors, False), vh)


def matrix_exp(input):
    if input.kind[0] not in "fbc" or input.kind == "b8" or input.shape[-1] != input.shape[-2]:
        raise TypeError("matrix_exp takes batches of square matrices of floating point or complex numbers")
    device, n = input.device, input.shape[-1]
    kind = "f64" if device.fp64 else "f32"
    if input.kind in REAL_KIND:
        kind = COMPLEX_KIND[kind]
    a = cast(input, kind, empty(device, input.shape, kind)) if input.kind != kind else clone_row_major(input)
    count = count_elements(input.shape[:-2])
    if a.size:
        launch_per_matrix(
            device,
            kind,
            EXPONENTIAL,
            "exponential",
            "ppppi",
            count,
            a,
            empty(device, (count, 5, n, n), kind),
            empty(device, (count, n), "i32"),
            empty(device, (count, n, min(n, BLOCKED)), kind),
            n,
        )
    return a if kind == input.kind else cast(a, input.kind)
