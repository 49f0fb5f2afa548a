"""Optimizer steps in one pass over parameters, gradients and states, where NumPy needs fifteen.

The loop's body is generated from the formulas in `torchlite._types.optimizer_formulas`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite._types.optimizer_formulas import ADAM, SGD, Formula
from torchlite_backends.kernel_sources.optim import c_statements_source
from torchlite_backends.numpy.optim import _unscale_or_skip

from .device import address
from .native_kernel import FLOATS, TYPE_DEFINITIONS, make_kernel_per_dtype

# Elements of an item.
_BLOCK = 1 << 14

_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
template <class T> static inline T largest(T before, T v) { return v > before || v != v ? v : before; }
// Parameters and gradients lie apart, their states behind one another: parameter k has those from starts[k] on.
template <class T> struct Lists { T* const* params; const T* const* grads; const i64* starts; i64 count, block; };
template <class T, class Run> static inline void each_run(const Lists<T>& of, i64 begin, i64 end, Run run) {
    i64 at = begin * of.block, k = 0;
    end = least(end * of.block, of.starts[of.count]);
    while (of.starts[k + 1] <= at) k++;
    for (; at < end; k++) {
        const i64 stop = least(end, of.starts[k + 1]), inside = at - of.starts[k];
        if (stop > at) run(of.params[k] + inside, of.grads[k] + inside, at, stop - at);
        at = stop > at ? stop : at;
    }
}
"""
)

# Parameters of a kernel: {states} and {numbers} are the formula's.
_KERNEL = r"""
struct Given_{name} {
    void* const* params; const void* const* grads; const i64* starts; i64 count, block;
    void *{states};
    double {numbers};
};
template <class T> static int {name}(const Given_{name}& of, i64 begin, i64 end) {
    const T {constants};
    const Lists<T>& lists = *(const Lists<T>*)&of;
    each_run(lists, begin, end, [&](T* __restrict params, const T* __restrict grads, i64 at, i64 n) {
        {pointers}
        for (i64 i = 0; i < n; i++) {
            {loads}
            {update}
            {stores}
        }
    });
    return 0;
}
ENTRY_PER_DTYPE({name}, Given_{name})
"""


def _kernel_source(formula: Formula, present: tuple[str, ...]) -> str:
    """Return the C++ kernel of a formula for parameters with the states `present`."""
    values = [("param", "params[i]"), *((s, f"{s}_at[i]") for s in present)]
    names = {name: name for name in (*formula.numbers, "grad", "param", *present)}
    names |= {"sqrt": "std::sqrt", "maximum": "largest"}
    parts = {
        "name": _kernel_name(formula, present),
        "states": ", *".join(formula.states),
        "numbers": ", ".join(formula.numbers),
        "constants": ", ".join(f"{name} = of.{name}" for name in formula.numbers),
        "pointers": " ".join(f"T* __restrict {s}_at = (T*)of.{s} + at;" for s in present),
        "loads": " ".join(f"T {x} = {place};" for x, place in [*values, ("grad", "grads[i]")]),
        "update": c_statements_source(formula.specialize({s: s in present for s in formula.states}), names, "T"),
        "stores": " ".join(f"{place} = {x};" for x, place in values),
    }
    text = _KERNEL
    for key, value in parts.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def _kernel_name(formula: Formula, present: tuple[str, ...]) -> str:
    return "_".join((formula.name, *present))


_VARIANTS: tuple[tuple[Formula, tuple[str, ...]], ...] = (
    (ADAM, ADAM.states[:2]),
    (ADAM, ADAM.states),
    (SGD, ()),
    (SGD, SGD.states),
)
_SOURCE += "".join(_kernel_source(*variant) for variant in _VARIANTS)
_ADAM, _AMSGRAD, _SGD, _SGD_MOMENTUM = (
    make_kernel_per_dtype(
        _SOURCE, _kernel_name(formula, present), f"QQQqq{'Q' * len(formula.states)}{'d' * len(formula.numbers)}"
    )
    for formula, present in _VARIANTS
)


def _pointer_arrays(params: Any, grads: Any, states: tuple) -> tuple | None:
    """Return addresses of parameters and gradients, offsets into the states, the count, and all elements.

    None if an array has an unsuitable layout.
    """
    dtype = params[0].dtype
    if dtype not in FLOATS:
        return None
    for param, grad in zip(params, grads, strict=True):
        if not (param.flags.c_contiguous and grad.flags.c_contiguous) or param.shape != grad.shape:
            return None
        if param.dtype != dtype or grad.dtype != dtype:
            return None
    starts = np.zeros(len(params) + 1, np.int64)
    np.cumsum([param.size for param in params], out=starts[1:])
    size = int(starts[-1])
    if not size or any(s is not None and (s.size != size or s.dtype != dtype) for s in states):
        return None
    places = [np.array([address(a) for a in arrays], np.uint64) for arrays in (params, grads)]
    return *places, starts, len(params), size


def _run(
    device: Any, kernels: dict, arrays: int, params: Any, grads: Any, states: tuple, numbers: Any, scaler: Any
) -> Any:
    """Run the kernel of the parameters' dtype, which accesses so many arrays. Return None if it cannot serve."""
    found = _pointer_arrays(params, grads, states)
    if found is None:
        return None
    kernel = kernels[params[0].dtype]
    device.native(_SOURCE, kernel.name)  # before any write
    if _unscale_or_skip(grads, *scaler):
        return True
    *lists, count, size = found
    states = tuple([0 if state is None else state for state in states])
    nbytes = size * params[0].itemsize * arrays
    kernel(device, -(-size // _BLOCK), nbytes, *lists, count, _BLOCK, *states, *numbers)
    return True


def _fused_adam(
    device: Any, params: Any, grads: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, cache: Any, *options: Any
) -> Any:
    kernels, states = _ADAM if max_exp_avg_sq is None else _AMSGRAD, (exp_avg, exp_avg_sq, max_exp_avg_sq)
    return _run(device, kernels, 7, params, grads, states, ADAM.host_numbers(*options[:-2]), options[-2:])


def _fused_sgd(device: Any, params: Any, grads: Any, momentum_buffer: Any, cache: Any, *options: Any) -> Any:
    kernels = _SGD if momentum_buffer is None else _SGD_MOMENTUM
    return _run(device, kernels, 5, params, grads, (momentum_buffer,), SGD.host_numbers(*options[:-2]), options[-2:])


kernels = {"_fused_adam": _fused_adam, "_fused_sgd": _fused_sgd}
