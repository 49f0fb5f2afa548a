"""Factorisations of large matrices through cuSOLVER's documented 64-bit functions.

Our own kernels give each matrix to one multiprocessor, which is slow for large ones. cuSOLVER is column-major: a
row-major matrix is its transpose there, a Hermitian one its conjugate.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from torchlite_backends.device_runtime.array_ops.diagonals import tril
from torchlite_backends.device_runtime.array_ops.pointwise import KERNELS
from torchlite_backends.device_runtime.core.array import Array, empty, make_view
from torchlite_backends.device_runtime.core.contiguous_copy import clone_row_major
from torchlite_backends.device_runtime.core.pointwise_dispatch import cast
from torchlite_backends.device_runtime.linalg.matrix_launch import count_elements, real_kind_of

MIN_SIZE, MAX_BATCH = 256, 16  # minimum rows of a matrix, and maximum number of matrices, for cuSOLVER
LOWER, UPPER = 0, 1
# By kind: cudaDataType.
TYPES = {"f32": 0, "f64": 1, "c64": 4, "c128": 5}
_I, _L, _P, _S = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t
_BUFFERS = (_P, _S, _P, _S, _P)  # on the device, on the host, and where the outcome goes
# The parameters of the functions used, in the order of cuSOLVER's documentation.
SIGNATURES = {
    "cusolverDnCreate": (_P,),
    "cusolverDnCreateParams": (_P,),
    "cusolverDnSetStream": (_P, _P),
    "cusolverDnXpotrf_bufferSize": (_P, _P, _I, _L, _I, _P, _L, _I, _P, _P),
    "cusolverDnXpotrf": (_P, _P, _I, _L, _I, _P, _L, _I, *_BUFFERS),
    "cusolverDnXgetrf_bufferSize": (_P, _P, _L, _L, _I, _P, _L, _I, _P, _P),
    "cusolverDnXgetrf": (_P, _P, _L, _L, _I, _P, _L, _P, _I, *_BUFFERS),
    "cusolverDnXsyevd_bufferSize": (_P, _P, _I, _I, _L, _I, _P, _L, _I, _P, _I, _P, _P),
    "cusolverDnXsyevd": (_P, _P, _I, _I, _L, _I, _P, _L, _I, _P, _I, *_BUFFERS),
}


def open_library(path: str) -> Any:
    """Load the library with its parameter types."""
    library = ctypes.CDLL(path)
    for name, parameters in SIGNATURES.items():
        getattr(library, name).argtypes = parameters
    return library


def check_status(status: int) -> None:
    """Raise RuntimeError for a status other than success."""
    if status:
        raise RuntimeError(f"cusolver error: status {status}")


class Cusolver:
    """cuSOLVER on one device."""

    def __init__(self, device: Any, library: Any):
        self.device, self.library = device, library
        self._lock = threading.Lock()
        self._handle: Any = None
        self._parameters: Any = None

    def should_factor(self, x: Array) -> bool:
        """True if cuSOLVER should factor an array's matrices."""
        return (
            x.kind in TYPES
            and min(x.shape[-2:]) >= MIN_SIZE
            and 0 < count_elements(x.shape[:-2]) <= MAX_BATCH
            and not self.device.capturing
        )

    def lu(self, x: Array) -> tuple[Array, Array, Array]:
        """Return packed factors, pivots and infos."""
        *batch, m, n = x.shape
        a, kind, at = clone_row_major(_transpose_view(x)), TYPES[x.kind], x.dtype.itemsize * m * n
        pivots, info = empty(x.device, (*batch, min(m, n)), "i64"), empty(x.device, tuple(batch), "i32")
        for t in range(info.size):
            where, places = a.buffer.ptr + t * at, pivots.buffer.ptr + 8 * t * min(m, n)
            self._call_with_workspace(
                "cusolverDnXgetrf",
                (m, n, kind, where, m),
                (m, n, kind, where, m, places),
                (kind,),
                info.buffer.ptr + 4 * t,
            )
        return clone_row_major(_transpose_view(a)), cast(pivots, "i32"), info

    def cholesky(self, x: Array) -> tuple[Array, Array]:
        """Return lower factors, zero above the diagonal, and infos."""
        n, a, kind = x.shape[-1], clone_row_major(x), TYPES[x.kind]
        info = empty(x.device, x.shape[:-2], "i32")
        for t in range(info.size):
            given = UPPER, n, kind, a.buffer.ptr + t * x.dtype.itemsize * n * n, n
            self._call_with_workspace("cusolverDnXpotrf", given, given, (kind,), info.buffer.ptr + 4 * t)
        return tril(a), info

    def eigh(self, x: Array, lower: bool, wanted: bool) -> tuple[Array, Array]:
        """Return eigenvalues in ascending order, and eigenvectors if requested."""
        *batch, n, _ = x.shape
        a, kind, real = clone_row_major(x), TYPES[x.kind], TYPES[real_kind_of(x.kind)]
        values, info = empty(x.device, (*batch, n), real_kind_of(x.kind)), empty(x.device, tuple(batch), "i32")
        for t in range(info.size):
            at = values.buffer.ptr + t * values.dtype.itemsize * n
            given = (
                int(wanted),
                UPPER if lower else LOWER,
                n,
                kind,
                a.buffer.ptr + t * x.dtype.itemsize * n * n,
                n,
                real,
                at,
            )
            self._call_with_workspace("cusolverDnXsyevd", given, given, (kind,), info.buffer.ptr + 4 * t)
        if not wanted:
            return values, empty(x.device, (), x.kind)
        vectors = _transpose_view(a)
        return values, KERNELS["conj"](vectors) if x.kind[0] == "c" else clone_row_major(vectors)

    def _call_with_workspace(self, name: str, sized: tuple, given: tuple, compute: tuple, info: int) -> None:
        """Call a function of the library: first for its buffer sizes, then with the buffers."""
        device, library, sizes = self.device, self.library, (ctypes.c_size_t * 2)()
        if device.waiting.steps:
            device.waiting.start()
        at = ctypes.addressof(sizes)
        with device.driver.current(), self._lock:
            self._prepare()
            check_status(
                getattr(library, f"{name}_bufferSize")(
                    self._handle, self._parameters, *sized, *compute, at, at + ctypes.sizeof(_S)
                )
            )
            there, here = device.allocate(sizes[0]), ctypes.create_string_buffer(max(sizes[1], 1))
            check_status(
                getattr(library, name)(
                    self._handle,
                    self._parameters,
                    *given,
                    *compute,
                    there.ptr,
                    sizes[0],
                    ctypes.addressof(here),
                    sizes[1],
                    info,
                )
            )
            if sizes[1]:  # the host's buffer must last as long as the work
                device.driver.synchronize_stream(device.driver.stream().ptr)

    def _prepare(self) -> None:
        if self._handle is None:
            made = (ctypes.c_void_p * 2)()
            check_status(self.library.cusolverDnCreate(ctypes.addressof(made)))
            check_status(self.library.cusolverDnCreateParams(ctypes.addressof(made) + ctypes.sizeof(_P)))
            self._handle, self._parameters = made[0], made[1]
        check_status(self.library.cusolverDnSetStream(self._handle, self.device.driver.stream().ptr))


def _transpose_view(x: Array) -> Array:
    """Return the transposed matrices as a view."""
    return make_view(x, (*x.shape[:-2], x.shape[-1], x.shape[-2]), (*x.steps[:-2], x.steps[-1], x.steps[-2]), x.offset)
