"""Kernels that an engine replaces: per op, the dtypes and the minimum number of elements.

NumPy keeps views, matrix products (OpenBLAS is the fastest there is), convolutions, which call an engine themselves
(`torchlite_backends.numpy.conv_cpu_engine`), random numbers (they equal PyTorch's), creation, in-place writes by index
(an invalid index must leave the array as it was), and the ops for which the measurements below favour it.

Measured on two Zen 4 cores with AVX-512, NumPy 2.4 and its ufuncs over threads, float32, 2**15, 2**18 and 2**22
elements: ratios of an engine's time to NumPy's, for both "cc" (g++ 12) and "opencl" (Intel's runtime) unless noted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from torchlite._types.dtypes import bfloat16
from torchlite_backends.device_runtime.core.processor_level import has_avx512

from .engine_selection import CpuEngine

# NumPy's nanoseconds per element on one core: an engine states the minimum number of elements for which its launch
# costs less.
STREAMING, CHEAP, MODERATE, EXPENSIVE = "pass", "cheap", "middle", "dear"
COSTS = STREAMING, CHEAP, MODERATE, EXPENSIVE

_HALF_DTYPES = (np.dtype("f2"), bfloat16.np)
_FLOATS = np.dtype("f4"), np.dtype("f8")
_INTEGER_DTYPES = tuple(map(np.dtype, "i1 i2 i4 i8 u1".split()))

# One pass over memory, at which NumPy's vectors are as fast (0.9 to 1.4). NumPy computes half precision one element at
# a time, 10 to 30 times slower, except for signs.
_HALF_OPS = """add sub mul div sqrt square maximum minimum eq ne lt le gt ge addcmul addcdiv
    floor ceil trunc round isnan isinf isfinite sum mean amax amin _max_dim _min_dim argmax argmin"""
# For "cc" 0.55 to 0.94 from 2**19 elements on: its threads begin sooner, and large results go past the caches.
_ARITHMETIC = "add sub mul div neg abs square maximum minimum"
# 0.4 to 0.8 from 2**18 elements on.
_LONG_PASSES = "where _where _choose sqrt sum mean cat"
_STREAMING_OPS = """relu _relu_backward clamp_min clamp_max reciprocal sign copysign _lerp_scalar leaky_relu hardsigmoid
    softshrink frac rsqrt hardswish exp _trunc_divide threshold hardshrink _prelu sgn angle"""
# Functions with AVX-512 loops in NumPy (then 1.0 to 1.5), and otherwise none or slow ones.
_TRANSCENDENTAL_OPS = (
    """exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 pow"""
)
# Several passes: 0.2 to 0.7.
_MULTI_PASS_OPS = """_clamp_scalars _masked_fill _masked_fill_tensor _lerp_tensor nan_to_num fmax fmin sigmoid silu
    _silu_backward softplus mish _mish_backward elu _elu _elu_backward gelu _gelu_backward logit sinc special_xlog1py
    _leaky_relu_backward logsigmoid _softplus_backward _huber"""
_ROW_OPS = """ _softmax _softmax_backward _log_softmax _log_softmax_backward _layer_norm _layer_norm_backward _rms_norm
    _rms_norm_backward _batch_norm_train _batch_norm_backward _channel_affine _cross_entropy _cross_entropy_backward
    prod count_nonzero _var_correction _std_correction logsumexp"""
# Element by element in NumPy, or in many passes: 0.03 to 0.6.
_SLOW_OPS = """erf erfc erfinv lgamma digamma hypot logaddexp logaddexp2 remainder fmod floor_divide _floor_divide xlogy
    i0 special_i0e special_i1 special_i1e special_ndtr special_ndtri special_log_ndtr special_erfcx special_entr
    igamma igammac logcumsumexp atan2"""
# Computed in double precision and rounded once, as NumPy's: 0.5 to 0.7. Of float64 the last bits differ.
_BESSEL_OPS = """special_airy_ai special_spherical_bessel_j0 special_bessel_j0 special_bessel_j1 special_bessel_y0
    special_bessel_y1 special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
    special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 log10"""
# Truth values of floats, and comparisons in several passes: 0.2 to 0.35.
_TRUTH_OPS = "logical_not logical_and logical_or logical_xor heaviside isclose"
_ORDER_OPS = "cumsum cumprod cummax cummin sort kthvalue _median_dim _median_all mode"
_COPY_OPS = " repeat tril triu gather"

# Index of the argument whose elements count, if it is not the first tensor.
_SIZE_ARGUMENT = {"gather": 2, "_cross_entropy_backward": 1}

# By engine and op, dtypes that it leaves to NumPy, for it is slower (1.0 to 3.2) where another engine is not.
_EXCLUDED: dict[str, dict[str, tuple]] = {
    "cc": dict.fromkeys("xlogy fmod _floor_divide i0 special_i1 cat".split(), _FLOATS + _HALF_DTYPES),
    "opencl": dict.fromkeys(_ARITHMETIC.split(), _FLOATS),
}
_EXCLUDED["cc"].update(dict.fromkeys(("remainder", "floor_divide", "erfc"), (np.dtype("f4"),)))
# With AVX-512 9 and 2 times NumPy's time.
if has_avx512():
    _EXCLUDED["cc"].update(dict.fromkeys(("sign", "sgn", "exp"), (np.dtype("f8"),)))
# NumPy reads these results of halves from tables.
for (
    _found
) in """acos acosh asin atanh digamma erf erfc erfinv gelu i0 lgamma log10 logit logsigmoid mish sigmoid silu sinc
    softplus special_entr special_i0e special_i1 special_i1e special_log_ndtr special_ndtr""".split():
    _EXCLUDED["cc"][_found] = (*_EXCLUDED["cc"].get(_found, ()), *_HALF_DTYPES)
# NumPy reads the order of halves from their bits.
_EXCLUDED["cc"].update(dict.fromkeys(("relu", "maximum", "minimum"), _HALF_DTYPES))
_EXCLUDED["cc"]["repeat"] = _FLOATS + _HALF_DTYPES + _INTEGER_DTYPES
# NumPy's kernels scale numbers whose squares leave the range of float64.
for _without in _EXCLUDED.values():
    _without.update(dict.fromkeys(("_var_correction", "_std_correction"), (np.dtype("f8"),)))


def _build_cost_table() -> dict[str, dict[np.dtype, str]]:
    """Return the kernel's cost in NumPy by op and dtype."""
    found: dict[str, dict[np.dtype, str]] = {}
    for names, dtypes, cost in (
        (_HALF_OPS, _HALF_DTYPES, MODERATE),
        (_TRANSCENDENTAL_OPS, _HALF_DTYPES if has_avx512() else _FLOATS + _HALF_DTYPES, MODERATE),
        (_ARITHMETIC, _FLOATS, STREAMING),
        (_LONG_PASSES, _FLOATS, STREAMING),
        (_STREAMING_OPS, _FLOATS, CHEAP),
        (_STREAMING_OPS, _HALF_DTYPES, MODERATE),
        (_MULTI_PASS_OPS + _ROW_OPS, _FLOATS + _HALF_DTYPES, MODERATE),
        (_TRUTH_OPS, _FLOATS, MODERATE),
        (_BESSEL_OPS, _FLOATS[:1], EXPENSIVE),
        (_SLOW_OPS, _FLOATS + _HALF_DTYPES, EXPENSIVE),
        (_ORDER_OPS + _COPY_OPS, _FLOATS + _HALF_DTYPES + _INTEGER_DTYPES, MODERATE),
    ):
        for name in names.split():
            found.setdefault(name, {}).update(dict.fromkeys(dtypes, cost))
    return found


COST_TABLE = _build_cost_table()
# Pointwise ops whose result may overwrite an operand. (Each is one launch, so an error leaves the operand unchanged.)
INPLACE_OPS = frozenset(
    """relu clamp_min clamp_max _clamp_scalars reciprocal sign copysign leaky_relu hardsigmoid frac rsqrt hardswish exp
    exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 sqrt addcmul
    addcdiv add sub mul div nan_to_num sigmoid silu mish elu erf pow""".split()
) & set(COST_TABLE)


def engine_kernels(plain: dict[str, Callable], engine: CpuEngine) -> dict[str, Callable]:
    """Return {op name: kernel}: the engine's over NumPy's, in-place pointwise ones, and the engine's own."""
    from .ndarray_bridge import make_engine_kernel

    without = _EXCLUDED.get(engine.name, {})
    found = {}
    for op, costs in COST_TABLE.items():
        least = {dtype: engine.least[cost] for dtype, cost in costs.items() if dtype not in without.get(op, ())}
        if op in plain and least:
            found[op] = make_engine_kernel(engine, op, plain[op], least, _SIZE_ARGUMENT.get(op, 0))
            if op in INPLACE_OPS:
                written = plain.get(f"{op}_") or _make_inplace_kernel(plain[op])
                found[f"{op}_"] = make_engine_kernel(engine, f"{op}_", written, least)
    return {**found, **engine.own({**plain, **found})}


def _make_inplace_kernel(plain: Callable) -> Callable:
    """Return an in-place kernel from an out-of-place one."""

    def kernel(target, *others, **options):
        np.copyto(target, plain(target, *others, **options), casting="unsafe")

    return kernel
