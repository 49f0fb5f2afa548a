"""Copies that move elements by runs: joins, rotations, triangles, transposed tiles, windows added up."""
from __future__ import annotations

from .indexing import RUNS


# out[r, at + i] = x[r, i] for i < width: one of several arrays side by side, each row-major. A work-item copies `take` elements of the output.
def cat(count: int) -> str:
    """The kernel that joins `count` row-major arrays of (rows, width k) elements."""
    arrays = ", ".join(f"IN(T, x{k})" for k in range(count))
    cases = "\n".join(f"            {'else ' if k else ''}if (k == {k}) copy_run(o + i, AT(x{k}) + row * how.width[{k}] + j, run);" for k in range(count))
    return RUNS + f"""
typedef struct {{ int width[{count}]; }} Widths;
KERNEL void join({arrays}, OUT(T, out), const int n, const int take, const int total, const Widths how) {{
    GLOBAL T* o = AT(out);
    int i = ITEM * take, end = min(i + take, n);
    if (i >= end) return;
    int row = i / total, j = i - row * total, k = 0;
    while (j >= how.width[k]) j -= how.width[k++];
    while (i < end) {{
        int run = min(how.width[k] - j, end - i);
        if (run > 0) {{
{cases}
            i += run;
        }}
        j = 0;
        if (++k == {count}) {{ k = 0; row++; }}
    }}
}}
"""


# out[r, (j + shift) % width] = x[r, j]
ROLL = RUNS + r"""
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

# The part of each row of the matrices on and below a diagonal (lower) or on and above it, zeros elsewhere.
TRIANGLE = RUNS + r"""
FUNCTION void zero_run(GLOBAL T* to, const int n) {
    T zero = (T)(0);
    int i = 0;
#ifdef T_LD16
    for (; i + 16 <= n; i += 16) T_ST16(to, i, (T_C16)(0));
#endif
    for (; i < n; i++) to[i] = zero;
}
KERNEL void triangle(IN(T, x), OUT(T, out), const int rows, const int take, const int height, const int width, const int diagonal, const int lower) {
    for (int row = ITEM * take; row < min(ITEM * take + take, rows); row++) {
        GLOBAL const T* from = AT(x) + row * width;
        GLOBAL T* to = AT(out) + row * width;
        int cut = clamp(row % height + diagonal + lower, 0, width);
        if (lower) { copy_run(to, from, cut); zero_run(to + cut, width - cut); }
        else { zero_run(to, cut); copy_run(to + cut, from + cut, width - cut); }
    }
}
"""

# out[p, i, q] = the sum of g[p, w, q, k] over the windows w and places k in them with w * step + k == i
UNFOLD_BACKWARD = r"""
KERNEL void unfold_backward(IN(T, g), OUT(T, out), const int n, const int take, const int N, const int Q, const int windows, const int size, const int step) {
    for (int i = ITEM * take; i < min(ITEM * take + take, n); i++) {
        int q = i % Q, rest = i / Q, at = rest % N, p = rest / N;
        int last = min(at / step, windows - 1), first = at < size ? 0 : (at - size) / step + 1;
        T_C sum = (T_C)(0);
        for (int w = first; w <= last; w++) sum += T_LD(AT(g), ((p * windows + w) * Q + q) * size + at - w * step);
        T_ST(AT(out), i, sum);
    }
}
"""

# out[b, c, r] = x[b, r, c] for matrices whose rows are `sr` and columns `1` apart, by tiles of 16 by 16: on a CPU a work-item holds a tile in vectors.
TRANSPOSE = r"""
#define PAIR(a, b) { T_C16 t = a; a = (T_C16)(a.even, b.even); b = (T_C16)(t.odd, b.odd); }
KERNEL void transpose_tiles(IN(T, x), OUT(T, out), const int rows, const int columns, const int sb, const int sr) {
    int r = ITEM * 16, c = ITEM_Y * 16;
    GLOBAL const T* a = AT(x) + ITEM_Z * sb;
    GLOBAL T* o = AT(out) + ITEM_Z * rows * columns;
    if (r + 16 <= rows && c + 16 <= columns) {
        T tile[256];
        for (int i = 0; i < 16; i++) { T_C16 v = T_LD16(a, (r + i) * sr + c); vstore16(v, i, tile); }
        for (int j = 0; j < 16; j++) {
            T_C16 v = (T_C16)(tile[j], tile[16 + j], tile[32 + j], tile[48 + j], tile[64 + j], tile[80 + j], tile[96 + j], tile[112 + j],
                              tile[128 + j], tile[144 + j], tile[160 + j], tile[176 + j], tile[192 + j], tile[208 + j], tile[224 + j], tile[240 + j]);
            T_ST16(o, (c + j) * rows + r, v);
        }
    } else for (int j = c; j < min(c + 16, columns); j++) for (int i = r; i < min(r + 16, rows); i++) o[j * rows + i] = a[i * sr + j];
}
"""

# Rows of `width` elements with `kept` elements of x from `at` on and the value elsewhere; rows outside x are all value.
PAD = RUNS + r"""
typedef struct { int ndim; int outer[7]; int inner[7]; int before[7]; int steps[7]; } Frame;
KERNEL void pad(IN(T, x), IN(T, value), OUT(T, out), const int rows, const int take, const int width, const int at, const int kept, const Frame f) {
    T v = AT(value)[0];
    for (int row = ITEM * take; row < min(ITEM * take + take, rows); row++) {
        int rest = row, from = 0, inside = 1;
        for (int d = f.ndim - 1; d >= 0; d--) {
            int c = rest % f.outer[d] - f.before[d];
            rest /= f.outer[d];
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
