"""The CPU: NumPy."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import torchlite_backends.array
import torchlite_backends.array.linalg
from torchlite._types.dtypes import FROM_NUMPY, dtype, float32, float64, from_np
from torchlite_backends.array import special
from torchlite_backends.array.storage import as_writable, base_owner, storage_block, view_exact_range
from torchlite_backends.cpu_engines import engine_selection

from . import deterministic_gemm, half_casts
from .deterministic_gemm import deterministic_dot, deterministic_matmul, with_single_thread
from .half_precision import run_backward_in_float32, run_in_float32
from .lapack import get_lapack_kernels
from .malloc_tuning import raise_malloc_thresholds

# The kernels that add up, or round more than once: half precision runs through them in float32.
_NEEDS_FLOAT32 = """
    _adaptive_avg_pool _adaptive_avg_pool_backward _avg_pool _avg_pool_backward _batch_norm_eval _col2im
    _fused_conv_bn _floor_divide _index_put _int4_weight_product _int8_weight_product _lerp_scalar _lerp_tensor
    _sampled_mm _csr_mm_extremes _csr_mm
    addbmm addcdiv addcmul addmm
    addmv baddbmm cumprod deg2rad floor_divide hypot index_add lerp _linear_recurrence logaddexp logaddexp2 logit
    logsumexp mean prod rad2deg scatter_add scatter_reduce sinc special_entr special_xlog1py _std_correction
    _var_correction xlogy
""".split()

# The kernels of many calls of NumPy each, in whose place an engine may have one for arrays of any size.
_MULTI_CALL_KERNELS = "_layer_norm", "_rms_norm", "_sdpa", "gelu"

# Minimum number of elements of a copy by the kernels for large arrays.
_MIN_SIZE_TO_COPY_THREADED = 1 << 16


class NumpyBackend:
    """Backend protocol for "cpu"."""

    name = "cpu"
    array = np.ndarray

    def why_not(self) -> str:
        return ""

    def device_count(self) -> int:
        return 1

    @functools.cache  # noqa: B019 (there is one backend)
    def kernels(self, index: int) -> dict[str, Any]:
        raise_malloc_thresholds()
        if engine_selection.requested_engines():  # a wish that cannot be met is known at once
            engine_selection.select_engine()
        xp = torchlite_backends.array.Namespace(
            np, dot=deterministic_dot, matmul=deterministic_matmul, half_matmul=half_casts.half_matmul
        )
        table = torchlite_backends.array.bind_kernels(xp)
        table.update(torchlite_backends.array.bind_package(sys.modules[__name__], xp))
        table.update(get_lapack_kernels())
        for name in (*_NEEDS_FLOAT32, *(name for name in vars(special) if name in table)):
            table[name] = run_in_float32(table[name])
        for name in (*vars(torchlite_backends.array.linalg), "_householder_product_core"):
            if name in table:
                table[name] = with_single_thread(table[name])
        for name, kernel in list(table.items()):
            if isinstance(kernel, np.ufunc) and kernel.nout == 1:
                table.setdefault(name + "_", make_in_place_kernel(kernel))
        for name in _MULTI_CALL_KERNELS:
            table[name] = _make_deferred_engine_kernel(name, table[name])
        return table

    def large_kernels(self, index: int) -> dict[str, Any]:
        """The kernels in the place of others where arrays are large: NumPy's, and over them those of the engine."""
        table = self.own_large_kernels(index)
        engine = engine_selection.select_engine().engine
        if engine is not None:
            from torchlite_backends.cpu_engines.kernel_overrides import engine_kernels

            table.update(engine_kernels({**self.kernels(index), **table}, engine))
            deterministic_gemm.native_gemm.row = engine.gemv
            if engine.products is not None:
                deterministic_gemm.native_gemm.parts = engine.products
                deterministic_gemm.native_gemm.least = min(deterministic_gemm.native_gemm.least, engine.min_gemm_muls())
            half_casts.native_halves.cast, half_casts.native_halves.gemv = engine.cast_half, engine.half_gemv
            half_casts.native_halves.dot, half_casts.native_halves.number = engine.half_dot, engine.half_number
        else:
            from torchlite_backends.cpu_engines.kernel_hint import is_wanted, with_hints

            if is_wanted():
                table.update(with_hints({**self.kernels(index), **table}, lambda: self.onednn().library is None))
        return table

    def own_large_kernels(self, index: int) -> dict[str, Any]:
        """NumPy's own kernels for large arrays, whatever engine serves."""
        from .threaded_ufuncs import make_large_kernels

        table = make_large_kernels(self.kernels(index))
        widened = {*_NEEDS_FLOAT32, "sum"}
        return {name: run_in_float32(kernel) if name in widened else kernel for name, kernel in table.items()}

    def engine(self) -> str:
        """The name of the engine that computes over large arrays: "numpy", "cc" or "opencl"."""
        return engine_selection.select_engine().name

    def engines(self) -> list[tuple[str, str]]:
        """For each engine its name and a line: whether it serves, and why not."""
        return engine_selection.report_engines()

    as_array = staticmethod(np.asarray)
    in_float32 = staticmethod(run_in_float32)
    backward_in_float32 = staticmethod(run_backward_in_float32)
    # Dtypes that a Python number is combined with by the kernels themselves.
    scalar_dtypes = frozenset((float32, float64))

    def from_numpy(self, array: np.ndarray, index: int) -> np.ndarray:
        return array

    def to_numpy(self, raw: Any) -> np.ndarray:
        return raw

    def dtype_of(self, raw: Any) -> dtype:
        found = FROM_NUMPY.get(raw.dtype)
        return from_np(raw.dtype) if found is None else found

    def offset_between(self, raw: np.ndarray, base: np.ndarray) -> int:
        return raw.__array_interface__["data"][0] - base.__array_interface__["data"][0]

    def from_dlpack(self, exporter: Any) -> np.ndarray:
        return as_writable(view_exact_range(np.from_dlpack(exporter)))

    def from_foreign_array(self, array: np.ndarray, write: bool = False) -> np.ndarray:
        """A raw array on the memory of any NumPy array; with `write` it may be written in spite of the array's flag."""
        return as_writable(view_exact_range(array)) if write else view_exact_range(array)

    def memory(self, raw: np.ndarray) -> np.ndarray:
        held = storage_block(base_owner(raw))
        return np.ndarray((held.nbytes,), np.uint8, held)

    def copy_into(self, target: np.ndarray, source: Any) -> None:
        if target.size < _MIN_SIZE_TO_COPY_THREADED or source.__class__ is not np.ndarray or source.dtype.kind in "cW":
            np.copyto(target, source, casting="unsafe")
        else:
            from .threaded_ufuncs import _copy_

            _copy_(target, source)

    def is_sole_owner(self, raw: np.ndarray) -> bool:
        return raw.base is None

    def blockwise(self, body: Callable, outs: list, arrays: list, rows: int, size: int) -> Callable:
        """A function that processes arrays in blocks of rows, see `elementwise_partitioning.BlockwiseFunction`."""
        from .elementwise_partitioning import BlockwiseFunction

        return BlockwiseFunction(body, outs, arrays, rows, size)

    def widens_half(self, index: int) -> bool:
        return True

    def with_derivative(self, name: str, *options: Any) -> Callable | None:
        """A kernel that returns an activation and its derivative; None if an engine computes the two passes faster. See
        `saved_derivatives.kernel_with_derivative`.
        """
        if self.engine() != "numpy":
            return None
        from .saved_derivatives import kernel_with_derivative

        return kernel_with_derivative(name, *options)

    def out_variant(self, name: str) -> Callable | None:
        """A kernel with one more argument `into`, the arrays of four dimensions that it writes its results to."""
        if name != "_sdpa_backward" or self.engine() != "numpy":
            return None
        from .attention import _sdpa_backward

        return _sdpa_backward

    def count_multiplications(self, name: str, layouts: list) -> int:
        """See `grouped_gemm.count_multiplications`; 0 if an engine computes products."""
        if self.engine() != "numpy":
            return 0
        from .grouped_gemm import count_multiplications

        return count_multiplications(name, layouts)

    def grouped_gemm(self, calls: list) -> Callable | None:
        """A kernel that computes several products, see `grouped_gemm.make_grouped_kernel`."""
        from .grouped_gemm import make_grouped_kernel

        return make_grouped_kernel(calls)

    def varying(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Placeholder of an array in the arguments of `bind_kernel`: its shape and dtype."""
        from .bound_kernels import Varying

        return Varying(shape, dtype)

    def bind_kernel(self, name: str, args: tuple) -> Callable | None:
        """A function of the varying arrays among `args`; None if the op's kernel is to serve."""
        from .bound_kernels import bind_kernel

        return bind_kernel(name, args)

    def bind_channels_last(self, name: str, args: tuple, out: tuple) -> Callable | None:
        """A function of images whose channels are last (`bound_kernels.bind_channels_last`); None if there is none."""
        from .bound_kernels import bind_channels_last

        return bind_channels_last(name, args, out)

    def join_channels_last(self, shapes: list[tuple]) -> Callable:
        """A function of a list of arrays (images, rows, columns, channels) of these shapes that puts them side by side,
        for a backend that has other kernels for such arrays.
        """
        engine = engine_selection.select_engine().engine
        assert engine is not None
        return engine.channels_last().join(shapes)

    def chain_serves(self, name: str, operands: int, dtypes: list) -> bool:
        """True if `bind_chain` takes an elementwise op of so many operands, arrays and numbers; with the result's dtype
        last.
        """
        engine = engine_selection.select_engine().engine
        return engine is not None and engine.chain_serves(name, operands, dtypes)

    def bind_chain(self, shape: tuple, given: list[tuple], steps: list, outs: list[int], dtypes: dict) -> Any:
        """A function of arrays that runs a chain of elementwise ops; None if they are to run one by one."""
        engine = engine_selection.select_engine().engine
        return None if engine is None else engine.bind_chain(shape, given, steps, outs, dtypes)

    def fuse_pointwise(self, compute: Callable, given: list, outs: list, otherwise: Callable) -> Callable:
        """A function that computes `compute(kernels by op, arrays)` in as few kernels of the engine as possible;
        `otherwise` without an engine, and if it cannot fuse them.
        """
        engine = engine_selection.select_engine().engine
        if engine is None:
            return otherwise
        from torchlite_backends.cpu_engines.fused_launches import fuse_launches

        return fuse_launches(engine, compute, given, outs, otherwise) or otherwise

    def why_not_buildable(self) -> str:
        """Why kernels cannot be built in advance, in a sentence; empty where they can."""
        return engine_selection.select_buildable_engine().why_not_buildable()

    def record_kernels(self, run: Callable[[], None]) -> list[str]:
        """The texts of the compiled kernels that `run()` asks for, whose results mean nothing."""
        return engine_selection.select_buildable_engine().record_programs(run)

    def build_kernels(self, texts: list[str], done: Callable[[int, int], None]) -> list[str]:
        """Build kernels in advance, and have them serve from now on; messages for those that cannot be built."""
        return engine_selection.select_buildable_engine().build_programs(texts, done)

    def archive_kernels(self, texts: list[str], path: str) -> None:
        """Write an archive of kernels that were built in advance, for a distribution."""
        engine_selection.select_buildable_engine().archive_programs(texts, path)

    def onednn(self) -> Any:
        from torchlite_backends.onednn.library import find_library

        return find_library()

    def random_engine(self, index: int) -> Any:
        from .mt19937 import Engine

        return Engine()


def _make_deferred_engine_kernel(name: str, plain: Callable) -> Callable:
    """Return a kernel that calls an engine's, if it has one for arrays of any size; the first call selects the
    engine, since `import` must not wait for it.
    """
    serving: Callable | None = None

    def kernel(*args, **options):
        nonlocal serving
        if serving is None:
            engine = engine_selection.select_engine().engine
            serving = plain if engine is None else engine.small_array_kernels({name: plain}).get(name, plain)
        return serving(*args, **options)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def make_in_place_kernel(ufunc: np.ufunc):
    """The in-place kernel of a ufunc."""

    def unary(target):
        ufunc(target, target)

    def binary(target, other):
        ufunc(target, other, target)

    def kernel(target, *others):
        ufunc(target, *others, out=target)

    return unary if ufunc.nin == 1 else binary if ufunc.nin == 2 else kernel


backend = NumpyBackend()
