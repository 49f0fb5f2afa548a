"""cuBLAS's functions on the host's memory, by their documentation: column-major matrices, leading dimensions, sums in
the compute type.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import ml_dtypes
import numpy as np

NOT_INITIALIZED, INVALID_VALUE, NOT_SUPPORTED = 1, 7, 15
_INT8, _INT32 = 3, 10
_TYPES = {
    0: np.float32, 1: np.float64, 2: np.float16, _INT8: np.int8, 4: np.complex64, 5: np.complex128, _INT32: np.int32,
    14: ml_dtypes.bfloat16,
}  # fmt: skip
_SUMS = {68: np.float32, 70: np.float64, 72: np.int32, 77: np.float32}


def _tf32(x: np.ndarray) -> np.ndarray:
    """Rounded to ten bits of mantissa."""
    if x.dtype == np.complex64:
        return (_tf32(x.real.copy()) + 1j * _tf32(x.imag.copy())).astype(np.complex64)
    bits = x.view(np.uint32)
    return ((bits + 0x0FFF + (bits >> 13 & 1)) & 0xFFFFE000).view(np.float32)


def _matrix(address: int, kind: int, rows: int, columns: int, leading: int) -> np.ndarray:
    """A column-major matrix in memory."""
    dtype = np.dtype(_TYPES[kind])
    size = (leading * (columns - 1) + rows) * dtype.itemsize
    flat = np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8).view(dtype)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (dtype.itemsize, leading * dtype.itemsize))


class FakeBlas:
    """Replacement for `torchlite_backends.cupy.cublas.opened`. `calls` counts products; calls on a capturing
    stream are recorded.
    """

    def __init__(self, driver: Any):
        self._driver = driver
        self._numbers = itertools.count(1)
        self._streams: dict[int, int] = {}
        self.workspaces: dict[int, int] = {}  # by stream: the address
        self.modes: dict[int, int] = {}
        self.calls = 0

    def cublasCreate_v2(self, handle: int) -> int:
        ctypes.c_void_p.from_address(handle).value = next(self._numbers)
        return 0

    def cublasSetStream_v2(self, handle: int, stream: int) -> int:
        self._streams[handle] = stream
        self.workspaces.pop(stream, None)
        return 0

    def cublasSetWorkspace_v2(self, handle: int, address: int, size: int) -> int:
        self.workspaces[self._streams[handle]] = address
        return INVALID_VALUE if address % 256 else 0

    def cublasSetMathMode(self, handle: int, mode: int) -> int:
        self.modes[handle] = mode
        return 0

    def cublasGemmEx(
        self,
        handle,
        transa,
        transb,
        m,
        n,
        k,
        alpha,
        a,
        a_type,
        lda,
        b,
        b_type,
        ldb,
        beta,
        c,
        c_type,
        ldc,
        compute,
        algorithm,
    ) -> int:
        return self.cublasGemmStridedBatchedEx(
            handle,
            transa,
            transb,
            m,
            n,
            k,
            alpha,
            a,
            a_type,
            lda,
            0,
            b,
            b_type,
            ldb,
            0,
            beta,
            c,
            c_type,
            ldc,
            0,
            1,
            compute,
            algorithm,
        )

    def cublasGemmStridedBatchedEx(
        self,
        handle,
        transa,
        transb,
        m,
        n,
        k,
        alpha,
        a,
        a_type,
        lda,
        stride_a,
        b,
        b_type,
        ldb,
        stride_b,
        beta,
        c,
        c_type,
        ldc,
        stride_c,
        count,
        compute,
        algorithm,
    ) -> int:
        if (
            min(m, n, k, count) < 0
            or lda < max(1, k if transa else m)
            or ldb < max(1, n if transb else k)
            or ldc < max(1, m)
            or (a_type, b_type, c_type) != ((_INT8, _INT8, _INT32) if compute == 72 else (a_type,) * 3)
        ):
            return INVALID_VALUE
        if _SUMS[compute] is not (np.int32 if a_type == _INT8 else np.float64 if a_type in (1, 5) else np.float32):
            return INVALID_VALUE
        if a_type == _INT8 and any(x % 4 for x in (lda, ldb, a, b)):
            return NOT_SUPPORTED
        if self._streams[handle] not in self.workspaces:
            return NOT_INITIALIZED
        self.calls += 1
        number = _TYPES[a_type] if a_type in (4, 5) else _SUMS[compute]
        size = np.dtype(number).itemsize
        alpha, beta = (np.frombuffer(ctypes.string_at(at, size), number)[0] for at in (alpha, beta))

        def work() -> None:
            for t in range(count):
                step, out_step = (np.dtype(_TYPES[kind]).itemsize * t for kind in (a_type, c_type))
                x = self._operand(a + stride_a * step, a_type, transa, m, k, lda, number, compute)
                y = self._operand(b + stride_b * step, b_type, transb, k, n, ldb, number, compute)
                to = _matrix(c + stride_c * out_step, c_type, m, n, ldc)
                with np.errstate(over="ignore", invalid="ignore"):
                    result = alpha * (x @ y)
                    to[...] = result if beta == 0 else result + beta * to.astype(number)

        self._driver.do(self._streams[handle], work)
        return 0

    def _operand(self, address, kind, operation, rows, columns, leading, number, compute):
        x = _matrix(address, kind, *((columns, rows) if operation else (rows, columns)), leading).astype(number)
        if compute == 77:
            x = _tf32(np.ascontiguousarray(x))
        return x.conj().T if operation == 2 else x.T if operation == 1 else x
