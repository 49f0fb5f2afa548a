"""Factorisations, solvers and determinants of batches, with one work-group per matrix.

The sources are in `torchlite_backends.kernel_sources.factorisations`.
"""

from __future__ import annotations

from torchlite_backends.kernel_sources import factorisations as texts
from torchlite_backends.kernel_sources.dtype_kinds import REAL_KIND

from ..core.array import Array, empty, kind_of
from ..core.broadcasting import broadcast_shape
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.device import round_up_to_groups
from ..core.device_asserts import PIVOTS, encode_error, get_error_array, raise_if_blocking
from ..core.views import expand
from .matrix_launch import count_elements, launch_per_element, launch_per_matrix, real_kind_of

_BASE = texts.ELEMENTS + texts.GROUPS + texts.STEPS
LU = _BASE + texts.ELIMINATION + texts.SUBSTITUTION + texts.LU
_TRIANGULAR = _BASE + texts.SUBSTITUTION + texts.TRIANGULAR
_CHOLESKY = _BASE + texts.CHOLESKY
_QR = _BASE + texts.REFLECTORS + texts.QR
_SYMMETRIC = _BASE + texts.SYMMETRIC
BLOCKED = 32  # columns that are factored before the rest of a matrix is brought up to date
_COLUMNS = 64  # right-hand-side columns per work-group


def copy_batch(x: Array, batch: tuple[int, ...]) -> Array:
    """Copy the matrices of `x`, broadcast to a batch shape, to a new contiguous array."""
    return clone_row_major(expand(x, (*batch, *x.shape[-2:])))


def _broadcast_factors(x: Array, batch: tuple[int, ...], tail: int) -> tuple[Array, int]:
    """Return factors for the matrices of a batch, and whether all share the first. `tail`: dimensions of a factor."""
    lead = x.shape[: x.ndim - tail]
    if lead == batch or count_elements(lead) == 1:
        return as_contiguous(x), int(lead != batch and count_elements(batch) != 1)
    return as_contiguous(expand(x, (*batch, *x.shape[x.ndim - tail :]))), 0


# --- LU, solvers, determinants ---


def factor_lu(input: Array) -> tuple[Array, Array, Array]:
    """Return packed LU factors in a new array, pivots and info."""
    found = input.device.library_factorise("lu", input)
    if found is not None:
        return found
    *batch, m, n = input.shape
    a, count = clone_row_major(input), count_elements(batch)
    pivots, info = empty(input.device, (*batch, min(m, n)), "i32"), empty(input.device, tuple(batch), "i32")
    work = empty(a.device, (count * m * min(n, BLOCKED),), a.kind)
    launch_per_matrix(a.device, a.kind, LU, "lu", "ppppii", count, a, pivots, info, work, m, n)
    return a, pivots, info


def _lu_core(input):
    return factor_lu(input)


def _solve_factored(a: Array, pivots: Array, info: Array, x: Array) -> None:
    """Overwrite `x`, which has the full batch shape, with the solution."""
    batch, (n, k) = x.shape[:-2], x.shape[-2:]
    if not x.size:
        return
    (a, shared), (pivots, _), (info, _) = (
        _broadcast_factors(a, batch, 2),
        _broadcast_factors(pivots, batch, 1),
        _broadcast_factors(info, batch, 0),
    )
    parts = -(-k // _COLUMNS)
    launch_per_matrix(
        x.device,
        x.kind,
        LU,
        "lu_solve",
        "ppppiiiii",
        count_elements(batch) * parts,
        a,
        pivots,
        info,
        x,
        n,
        k,
        parts,
        _COLUMNS,
        shared,
    )


def _solve_core(A, B):
    a, pivots, info = factor_lu(A)
    x = copy_batch(B, broadcast_shape((A.shape[:-2], B.shape[:-2])))
    _solve_factored(a, pivots, info, x)
    return x, info


def _inv_core(input):
    a, pivots, info = factor_lu(input)
    x = empty(input.device, input.shape, input.kind)
    n = input.shape[-1]
    launch_per_element(x.device, x.kind, LU, "identity", "piii", x.size, x, n, n)
    _solve_factored(a, pivots, info, x)
    return x, info


def _compute_determinant(input: Array, logs: int) -> tuple[Array, Array]:
    a, pivots, _ = factor_lu(input)
    batch, n = input.shape[:-2], input.shape[-1]
    value, logarithm = empty(a.device, batch, a.kind), empty(a.device, batch if logs else (), real_kind_of(a.kind))
    launch_per_element(a.device, a.kind, LU, "determinant", "ppppiii", value.size, a, pivots, value, logarithm, n, logs)
    return value, logarithm


def _det_core(input):
    return _compute_determinant(input, 0)[0]


def _slogdet_core(input):
    return _compute_determinant(input, 1)


def _pivots_to_permutation(pivots, size):
    pivots = as_contiguous(pivots)
    *batch, k = pivots.shape
    order, device = empty(pivots.device, (*batch, size), "i64"), pivots.device
    count = count_elements(batch)
    if count and size:
        run = device.function(texts.PERMUTATION, "permutation", "pppiiii")
        run(
            round_up_to_groups(count, 64),
            (64,),
            pivots,
            order,
            get_error_array(device),
            k,
            size,
            encode_error(PIVOTS),
            count,
        )
        raise_if_blocking(device)
    return order


def _permutation_matrix(pivots, size, dtype):
    order = _pivots_to_permutation(pivots, size)
    kind = kind_of(dtype.np)
    out = empty(order.device, (*order.shape, size), kind)
    if out.size:
        run = order.device.function(
            texts.PERMUTATION_MATRIX, "matrix", "ppii", T=kind, COMPLEX=str(int(kind in REAL_KIND))
        )
        run(round_up_to_groups(out.size, 64), (64,), order, out, size, out.size)
    return out


def _triangular_core(A, B, upper, unitriangular):
    batch = broadcast_shape((A.shape[:-2], B.shape[:-2]))
    x = copy_batch(B, batch)
    n, k = x.shape[-2:]
    if x.size:
        a, shared = _broadcast_factors(A, batch, 2)
        parts, sides = -(-k // _COLUMNS), (int(bool(upper)), int(bool(unitriangular)))
        launch_per_matrix(
            x.device,
            x.kind,
            _TRIANGULAR,
            "triangular",
            "ppiiiiiii",
            count_elements(batch) * parts,
            a,
            x,
            n,
            k,
            parts,
            _COLUMNS,
            shared,
            *sides,
        )
    return x


# --- Cholesky, QR, LDL ---


def _cholesky_core(input):
    found = input.device.library_factorise("cholesky", input)
    if found is not None:
        return found
    a = clone_row_major(input)
    info = empty(a.device, a.shape[:-2], "i32")
    launch_per_matrix(a.device, a.kind, _CHOLESKY, "cholesky", "ppi", info.size, a, info, a.shape[-1])
    return a, info


def compute_reflector_workspace(m: int, n: int) -> int:
    """Return the workspace elements of a matrix of n columns for applying a block of reflectors of length m."""
    return 2 * BLOCKED * (m + BLOCKED + n)


def factor_qr(input: Array) -> tuple[Array, Array]:
    """Return R with the reflectors' vectors below it, and their scales."""
    *batch, m, n = input.shape
    a, tau = clone_row_major(input), empty(input.device, (*batch, min(m, n)), input.kind)
    if a.size:
        count, room = count_elements(batch), compute_reflector_workspace(m, n)
        launch_per_matrix(
            a.device, a.kind, _QR, "geqrf", "pppiii", count, a, tau, empty(a.device, (count, room), a.kind), m, n, room
        )
    return a, tau


def make_q(a: Array, tau: Array, columns: int) -> Array:
    """Return the first columns of the product of the reflectors of `factor_qr`."""
    *batch, m, n = a.shape
    q, count, room = (
        empty(a.device, (*batch, m, columns), a.kind),
        count_elements(batch),
        compute_reflector_workspace(m, columns),
    )
    if q.size:
        launch_per_matrix(
            a.device,
            a.kind,
            _QR,
            "make_q",
            "ppppiiii",
            count,
            a,
            tau,
            q,
            empty(a.device, (count, room), a.kind),
            m,
            n,
            columns,
            room,
        )
    return q


def geqrf(input):
    return factor_qr(input)


def _qr_core(input, mode):
    *batch, m, n = input.shape
    a, tau = factor_qr(input)
    rows = m if mode == "complete" else min(m, n)
    r = empty(a.device, (*batch, rows, n), a.kind)
    launch_per_element(a.device, a.kind, _QR, "upper_part", "ppiiii", r.size, a, r, m, n, rows)
    return (empty(a.device, (0,), a.kind) if mode == "r" else make_q(a, tau, rows)), r


def _ldl_factor_core(input, hermitian):
    a = clone_row_major(input)
    pivots, info = empty(a.device, a.shape[:-1], "i32"), empty(a.device, a.shape[:-2], "i32")
    launch_per_matrix(
        a.device,
        a.kind,
        _SYMMETRIC,
        "ldl",
        "pppii",
        info.size,
        a,
        pivots,
        info,
        a.shape[-1],
        int(hermitian and a.kind in REAL_KIND),
    )
    return a, pivots, info


def _ldl_solve_core(LD, pivots, B, hermitian):
    batch = broadcast_shape((LD.shape[:-2], B.shape[:-2]))
    x = copy_batch(B, batch)
    n, k = x.shape[-2:]
    a, order = as_contiguous(expand(LD, (*batch, n, n))), as_contiguous(expand(pivots, (*batch, n)))
    turned = int(hermitian and x.kind in REAL_KIND)
    launch_per_element(
        x.device,
        x.kind,
        _SYMMETRIC,
        "ldl_solve",
        "pppiiii",
        count_elements(batch) * k if n else 0,
        a,
        order,
        x,
        n,
        k,
        turned,
    )
    return x
