"""cuSOLVER's functions on the host's memory, by their documentation: column-major matrices, factors in place, one
outcome each.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tests.cuda_simulator.cublas import _matrix

_TYPES = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}
INVALID_VALUE = 3


class FakeSolver:
    """In the place of `torchlite_backends.cupy.cusolver.opened`. `calls` counts factorisations."""

    def __init__(self, driver: Any):
        self._driver = driver
        self._stream: Any = None
        self.calls = 0

    def cusolverDnCreate(self, at: int) -> int:
        ctypes.c_void_p.from_address(at).value = 0x51
        return 0

    def cusolverDnCreateParams(self, at: int) -> int:
        ctypes.c_void_p.from_address(at).value = 0x52
        return 0

    def cusolverDnSetStream(self, handle: int, stream: int) -> int:
        self._stream = stream
        return 0 if handle == 0x51 else INVALID_VALUE

    def _sized(self, device: int, host: int) -> int:
        ctypes.c_size_t.from_address(device).value, ctypes.c_size_t.from_address(host).value = 1000, 24
        return 0

    def _started(self, handle, parameters, there, there_size, here, here_size) -> bool:
        self.calls += 1
        ctypes.memset(there, 1, there_size)
        ctypes.memset(here, 1, here_size)
        return handle == 0x51 and parameters == 0x52 and there_size == 1000 and here_size == 24

    def cusolverDnXpotrf_bufferSize(self, handle, parameters, uplo, n, kind, a, lda, compute, device, host) -> int:
        return self._sized(device, host)

    def cusolverDnXpotrf(
        self, handle, parameters, uplo, n, kind, a, lda, compute, there, there_size, here, here_size, info
    ) -> int:
        if not self._started(handle, parameters, there, there_size, here, here_size) or lda < n or kind != compute:
            return INVALID_VALUE
        x, outcome = _matrix(a, kind, n, n, lda), 0
        full = np.triu(x) + np.triu(x, 1).conj().T if uplo == 1 else np.tril(x) + np.tril(x, -1).conj().T
        for k in range(1, n + 1):  # the first leading part that is not positive definite
            if np.linalg.eigvalsh(full[:k, :k])[0] <= 0:
                outcome = k
                break
        if not outcome:
            factor = np.linalg.cholesky(full)
            keep = np.triu if uplo == 1 else np.tril
            x[...] = keep(factor.conj().T if uplo == 1 else factor) + (x - keep(x))
        ctypes.c_int.from_address(info).value = outcome
        return 0

    def cusolverDnXgetrf_bufferSize(self, handle, parameters, m, n, kind, a, lda, compute, device, host) -> int:
        return self._sized(device, host)

    def cusolverDnXgetrf(
        self, handle, parameters, m, n, kind, a, lda, pivots, compute, there, there_size, here, here_size, info
    ) -> int:
        if not self._started(handle, parameters, there, there_size, here, here_size) or lda < m or kind != compute:
            return INVALID_VALUE
        x, places, outcome = (
            _matrix(a, kind, m, n, lda),
            np.frombuffer((ctypes.c_int64 * min(m, n)).from_address(pivots), np.int64),
            0,
        )
        for k in range(min(m, n)):
            at = k + int(np.argmax(np.abs(x[k:, k].real) + np.abs(x[k:, k].imag)))
            places[k] = at + 1
            x[[k, at]] = x[[at, k]]
            if x[k, k] == 0:
                outcome = outcome or k + 1
                continue
            x[k + 1 :, k] /= x[k, k]
            x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
        ctypes.c_int.from_address(info).value = outcome
        return 0

    def cusolverDnXsyevd_bufferSize(
        self, handle, parameters, vectors, uplo, n, kind, a, lda, kind_w, w, compute, device, host
    ) -> int:
        return self._sized(device, host)

    def cusolverDnXsyevd(
        self,
        handle,
        parameters,
        vectors,
        uplo,
        n,
        kind,
        a,
        lda,
        kind_w,
        w,
        compute,
        there,
        there_size,
        here,
        here_size,
        info,
    ) -> int:
        if (
            not self._started(handle, parameters, there, there_size, here, here_size)
            or lda < n
            or kind != compute
            or kind_w != kind % 4
        ):
            return INVALID_VALUE
        x = _matrix(a, kind, n, n, lda)
        values = np.frombuffer(
            (ctypes.c_char * (n * np.dtype(_TYPES[kind_w]).itemsize)).from_address(w), _TYPES[kind_w]
        )
        found = np.linalg.eigh(x, "U" if uplo == 1 else "L")
        values[...] = found[0]
        x[...] = found[1] if vectors else np.nan
        ctypes.c_int.from_address(info).value = 0
        return 0
