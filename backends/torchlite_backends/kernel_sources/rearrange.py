"""Copy kernels for contiguous runs: cat, roll, triangles, tiled transposes, and overlap-add of windows."""

from __future__ import annotations

from .gather_scatter import COPY_RUN


def cat_source(count: int) -> str:
    """Return the kernel that writes `count` contiguous arrays of (rows, width k) side by side into rows `pitch` apart.

    A work-item copies `take` elements.
    """
    arrays = ", ".join(f"IN(T, x{k})" for k in range(count))
    cases = "\n".join(
        f"            {'else ' if k else ''}if (k == {k}) copy_run(o + i, AT(x{k}) + row * how.width[{k}] + j, run);"
        for k in range(count)
    )
    return (
        COPY_RUN
        + f"""
typedef struct {{ int width[{count}]; }} Widths;
KERNEL void join({arrays}, OUT(T, out), const int n, const int take, const int total, const int pitch,
    const Widths how) {{
    GLOBAL T* o = AT(out);
    int i = ITEM * take, end = min(i + take, n);
    if (i >= end) return;
    int row = i / total, j = i - row * total, k = 0;
    o += row * (pitch - total);
    while (j >= how.width[k]) j -= how.width[k++];
    while (i < end) {{
        int run = min(how.width[k] - j, end - i);
        if (run > 0) {{
{cases}
            i += run;
        }}
        j = 0;
        if (++k == {count}) {{ k = 0; row++; o += pitch - total; }}
    }}
}}
"""
    )


# out[r, (j + shift) % width] = x[r, j]
ROLL = (
    COPY_RUN
    + r"""
KERNEL void roll(IN(T, x), OUT(T, out), const int n, const int take, const int width, const int shift) {
    int i = ITEM * take, end = min(i + take, n);
    while (i < end) {
        int row = i / width, j = i - row * width, from = j < shift ? j + width - shift : j - shift;
        int run = min((j < shift ? shift : width) - j, end - i);
        copy_run(AT(out) + i, AT(x) + row * width + from, run);
        i += run;
    }
}
"""
)

# The part of each row of the matrices on and below a diagonal (lower) or on and above it, zeros elsewhere.
TRIANGLE = (
    COPY_RUN
    + r"""
FUNCTION void zero_run(GLOBAL T* to, const int n) {
    T zero = (T)(0);
    int i = 0;
#ifdef T_LD16
    for (; i + 16 <= n; i += 16) T_ST16(to, i, (T_C16)(0));
#endif
    for (; i < n; i++) to[i] = zero;
}
KERNEL void triangle(IN(T, x), OUT(T, out), const int rows, const int take, const int height, const int width,
    const int diagonal, const int lower) {
    for (int row = ITEM * take; row < min(ITEM * take + take, rows); row++) {
        GLOBAL const T* from = AT(x) + row * width;
        GLOBAL T* to = AT(out) + row * width;
        int cut = clamp(row % height + diagonal + lower, 0, width);
        if (lower) { copy_run(to, from, cut); zero_run(to + cut, width - cut); }
        else { zero_run(to, cut); copy_run(to + cut, from + cut, width - cut); }
    }
}
"""
)

# out[p, i, q] = the sum of g[p, w, q, k] over windows w and offsets k with w * step + k == i
UNFOLD_BACKWARD = r"""
KERNEL void unfold_backward(IN(T, g), OUT(T, out), const int n, const int take, const int N, const int Q,
    const int windows, const int size, const int step) {
    for (int i = ITEM * take; i < min(ITEM * take + take, n); i++) {
        int rest = i / Q, q = i - rest * Q, p = rest / N, at = rest - p * N;
        int last = min(at / step, windows - 1), first = at < size ? 0 : (at - size) / step + 1;
        T_C sum = (T_C)(0);
        for (int w = first; w <= last; w++) sum += T_LD(AT(g), ((p * windows + w) * Q + q) * size + at - w * step);
        T_ST(AT(out), i, sum);
    }
}
"""

# out[r, c] = x[c, r] for matrices whose rows are `to` and `from` apart, in batches. `transpose_vectors` has tiles of 16
# by 16 in a work-item, `transpose_local` in a group.
_BATCHES = r"""
typedef struct { int ndim; int n[6]; int to[6]; int from[6]; } Batches;
#define BATCH(i, a, o) for (int d = how.ndim - 1, rest = (i), above, c; d >= 0; rest = above, d--) { \
    above = rest / how.n[d]; c = rest - above * how.n[d]; a += c * how.from[d]; o += c * how.to[d]; }
"""
TRANSPOSE_VECTORS = (
    _BATCHES
    + r"""
KERNEL void transpose_vectors(IN(T, x), OUT(T, out), const int rows, const int columns, const int to, const int from,
    const Batches how) {
    GLOBAL const T* a = AT(x); GLOBAL T* o = AT(out);
    BATCH(ITEM_Z, a, o)
    int bottom = min(ITEM * 64 + 64, rows), right = min(ITEM_Y * 64 + 64, columns);
    for (int c = ITEM_Y * 64; c < right; c += 16) for (int r = ITEM * 64; r < bottom; r += 16) {
        if (c + 16 <= right && r + 16 <= bottom) {
            T tile[256];
            for (int k = 0; k < 16; k++) vstore16(T_LD16(a, (c + k) * from + r), k, tile);
            for (int j = 0; j < 16; j++) {
                T_C16 v = VEC16(T_C16, tile[j], tile[16 + j], tile[32 + j], tile[48 + j], tile[64 + j], tile[80 + j],
                    tile[96 + j], tile[112 + j],
                                  tile[128 + j], tile[144 + j], tile[160 + j], tile[176 + j], tile[192 + j],
                                      tile[208 + j], tile[224 + j], tile[240 + j]);
                T_ST16(o, (r + j) * to + c, v);
            }
        } else for (int j = r; j < min(r + 16, bottom); j++) for (int k = c; k < min(c + 16, right); k++)
            o[j * to + k] = a[k * from + j];
    }
}
"""
)
TRANSPOSE_LOCAL = (
    _BATCHES
    + r"""
KERNEL void transpose_local(IN(T, x), OUT(T, out), const int rows, const int columns, const int to, const int from,
    const Batches how) {
    LOCAL_MATRIX(T, tile, 16, 17);
    GLOBAL const T* a = AT(x); GLOBAL T* o = AT(out);
    BATCH(ITEM_Z, a, o)
    int i = THREAD, j = THREAD_Y, r = BLOCK_Y * 16, c = BLOCK * 16;
    if (r + i < rows && c + j < columns) tile[j][i] = a[(c + j) * from + r + i];
    BARRIER;
    if (r + j < rows && c + i < columns) o[(r + j) * to + c + i] = tile[i][j];
}
"""
)

# Rows of `width` elements with `kept` elements of x from `at` on and the value elsewhere; rows outside x are all value.
PAD = (
    COPY_RUN
    + r"""
typedef struct { int ndim; int outer[7]; int inner[7]; int before[7]; int steps[7]; } Frame;
KERNEL void pad(IN(T, x), IN(T, value), OUT(T, out), const int rows, const int take, const int width, const int at,
    const int kept, const Frame f) {
    T v = AT(value)[0];
    for (int row = ITEM * take; row < min(ITEM * take + take, rows); row++) {
        int rest = row, from = 0, inside = 1;
        for (int d = f.ndim - 1; d >= 0; d--) {
            int above = rest / f.outer[d], c = rest - above * f.outer[d] - f.before[d];
            rest = above;
            inside &= c >= 0 && c < f.inner[d];
            from += c * f.steps[d];
        }
        GLOBAL T* to = AT(out) + row * width;
        int first = inside ? at : width, last = inside ? at + kept : width;
        for (int i = 0; i < first; i++) to[i] = v;
        if (inside) copy_run(to + at, AT(x) + from, kept);
        for (int i = last; i < width; i++) to[i] = v;
    }
}
"""
)
