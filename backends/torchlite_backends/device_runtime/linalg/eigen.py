"""Eigenvalues: implicit QL on the tridiagonal form of Hermitian matrices, shifted QR on the Hessenberg form of others.

General matrices are computed in complex arithmetic. See Golub and Van Loan, "Matrix Computations", chapters 7 and 8.
"""

from __future__ import annotations

import numpy as np

from torchlite_backends.kernel_sources.dtype_kinds import COMPLEX_KIND
from torchlite_backends.kernel_sources.eigen import GENERAL, HERMITIAN

from ..core.array import Array, empty
from ..core.contiguous_copy import clone_row_major
from ..core.host_transfer import to_numpy
from ..core.pointwise_dispatch import cast
from .matrix_launch import count_elements, launch_per_matrix, real_kind_of


def _compute_eigh(input: Array, UPLO: str, wanted: int) -> tuple[Array, Array]:
    batch, n = input.shape[:-2], input.shape[-1]
    device, kind, count = input.device, input.kind, count_elements(batch)
    found = device.library_factorise("eigh", input, str(UPLO).upper() == "L", bool(wanted))
    if found is not None:
        return found
    real = real_kind_of(kind)
    values, vectors = empty(device, (*batch, n), real), empty(device, input.shape if wanted else (), kind)
    if values.size:
        q = empty(device, input.shape if wanted else (), kind)
        work = empty(device, (count, 5, n), kind), empty(device, (count, 4, n), real)
        a, upper = clone_row_major(input), int(str(UPLO).upper() == "U")
        launch_per_matrix(
            device, kind, HERMITIAN, "eigh", "ppppppiii", count, a, q, *work, values, vectors, n, upper, wanted
        )
    return values, vectors


def _eigh_core(input, UPLO):
    return _compute_eigh(input, UPLO, 1)


def _eigvalsh_core(input, UPLO):
    return _compute_eigh(input, UPLO, 0)[0]


def _compute_eig(input: Array, wanted: int) -> tuple[Array, Array]:
    """Return eigenvalues and vectors. RuntimeError for a non-finite element, for which the host waits."""
    batch, n = input.shape[:-2], input.shape[-1]
    kind = COMPLEX_KIND.get(input.kind, input.kind)
    device, count = input.device, count_elements(batch)
    values, vectors = empty(device, (*batch, n), kind), empty(device, input.shape if wanted else (), kind)
    if values.size:
        h = cast(input, kind, empty(device, input.shape, kind))
        info, z, work = (
            empty(device, (count,), "i32"),
            empty(device, input.shape, kind),
            empty(device, (count, 3, n), kind),
        )
        launch_per_matrix(device, kind, GENERAL, "eig", "ppppppii", count, h, z, work, info, values, vectors, n, wanted)
        if np.any(to_numpy(info)):
            raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return values, vectors


def _eig_core(input):
    return _compute_eig(input, 1)


def _eigvals_core(input):
    return _compute_eig(input, 0)[0]
