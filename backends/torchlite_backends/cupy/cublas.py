"""Matrix products through cuBLAS, called by its documented C functions: CuPy's wrappers refuse during graph capture.

cuBLAS is column-major, so it computes the transposed product of the transposed operands: `b` here comes first there.
Half and bfloat16 accumulate in float32; float32 operands are rounded to TF32 only if
`torch.backends.cuda.matmul.allow_tf32` is set. Signed levels have int32 sums. Other integers, and conjugates without a
transpose, use our own kernels.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.device_runtime.core.array import Array
from torchlite_backends.device_runtime.core.copy_fill import copy_into
from torchlite_backends.device_runtime.linalg.gemm import LEVELS, GemmShape

# By kind: cudaDataType, cublasComputeType, the struct code of alpha and beta.
TYPES = {
    "f16": (2, 68, "f"), "bf16": (14, 68, "f"), "f32": (0, 68, "f"), "f64": (1, 70, "d"), "c64": (4, 68, "2f"),
    "c128": (5, 70, "2d"), LEVELS: (3, 72, "i"),
}  # fmt: skip
_SUMS_OF_LEVELS = 10  # cudaDataType of the results of levels
COMPUTE_TF32, NO_REDUCED_SUMS, DEFAULT_ALGORITHM = 77, 16, -1
PLAIN, TRANSPOSED, CONJUGATED = 0, 1, 2
_MAX_CALLS = 16  # launches for the outer batch dimension of one product
_WORKSPACES = {False: 8 << 20, True: 32 << 20}  # bytes, as in PyTorch: before Hopper, and from it on
_I, _L, _P = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
# The parameters of the functions used, in the order of cuBLAS's documentation.
SIGNATURES = {
    "cublasCreate_v2": (_P,), "cublasSetStream_v2": (_P, _P), "cublasSetWorkspace_v2": (_P, _P, ctypes.c_size_t),
    "cublasSetMathMode": (_P, _I),
    "cublasGemmEx": (_P, _I, _I, _I, _I, _I, _P, _P, _I, _I, _P, _I, _I, _P, _P, _I, _I, _I, _I),
    "cublasGemmStridedBatchedEx": (
        _P, _I, _I, _I, _I, _I, _P, _P, _I, _I, _L, _P, _I, _I, _L, _P, _P, _I, _I, _L, _I, _I, _I,
    ),
}  # fmt: skip
_STATUS = {
    1: "NOT_INITIALIZED",
    3: "ALLOC_FAILED",
    7: "INVALID_VALUE",
    8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED",
    14: "INTERNAL_ERROR",
    15: "NOT_SUPPORTED",
    16: "LICENSE_ERROR",
}


def open_library(path: str) -> Any:
    """Load the library with its parameter types. Its calls only enqueue work, so they keep the GIL."""
    library = ctypes.PyDLL(path)
    for name, parameters in SIGNATURES.items():
        getattr(library, name).argtypes = parameters
    return library


def check_status(status: int) -> None:
    """Raise PyTorch's RuntimeError for a status other than success."""
    if status:
        raise RuntimeError(f"CUDA error: CUBLAS_STATUS_{_STATUS.get(status, status)} when calling cuBLAS")


class Cublas:
    """cuBLAS on one device: one handle, and a workspace per stream, since products in several streams may overlap."""

    def __init__(self, device: Any, library: Any):
        self.device, self.library = device, library
        self.gemm, self.batched = library.cublasGemmEx, library.cublasGemmStridedBatchedEx
        self.lock = threading.Lock()  # from the choice of the stream to the last call of a product
        self.numbers = ctypes.create_string_buffer(32)  # alpha and beta
        self.alpha = ctypes.addressof(self.numbers)
        self.beta = self.alpha + 16
        self.math = 0
        self._handle: Any = None
        self._queue = -1  # the stream that the handle is set to
        self._workspaces: dict[int, Any] = {}

    def handle(self) -> Any:
        """Return the handle, set to the calling thread's stream."""
        queue = self.device.driver.stream().ptr
        if queue != self._queue:
            self._set_for(queue)
        return self._handle

    def _set_for(self, queue: int) -> None:
        library = self.library
        if self._handle is None:
            made = ctypes.c_void_p()
            check_status(library.cublasCreate_v2(ctypes.addressof(made)))
            self._handle = made.value
        check_status(library.cublasSetStream_v2(self._handle, queue))
        nbytes = _WORKSPACES[self.device.properties["major"] >= 9]
        workspace = self._workspaces.get(queue)
        if workspace is None:
            workspace = self._workspaces[queue] = self.device.allocate(nbytes)
        check_status(
            library.cublasSetWorkspace_v2(self._handle, workspace.ptr, nbytes)
        )  # after the stream, which resets it
        self._queue = queue

    def set_math(self, mode: int) -> None:
        """Set the math mode if it differs."""
        if mode != self.math:
            check_status(self.library.cublasSetMathMode(self._handle, mode))
            self.math = mode


def as_blas_operand(rows: int, columns: int, steps: tuple[int, ...], conj: bool) -> tuple[int, int] | None:
    """Return cuBLAS's operation and leading dimension for a matrix with these strides, or None.

    A row-major matrix is its own transpose in column-major order.
    """
    down, across = steps
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return None if conj else (PLAIN, max(down if rows > 1 else columns, 1))
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return CONJUGATED if conj else TRANSPOSED, max(across if columns > 1 else rows, 1)
    return None


class CublasGemm:
    """A product of fixed sizes, dtype and strides."""

    __slots__ = (
        "added", "before", "blas", "calls", "compute", "kind", "may_round", "may_shorten", "pack", "result", "shape",
        "strides", "type",
    )  # fmt: skip

    def __init__(
        self, blas: Cublas, kind: str, sizes: GemmShape, added: bool, first: tuple[int, int], second: tuple[int, int]
    ):
        s = sizes
        self.blas, self.kind, self.added = blas, kind, added
        self.type, self.compute, code = TYPES[kind]
        self.result = _SUMS_OF_LEVELS if kind == LEVELS else self.type
        self.pack = struct.Struct(f"{code}{16 - struct.calcsize(code)}x{code}").pack_into
        self.may_round, self.may_shorten = kind in ("f32", "c64"), kind in ("f16", "bf16")  # where switches say so
        self.before = (first[0], second[0], s.n, s.m, s.k)
        self.shape = (first[1], second[1], max(s.c[0], s.n))
        # The longer batch dimension is batched in one call; the other one is looped over here.
        inner = int(s.batch[1] >= s.batch[0])
        steps = (s.a_batch, s.b_batch, s.c_batch)
        self.calls = s.batch[1 - inner], [x[1 - inner] for x in steps]
        self.strides = s.batch[inner], [x[inner] for x in steps]

    def run(self, a: Array, b: Array, c: Array, d: Array | None = None, alpha: Any = 1, beta: Any = 1) -> None:
        """Compute c = alpha * a @ b, plus beta * d if requested."""
        blas = self.blas
        if self.added:
            copy_into(c, d)
        waiting = blas.device.waiting
        if waiting.steps:
            waiting.start()
        if blas.device.driver.alone:
            return self._run(a, b, c, alpha, beta)
        with blas.device.driver.current():
            self._run(a, b, c, alpha, beta)

    def _run(self, a: Array, b: Array, c: Array, alpha: Any, beta: Any) -> None:
        blas, size, out_size, kind = self.blas, a.dtype.itemsize, c.dtype.itemsize, self.type
        compute = COMPUTE_TF32 if self.may_round and FLAGS.tf32("matmul") else self.compute
        at_a, at_b, at_c = (
            a.buffer.ptr + a.offset * size,
            b.buffer.ptr + b.offset * size,
            c.buffer.ptr + c.offset * out_size,
        )
        lb, la, lc = self.shape
        count, (sa, sb, sc) = self.strides
        times, (oa, ob, oc) = self.calls
        with blas.lock:
            handle = blas.handle()
            if self.may_shorten:
                self._set_math()
            self._set_numbers(alpha, beta if self.added else 0)
            for t in range(times):
                pa, pb, pc = at_a + t * oa * size, at_b + t * ob * size, at_c + t * oc * out_size
                if count == 1:
                    status = blas.gemm(
                        handle,
                        *self.before,
                        blas.alpha,
                        pb,
                        kind,
                        lb,
                        pa,
                        kind,
                        la,
                        blas.beta,
                        pc,
                        self.result,
                        lc,
                        compute,
                        DEFAULT_ALGORITHM,
                    )
                else:
                    status = blas.batched(
                        handle,
                        *self.before,
                        blas.alpha,
                        pb,
                        kind,
                        lb,
                        sb,
                        pa,
                        kind,
                        la,
                        sa,
                        blas.beta,
                        pc,
                        self.result,
                        lc,
                        sc,
                        count,
                        compute,
                        DEFAULT_ALGORITHM,
                    )
                if status:
                    check_status(status)

    def _set_numbers(self, alpha: Any, beta: Any) -> None:
        if self.kind[0] == "c":
            alpha, beta = complex(alpha), complex(beta)
            self.pack(self.blas.numbers, 0, alpha.real, alpha.imag, beta.real, beta.imag)
        else:
            number = int if self.kind == LEVELS else float
            self.pack(self.blas.numbers, 0, number(alpha), number(beta))

    def _set_math(self) -> None:
        """Set the math mode by the settings for reduced-precision reductions of half and bfloat16."""
        may = (
            FLAGS.allow_fp16_reduced_precision_reduction
            if self.kind == "f16"
            else FLAGS.allow_bf16_reduced_precision_reduction
        )
        self.blas.set_math(0 if may else NO_REDUCED_SUMS)


def plan_cublas_gemm(
    blas: Cublas, kind: str, sizes: GemmShape, added: bool, conj: tuple[bool, bool]
) -> CublasGemm | None:
    """Return the cuBLAS call for a product; None if cuBLAS does not support it."""
    s = sizes
    if (
        kind not in TYPES
        or not s.k
        or not (s.c[1] == 1 or s.n == 1)
        or s.m > 1
        and s.c[0] < s.n
        or min(s.batch) > _MAX_CALLS
    ):
        return None
    complex_ = kind[0] == "c"
    first, second = (
        as_blas_operand(s.k, s.n, s.b, complex_ and conj[1]),
        as_blas_operand(s.m, s.k, s.a, complex_ and conj[0]),
    )
    if first is None or second is None:
        return None
    if kind == LEVELS and (first[1] % 4 or second[1] % 4 or not _multiplies_levels(blas.device)):
        return None
    return CublasGemm(blas, kind, s, added, first, second)


def _multiplies_levels(device: Any) -> bool:
    """True for processors that have instructions for sums of products of levels (compute capability 6.1)."""
    return (device.properties["major"], device.properties["minor"]) >= (6, 1)
