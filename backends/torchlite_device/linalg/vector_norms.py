"""Norms of vectors and distances between rows."""

from __future__ import annotations

from torchlite_kernels.kinds import REAL_KIND

from ..elements.pointwise import KERNELS as POINTWISE
from ..elements.reduce import amax, amin, count_nonzero, reduce, reduced_shape
from ..machinery.array import Array, empty
from ..machinery.checks import check_takes
from ..machinery.device import grid
from ..machinery.pointwise_apply import cast
from ..machinery.row_major import clone_row_major, contiguous_array
from ..machinery.steps import broadcast_shape
from ..machinery.views import expand, reshape

_DISTANCES = r"""
#define ACC0(d) sum += (d) != 0 ? 1 : 0
#define ACC1(d) sum += fabs(d)
#define ACC2(d) sum += (d) * (d)
#define ACC3(d) sum = sum >= fabs(d) ? sum : fabs(d)
#define ACC4(d) sum += pow(fabs(d), p)
#define WALK(step) \
    for (int k = 0; k < n; k++) { C d = T_LD(x, k) - T_LD(y, k); step(d); }
typedef T_C C;

KERNEL void distances(IN(T, x_), IN(T, y_), OUT(T, out), const int rows, const int columns, const int n, const int mode,
    const float order, const int count) {
    int t = ITEM, j = t % columns, i = t / columns % rows, b = t / columns / rows;
    if (t >= count) return;
    GLOBAL const T* x = AT(x_) + (b * rows + i) * n;
    GLOBAL const T* y = AT(y_) + (b * columns + j) * n;
    C sum = 0, p = order;
    if (mode == 0) { WALK(ACC0) }
    if (mode == 1) { WALK(ACC1) }
    if (mode == 2) {
        int k = 0;
#ifdef T_LD16
        T_C16 all = 0;
        T_C parts[16];
        for (; k + 16 <= n; k += 16) { T_C16 d = T_LD16(x, k) - T_LD16(y, k); all += d * d; }
        vstore16(all, 0, parts);
        for (int w = 0; w < 16; w++) sum += parts[w];
#endif
        for (; k < n; k++) { C d = T_LD(x, k) - T_LD(y, k); ACC2(d); }
        sum = sqrt(sum);
    }
    if (mode == 3) { WALK(ACC3) }
    if (mode == 4) { WALK(ACC4) sum = pow(sum, 1 / p); }
    T_ST(AT(out), t, sum);
}
"""


def vector_norm_core(input, ord, dim, keepdim):
    check_takes(input, "fc", "linalg_vector_norm_cpu")
    axes, kind = tuple(dim), REAL_KIND.get(input.kind, input.kind)
    if not axes:  # nothing to add up
        if ord == 0:
            return cast(POINTWISE["ne"](input, 0), kind)
        size = POINTWISE["abs"](input)
        return clone_row_major(size) if size is input else size
    if ord in (float("inf"), -float("inf")):
        return (amax if ord > 0 else amin)(POINTWISE["abs"](input), axes, keepdim)
    if ord == 0:
        return _count(input, axes, keepdim, kind)
    if ord in (1, 2):
        return reduce(f"norm{int(ord)}", input, axes, keepdim, kind)
    return reduce("normp", input, axes, keepdim, kind, correction=float(ord))


def _count(input: Array, axes: tuple[int, ...], keepdim: bool, kind: str) -> Array:
    return reshape(cast(count_nonzero(input, axes), kind), reduced_shape(input.shape, axes, keepdim))


def cdist_core(x1, x2, p):
    batch = broadcast_shape((x1.shape[:-2], x2.shape[:-2]))
    rows, columns, n = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    out = empty(x1.device, (*batch, rows, columns), x1.kind)
    if out.size:
        x, y = contiguous_array(expand(x1, (*batch, rows, n))), contiguous_array(expand(x2, (*batch, columns, n)))
        mode = {0.0: 0, 1.0: 1, 2.0: 2, float("inf"): 3}.get(float(p), 4)
        run = x.device.function(_DISTANCES, "distances", "pppiiiifi", (16,), T=x.kind)
        run(grid(out.size, 64), (64,), x, y, out, rows, columns, n, mode, float(p), out.size)
    return out
