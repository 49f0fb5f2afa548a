"""Which kernels an engine has: by op, the dtypes and the elements from which on it serves.

Left to NumPy are views, products, convolutions and what is made of them (OpenBLAS is the fastest there is), random
numbers (they are PyTorch's own), creation, what is written in place by indices (an index that does not fit must leave
everything as it was), and what counts its result's elements first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .choice import Engine

# What a kernel costs for an element in NumPy. An engine says from how many elements on its launch is worth while.
CHEAP, MIDDLE, DEAR = "cheap", "middle", "dear"

_FLOATS = "f4 f8"
_REAL = "f4 f8 i1 i2 i4 i8 u1"
_ALL = _REAL + " ?"

# Passes over memory: no engine does better than NumPy's ufuncs over threads but for their launch.
_ARITHMETIC = """add sub mul div neg abs square maximum minimum fmax fmin relu _relu_backward
    eq ne lt le gt ge clamp_min clamp_max _clamp_numbers _clamp_tensors reciprocal sign signbit copysign
    isnan isinf isfinite isposinf isneginf"""
# Several passes in NumPy, or a function that it computes one element at a time.
_SEVERAL = """_where where _masked_fill _masked_fill_tensor _choose addcmul addcdiv _lerp_number _lerp_tensor
    leaky_relu _leaky_relu_backward hardswish hardsigmoid softshrink nan_to_num
    rsqrt sqrt floor ceil trunc round frac"""
_FUNCTIONS = """exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2
    sigmoid logit erf erfc erfinv lgamma digamma pow hypot logaddexp logaddexp2 sinc xlogy
    gelu _gelu_backward silu _silu_backward mish _mish_backward _elu _elu_backward softplus
    remainder fmod floor_divide _floor_divide _trunc_divide
    i0 special_i0e special_i1 special_i1e special_ndtr special_ndtri special_log_ndtr special_erfcx special_entr
    special_xlog1py special_zeta igamma igammac"""
_ROWS = """_softmax _softmax_backward _log_softmax _log_softmax_backward _layer_norm _layer_norm_backward _rms_norm
    _rms_norm_backward _batch_norm_train _batch_norm_backward _channel_affine _cross_entropy _cross_entropy_backward"""
_REDUCTIONS = """sum mean prod amax amin argmax argmin all any count_nonzero var_correction std_correction
    vector_norm_core logsumexp max_dim min_dim"""
_SCANS = "cumsum cumprod cummax cummin logcumsumexp"
_ORDERS = "sort topk kthvalue median_dim median_all mode"
_MOVES = "gather index_select embedding contiguous clone cat flip roll repeat tril triu to _copy"


def _rows() -> dict[str, tuple[str, str]]:
    """By op: its dtypes and its cost."""
    found: dict[str, tuple[str, str]] = {}
    for names, dtypes, cost in (
        (_ARITHMETIC, _REAL, CHEAP),
        (_SEVERAL, _REAL, MIDDLE),
        (_FUNCTIONS, _FLOATS, DEAR),
        (_ROWS, _FLOATS, MIDDLE),
        (_REDUCTIONS, _REAL, MIDDLE),
        (_SCANS, _REAL, DEAR),
        (_ORDERS, _REAL, DEAR),
        (_MOVES, _ALL, MIDDLE),
    ):
        found.update(dict.fromkeys(names.split(), (dtypes, cost)))
    return found


ROWS = _rows()


def kernels_over(plain: dict[str, Callable], engine: Engine) -> dict[str, Callable]:
    """By op, the engine's kernels over NumPy's."""
    from .bridge import serving

    named = {op: (frozenset(map(np.dtype, dtypes.split())), cost) for op, (dtypes, cost) in ROWS.items()}
    return {
        op: serving(engine, op, plain[op], dtypes, engine.least[cost])
        for op, (dtypes, cost) in named.items()
        if op in plain
    }
