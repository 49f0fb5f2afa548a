"""Decompositions and solvers. Every kernel takes batches; matrices are the last two dimensions.

LAPACK's partial-pivoted LU, LDL and Householder QR in packed form are not in NumPy, so they are written here,
vectorised over the batch. They follow LAPACK's choice of pivots and signs, so that packed factors and pivots are
interchangeable with PyTorch's.
"""

from __future__ import annotations

from typing import Any

xp: Any = None

_BLOCK = 32


# --- helpers --------------------------------------------------------------------------------------


def _transpose_matrices(a):
    return xp.swapaxes(a, -1, -2)


def _conjugate_transpose(a):
    return xp.conj(xp.swapaxes(a, -1, -2))


def _real_dtype_of(a):
    return xp.finfo(a.dtype).dtype if a.dtype.kind == "c" else a.dtype


def _complex_dtype_of(a):
    return a.dtype if a.dtype.kind == "c" else xp.complex64 if a.dtype == xp.float32 else xp.complex128


def _abs_real_plus_abs_imag(a):
    """Return |re| + |im|, by which LAPACK compares complex pivots."""
    return xp.abs(a.real) + xp.abs(a.imag) if a.dtype.kind == "c" else xp.abs(a)


def _copy_with_flat_batch(a):
    """Return a fresh copy with one batch dimension."""
    batch = 1
    for n in a.shape[:-2]:
        batch *= n
    return xp.array(a.reshape((batch, *a.shape[-2:])), copy=True)


def _make_identity(n, dtype):
    return xp.eye(n, dtype=dtype)


# --- LU -------------------------------------------------------------------------------------------


def _swap_rows(a, batch, one, other):
    """Exchange row `one` with row `other[b]` in every matrix b."""
    kept = a[:, one].copy()
    a[:, one] = a[batch, other]
    a[batch, other] = kept


def _factor_panel(a, start, stop, pivots, info):
    """Factor the columns start..stop of a batch by unblocked LU in place; exchange rows over the full width."""
    batch = xp.arange(a.shape[0])
    for j in range(start, stop):
        chosen = j + xp.argmax(_abs_real_plus_abs_imag(a[:, j:, j]), axis=1)
        pivots[:, j] = chosen + 1
        if (chosen != j).any():
            _swap_rows(a, batch, j, chosen)
        pivot = a[:, j, j]
        zero = pivot == 0
        if zero.any():
            info[zero & (info == 0)] = j + 1
        a[:, j + 1 :, j] /= xp.where(zero, 1, pivot)[:, None]
        if j + 1 < stop:
            a[:, j + 1 :, j + 1 : stop] -= a[:, j + 1 :, j, None] * a[:, None, j, j + 1 : stop]


def _lu_core(input):
    """Return packed LU with partial pivoting, LAPACK's pivots (from 1) and info (the first zero pivot from 1, or 0)."""
    a = _copy_with_flat_batch(input)
    m, n = a.shape[-2:]
    k = min(m, n)
    pivots = xp.zeros((a.shape[0], k), dtype=xp.int32)
    info = xp.zeros((a.shape[0],), dtype=xp.int32)
    with xp.errstate(all="ignore"):
        for start in range(0, k if a.shape[0] else 0, _BLOCK):
            stop = min(start + _BLOCK, k)
            _factor_panel(a, start, stop, pivots, info)
            if stop < n:
                _solve_triangular_in_place(a[:, start:stop, start:stop], a[:, start:stop, stop:], False, True)
                a[:, stop:, stop:] -= a[:, stop:, start:stop] @ a[:, start:stop, stop:]
    batch = input.shape[:-2]
    return a.reshape(input.shape), pivots.reshape((*batch, k)), info.reshape(batch)


def _pivots_to_permutation(pivots, size):
    """Return the row permutation of LAPACK's sequence of exchanges: row i of P^T A is row order[i] of A."""
    flat = (
        pivots.reshape((-1, pivots.shape[-1]))
        if pivots.size
        else pivots.reshape((_numel(pivots.shape[:-1]), pivots.shape[-1]))
    )
    order = xp.broadcast_to(xp.arange(size), (flat.shape[0], size)).copy()
    batch = xp.arange(flat.shape[0])
    for i in range(flat.shape[1]):
        other = flat[:, i].astype(xp.int64) - 1
        if other.size and (int(other.min()) < 0 or int(other.max()) >= size):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the "
                "result of lu_factor?"
            )
        kept = order[:, i].copy()
        order[:, i] = order[batch, other]
        order[batch, other] = kept
    return order.reshape((*pivots.shape[:-1], size))


def _numel(shape):
    n = 1
    for length in shape:
        n *= length
    return n


def _permutation_matrix(pivots, size, dtype):
    """Return P of A = P L U."""
    order = _pivots_to_permutation(pivots, size)
    return _transpose_matrices(_make_identity(size, dtype.np)[order])


# --- triangular systems ---------------------------------------------------------------------------


def _solve_triangular_in_place(a, b, upper, unit):
    """Overwrite b with the solution of a x = b for triangular a of shape (batch, n, n).

    Recursive halving down to small blocks, so that most work is matrix products.
    """
    n = a.shape[-1]
    if n <= _BLOCK:
        for i in range(n - 1, -1, -1) if upper else range(n):
            row = slice(i + 1, n) if upper else slice(0, i)
            if n > 1:
                b[:, i] -= (a[:, i, None, row] @ b[:, row])[:, 0]
            if not unit:
                b[:, i] /= a[:, i, i, None]
        return
    half = n // 2
    low, high = slice(0, half), slice(half, n)
    first, second = (high, low) if upper else (low, high)
    _solve_triangular_in_place(a[:, first, first], b[:, first], upper, unit)
    b[:, second] -= a[:, second, first] @ b[:, first]
    _solve_triangular_in_place(a[:, second, second], b[:, second], upper, unit)


def _triangular_core(A, B, upper, unitriangular):
    """Solve A x = B for triangular A, batch dimensions broadcast. A zero on the diagonal gives infinities."""
    batch = xp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    b = xp.array(xp.broadcast_to(B, (*batch, *B.shape[-2:])).reshape((_numel(batch), *B.shape[-2:])), copy=True)
    a = xp.broadcast_to(A, (*batch, *A.shape[-2:])).reshape((_numel(batch), *A.shape[-2:]))
    with xp.errstate(all="ignore"):
        _solve_triangular_in_place(a, b, upper, unitriangular)
    return b.reshape((*batch, *B.shape[-2:]))


# --- inverse, solve, determinant, Cholesky --------------------------------------------------------


def _inv_core(input):
    """Return the inverse and info (the first zero pivot, from 1, or 0)."""
    info = xp.zeros(input.shape[:-2], dtype=xp.int32)
    try:
        return xp.linalg.inv(input), info
    except xp.linalg.LinAlgError:
        info = _lu_core(input)[2]
    good = info == 0
    result = xp.full(input.shape, xp.nan, dtype=input.dtype)
    if good.any():
        result[good] = xp.linalg.inv(input[good])
    return result, info


def _solve_core(A, B):
    """Solve A X = B for matrices B; return X and info."""
    batch = xp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    info = xp.zeros(A.shape[:-2], dtype=xp.int32)
    A, B = xp.broadcast_to(A, (*batch, *A.shape[-2:])), xp.broadcast_to(B, (*batch, *B.shape[-2:]))
    if not B.size:
        return xp.zeros(B.shape, dtype=B.dtype), info
    try:
        return xp.linalg.solve(A, B), info
    except xp.linalg.LinAlgError:
        every = _lu_core(A)[2]
    result = xp.full(B.shape, xp.nan, dtype=B.dtype)
    good = every == 0
    if good.any():
        result[good] = xp.linalg.solve(A[good], B[good])
    return result, every


def _det_core(input):
    with xp.errstate(all="ignore"):
        return xp.asarray(xp.linalg.det(input), dtype=input.dtype)


def _slogdet_core(input):
    sign, logarithm = xp.linalg.slogdet(input)
    return xp.asarray(sign, dtype=input.dtype), xp.asarray(logarithm, dtype=_real_dtype_of(input))


def _conj_cofactor_matrix(input, det):
    """Return the conjugate of det's gradient, finite for singular matrices too.

    It is conj(det(U Vh)) U diag(products of the other singular values) Vh.
    """
    if not input.size:
        return xp.zeros(input.shape, dtype=input.dtype)
    if not xp.isfinite(input).all():
        return xp.full(input.shape, xp.nan, dtype=input.dtype)
    u, s, vh = xp.linalg.svd(input)
    n = s.shape[-1]
    others = xp.ones_like(s)
    for shift in range(1, n):
        others = others * xp.roll(s, shift, axis=-1)
    phase = xp.conj(xp.linalg.det(u) * xp.linalg.det(vh))
    return (phase[..., None, None] * (u * others[..., None, :])) @ vh


def _cholesky_core(input):
    """Return the lower factor and info (the order of the first leading minor that is not positive, or 0).

    Only the lower triangle is read.
    """
    lower = xp.tril(input)
    whole = lower + _conjugate_transpose(xp.tril(input, -1))
    info = xp.zeros(input.shape[:-2], dtype=xp.int32)
    try:
        result = xp.linalg.cholesky(whole)
        if xp.isfinite(result).all():
            return result, info
    except xp.linalg.LinAlgError:
        pass
    result = lower.reshape((_numel(input.shape[:-2]), *input.shape[-2:])).copy()
    info = _cholesky_columnwise(result)
    return result.reshape(input.shape), info.reshape(input.shape[:-2])


def _cholesky_columnwise(a):
    """Factor a batch by Cholesky in place, column by column, where some matrices may not be positive definite.

    Such a matrix stays unchanged from its first column without a root. Return the order of the first minor that is not
    positive, or 0.
    """
    info = xp.zeros((a.shape[0],), dtype=xp.int32)
    with xp.errstate(all="ignore"):
        for j in range(a.shape[-1]):
            row = a[:, j, :j]
            pivot = (a[:, j, j] - xp.sum(xp.abs(row) ** 2, axis=-1)).real
            info[(info == 0) & ~(pivot > 0)] = j + 1
            going = info == 0
            root = xp.sqrt(xp.where(going, pivot, 1))
            column = (a[:, j + 1 :, j] - (a[:, j + 1 :, :j] @ xp.conj(row)[..., None])[..., 0]) / root[:, None]
            a[:, j, j] = xp.where(going, root, a[:, j, j])
            a[:, j + 1 :, j] = xp.where(going[:, None], column, a[:, j + 1 :, j])
    return info


# --- QR -------------------------------------------------------------------------------------------


def _qr_core(input, mode):
    """Return Q and R. Q is empty for the mode "r"."""
    if mode == "r":
        return xp.zeros((0,), dtype=input.dtype), xp.asarray(xp.linalg.qr(input, mode="r"))
    if not input.size:
        m, n = input.shape[-2:]
        k = m if mode == "complete" else min(m, n)
        q = xp.broadcast_to(_make_identity(m, input.dtype)[:, :k], (*input.shape[:-2], m, k)).copy()
        return q, xp.zeros((*input.shape[:-2], k, n), dtype=input.dtype)
    q, r = xp.linalg.qr(input, mode=mode)
    return q, r


def geqrf(input):
    """Return R above the diagonal with the Householder vectors below it, and their scales tau, as LAPACK's geqrf."""
    a = _copy_with_flat_batch(input)
    m, n = a.shape[-2:]
    k = min(m, n)
    tau = xp.zeros((a.shape[0], k), dtype=a.dtype)
    for j in range(k):
        tau[:, j] = _make_householder_reflector(a, j)
        v = a[:, j:, j].copy()
        v[:, 0] = 1
        rest = a[:, j:, j + 1 :]
        rest -= xp.conj(tau[:, j])[:, None, None] * v[:, :, None] * (xp.conj(v)[:, None, :] @ rest)
    return a.reshape(input.shape), tau.reshape((*input.shape[:-2], k))


def _make_householder_reflector(a, j):
    """Replace column j from the diagonal down by beta and its Householder vector v; return tau (LAPACK's larfg)."""
    alpha, below = a[:, j, j].copy(), a[:, j + 1 :, j]
    tail = xp.sqrt(xp.sum(xp.abs(below) ** 2, axis=1))
    norm = xp.sqrt(xp.abs(alpha) ** 2 + tail**2)
    nothing = (tail == 0) & (alpha.imag == 0)
    beta = xp.where(alpha.real >= 0, -norm, norm)
    safe = xp.where(nothing, 1, beta).astype(beta.dtype)
    tau = xp.where(nothing, 0, (safe - alpha) / safe)
    below /= xp.where(nothing, 1, alpha - safe)[:, None]
    a[:, j, j] = xp.where(nothing, alpha, beta)
    return tau


# --- eigenvalues and singular values --------------------------------------------------------------


def _eigh_core(input, UPLO):
    """Return ascending eigenvalues and eigenvectors of Hermitian matrices; read one triangle.

    Both are NaN for a matrix with a non-finite element in this triangle, for which LAPACK may return any numbers.
    """
    input, bad = _without_non_finite_triangles(input, UPLO)
    values, vectors = xp.linalg.eigh(input, UPLO)
    if bad is not None:
        values[bad], vectors[bad] = xp.nan, xp.nan
    return values, vectors


def _eigvalsh_core(input, UPLO):
    input, bad = _without_non_finite_triangles(input, UPLO)
    values = xp.linalg.eigvalsh(input, UPLO)
    if bad is not None:
        values[bad] = xp.nan
    return values


def _without_non_finite_triangles(input, UPLO):
    """Return matrices with zeros for those with non-finite elements in one triangle, and which these are, or None."""
    if xp.isfinite(input).all():
        return input, None
    triangle = xp.tril(input) if UPLO == "L" else xp.triu(input)
    bad = ~xp.isfinite(triangle).all(axis=(-2, -1))
    return xp.where(bad[..., None, None], 0, triangle).astype(input.dtype), bad


def _eig_core(input):
    """Return complex eigenvalues and eigenvectors of unit length."""
    if not xp.isfinite(input).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = xp.linalg.eig(input)
    kind = _complex_dtype_of(input)
    return values.astype(kind), vectors.astype(kind)


def _eigvals_core(input):
    if not xp.isfinite(input).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return xp.linalg.eigvals(input).astype(_complex_dtype_of(input))


def _svd_core(input, full_matrices):
    with xp.errstate(all="ignore"):
        u, s, vh = xp.linalg.svd(input, full_matrices=full_matrices)
    return u, s, vh


def _svdvals_core(input):
    with xp.errstate(all="ignore"):
        return xp.linalg.svd(input, compute_uv=False)


# --- LDL ------------------------------------------------------------------------------------------

_BUNCH_KAUFMAN_ALPHA = (1 + 17**0.5) / 8


def _ldl_factor_core(input, hermitian):
    """Return Bunch-Kaufman factors of the lower triangle, packed like LAPACK's sytrf/hetrf.

    D and L share one array; pivots of 2x2 blocks are negative; the third result is info.
    """
    a = _copy_with_flat_batch(xp.tril(input))
    pivots = xp.zeros(a.shape[:-1], dtype=xp.int32)
    info = xp.zeros((a.shape[0],), dtype=xp.int32)
    for b in range(a.shape[0]):
        info[b] = _ldl_factor_unbatched(a[b], pivots[b], hermitian and a.dtype.kind == "c")
    batch = input.shape[:-2]
    return a.reshape(input.shape), pivots.reshape(input.shape[:-1]), info.reshape(batch)


def _choose_ldl_pivot(a, k, hermitian):
    """Choose the Bunch-Kaufman pivot of column k; return (row to exchange with, block size)."""
    n = a.shape[0]
    diagonal = abs(a[k, k].real) if hermitian else _abs_real_plus_abs_imag(a[k, k])
    if k + 1 == n:
        return k, 1, diagonal == 0
    below = _abs_real_plus_abs_imag(a[k + 1 :, k])
    row = k + 1 + int(xp.argmax(below))
    largest = below[row - k - 1]
    if max(diagonal, largest) == 0:
        return k, 1, True
    if diagonal >= _BUNCH_KAUFMAN_ALPHA * largest:
        return k, 1, False
    others = _abs_real_plus_abs_imag(a[row, k:row]).max()
    if row + 1 < n:
        others = max(others, _abs_real_plus_abs_imag(a[row + 1 :, row]).max())
    if diagonal >= _BUNCH_KAUFMAN_ALPHA * largest * (largest / others):
        return k, 1, False
    here = abs(a[row, row].real) if hermitian else _abs_real_plus_abs_imag(a[row, row])
    return (row, 1, False) if here >= _BUNCH_KAUFMAN_ALPHA * others else (row, 2, False)


def _swap_ldl_rows_columns(a, one, other, k, hermitian):
    """Exchange rows and columns `one` < `other` of the trailing matrix, stored in its lower triangle."""
    a[other + 1 :, [one, other]] = a[other + 1 :, [other, one]]
    middle = a[one + 1 : other, one].copy()
    a[one + 1 : other, one] = xp.conj(a[other, one + 1 : other]) if hermitian else a[other, one + 1 : other]
    a[other, one + 1 : other] = xp.conj(middle) if hermitian else middle
    if hermitian:
        a[other, one] = xp.conj(a[other, one])
    a[one, one], a[other, other] = a[other, other], a[one, one]
    if one > k:
        a[one, k], a[other, k] = a[other, k], a[one, k]


def _ldl_factor_unbatched(a, pivots, hermitian):
    n, k, info = a.shape[0], 0, 0
    conj = xp.conj if hermitian else lambda x: x
    while k < n:
        row, size, zero = _choose_ldl_pivot(a, k, hermitian)
        if zero:
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        if row != k + size - 1:
            _swap_ldl_rows_columns(a, k + size - 1, row, k, hermitian)
        if size == 1:
            pivots[k] = row + 1
            column = a[k + 1 :, k].copy()
            pivot = a[k, k].real if hermitian else a[k, k]
            if hermitian:
                a[k, k] = pivot
            a[k + 1 :, k] = column / pivot
            a[k + 1 :, k + 1 :] -= xp.tril(a[k + 1 :, k, None] * conj(column)[None, :])
        else:
            pivots[k] = pivots[k + 1] = -(row + 1)
            block = xp.array([[a[k, k], conj(a[k + 1, k])], [a[k + 1, k], a[k + 1, k + 1]]], dtype=a.dtype)
            columns = a[k + 2 :, k : k + 2].copy()
            a[k + 2 :, k : k + 2] = columns @ xp.linalg.inv(block)
            a[k + 2 :, k + 2 :] -= xp.tril(a[k + 2 :, k : k + 2] @ conj(columns).T)
        k += size
    return info


def _ldl_solve_core(LD, pivots, B, hermitian):
    """Solve A X = B from the packed factors of A."""
    batch = xp.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    factors = _copy_with_flat_batch(xp.broadcast_to(LD, (*batch, *LD.shape[-2:])))
    order = xp.broadcast_to(pivots, (*batch, pivots.shape[-1])).reshape((_numel(batch), pivots.shape[-1]))
    b = _copy_with_flat_batch(xp.broadcast_to(B, (*batch, *B.shape[-2:])))
    for i in range(b.shape[0]):
        _ldl_solve_unbatched(factors[i], order[i], b[i], hermitian and LD.dtype.kind == "c")
    return b.reshape((*batch, *B.shape[-2:]))


def _ldl_solve_unbatched(a, pivots, b, hermitian):
    conj = xp.conj if hermitian else lambda x: x
    n, k, steps = a.shape[0], 0, []
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        one, other = k + size - 1, abs(int(pivots[k])) - 1
        if one != other:
            b[[one, other]] = b[[other, one]]
        below = a[k + size :, k : k + size]
        b[k + size :] -= below @ b[k : k + size]
        block = (
            a[k : k + 1, k : k + 1]
            if size == 1
            else xp.array([[a[k, k], conj(a[k + 1, k])], [a[k + 1, k], a[k + 1, k + 1]]], dtype=a.dtype)
        )
        steps.append((k, size, one, other, block))
        k += size
    for k, size, _, _, block in reversed(steps):
        b[k : k + size] = b[k : k + size] / block[0, 0] if size == 1 else xp.linalg.solve(block, b[k : k + size])
    for k, size, one, other, _ in reversed(steps):
        b[k : k + size] -= conj(a[k + size :, k : k + size]).T @ b[k + size :]
        if one != other:
            b[[one, other]] = b[[other, one]]


# --- functions of matrices ------------------------------------------------------------------------


_PADE_COEFFICIENTS = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_PADE_RADIUS = 4.25


def matrix_exp(input):
    """Matrix exponential by scaling and squaring with the [13/13] Pade approximant (Higham, 2005)."""
    if input.dtype.kind in "biu" or input.shape[-1] != input.shape[-2]:
        raise TypeError("matrix_exp takes batches of square matrices of floating point or complex numbers")
    if not input.size:
        return input.copy()
    a = _copy_with_flat_batch(input)
    if a.dtype.itemsize < 4 or a.dtype == xp.float32 or a.dtype == xp.complex64:
        a = a.astype(xp.complex128 if a.dtype.kind == "c" else xp.float64)
    norms = xp.max(xp.sum(xp.abs(a), axis=-2), axis=-1)
    finite = xp.isfinite(norms)
    halvings = xp.ceil(xp.log2(xp.maximum(xp.where(finite, norms, 0) / _PADE_RADIUS, 1))).astype(xp.int64)
    with xp.errstate(all="ignore"):
        a = xp.where(finite[:, None, None], a, 0) * (0.5**halvings)[:, None, None]
        result = _pade_numerator_denominator(a)
        for i in range(int(halvings.max())):
            more = halvings > i
            result[more] = result[more] @ result[more]
        result[~finite] = xp.nan
        return result.astype(input.dtype).reshape(input.shape)


def _pade_numerator_denominator(a):
    one = _make_identity(a.shape[-1], a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a2 @ a4
    c = _PADE_COEFFICIENTS
    odd = a @ (a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one)
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    return xp.linalg.solve(even - odd, even + odd)


def _pinv_core(input, rtol, atol, hermitian):
    """Pseudoinverse: singular values (or eigenvalues) up to max(atol, rtol * greatest) count as zero."""
    if not input.size:
        return xp.zeros((*input.shape[:-2], input.shape[-1], input.shape[-2]), dtype=input.dtype)
    with xp.errstate(all="ignore"):
        u, s, vh = _compute_svd_or_eigh(input, hermitian)
        size = xp.abs(s)
        limit = xp.maximum(
            xp.asarray(atol, dtype=size.dtype), xp.asarray(rtol, dtype=size.dtype) * xp.max(size, axis=-1)
        )
        kept = size > limit[..., None]
        inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0).astype(s.dtype)
        return (_conjugate_transpose(vh) * inverse[..., None, :]) @ _conjugate_transpose(u)


def _compute_svd_or_eigh(input, hermitian):
    """Return singular values and vectors, or those of the eigendecomposition for Hermitian matrices."""
    if not hermitian:
        return xp.linalg.svd(input, full_matrices=False)
    values, vectors = xp.linalg.eigh(input)
    return vectors, values, _conjugate_transpose(vectors)


def _lstsq_rank(input, rcond):
    """Return the effective rank: the number of singular values above rcond times the greatest."""
    s = xp.linalg.svd(input, compute_uv=False)
    if not s.size:
        return xp.zeros(input.shape[:-2], dtype=xp.int64)
    return xp.sum(s > rcond * xp.max(s, axis=-1, keepdims=True), axis=-1).astype(xp.int64)
