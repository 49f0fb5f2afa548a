"""Gather and scatter by index over arrays viewed as (P, N, Q), where N is the indexed dimension.

An index out of range is recorded in the array `error` (see `INDEX_TO_PLACE`) and skipped.
"""

from __future__ import annotations

INDEX_TO_PLACE = r"""
FUNCTION int place_of(const long v, const int size, const int wrap, GLOBAL int* error, const int code) {
    long at = v < 0 && wrap ? v + size : v;
    if (at >= 0 && at < size) return (int)at;
    if (atomic_cmpxchg((volatile GLOBAL int*)error, 0, code) == 0) {
        error[1] = (int)v; error[2] = size; error[3] = (int)(v >> 32);
    }
    return -1;
}
"""

COPY_RUN = r"""
FUNCTION void copy_run(GLOBAL T* to, GLOBAL const T* from, const int n) {
    int i = 0;
#ifdef T_LD16
    for (; i + 16 <= n; i += 16) T_ST16(to, i, T_LD16(from, i));
#endif
    for (; i < n; i++) to[i] = from[i];
}
"""

# out[r, j] = x[r, index[r, j]], for contiguous x: the indices of a part of a row are checked first, so that the loop
# over elements has no branches. On CPUs.
GATHER_ROWS = (
    INDEX_TO_PLACE
    + r"""
KERNEL void gather_rows(IN(T, x), IN(I, index), OUT(T, out), OUT(int, error), const int code, const int n,
    const int take, const int J, const int step, const int size) {
    GLOBAL const T* a = AT(x); GLOBAL T* o = AT(out); GLOBAL const I* w = AT(index);
    int i = ITEM * take, end = min(i + take, n);
    while (i < end) {
        int row = i / J, run = min(min((row + 1) * J, end) - i, 256);
        GLOBAL const T* from = a + row * step;
        GLOBAL const I* which = w + i;
        GLOBAL T* to = o + i;
        I low = 0, high = 0;
        for (int k = 0; k < run; k++) { I v = which[k]; low = v < low ? v : low; high = v > high ? v : high; }
        if (low < 0 || high >= size)
            for (int k = 0; k < run; k++) to[k] = from[max(place_of((long)which[k], size, 0, AT(error), code), 0)];
        else
            for (int k = 0; k < run; k++) to[k] = from[(int)which[k]];
        i += run;
    }
}
"""
)

# out[p, b, q] = x[p, index[b], q]; a work-item makes `take` neighbouring elements of `out`.
TAKE_SLICES = (
    INDEX_TO_PLACE
    + COPY_RUN
    + r"""
KERNEL void take_slices(IN(T, x), IN(I, index), OUT(T, out), OUT(int, error), const int code, const int n,
    const int take, const int B, const int Q, const int sp, const int sb, const int sq, const int size,
    const int wrap) {
    GLOBAL const T* a = AT(x); GLOBAL T* o = AT(out); GLOBAL const I* w = AT(index);
    int i = ITEM * take, end = min(i + take, n);
    if (i >= end) return;
    int row = i / Q, q = i - row * Q, p = row / B, b = row - p * B;
    if (Q == 1) {
        while (i < end) {
            GLOBAL const T* from = a + p * sp;
            int run = min(B - b, end - i);
            GLOBAL const I* which = w + b;
            GLOBAL T* to = o + i;
            int bad = 0, more = wrap ? size : 0;
            for (int k = 0; k < run; k++) {
                I v = which[k];
                v += v < 0 ? more : 0;
                int fits = v >= 0 && v < size;
                bad |= !fits;
                to[k] = from[(fits ? (int)v : 0) * sb];
            }
            if (bad) for (int k = 0; k < run; k++) place_of((long)which[k], size, wrap, AT(error), code);
            i += run;
            b = 0;
            p++;
        }
        return;
    }
    while (i < end) {
        int at = max(place_of((long)w[b], size, wrap, AT(error), code), 0);
        GLOBAL const T* from = a + p * sp + at * sb;
        int run = min(Q - q, end - i);
        if (sq == 1) copy_run(o + i, from + q, run);
        else for (int k = 0; k < run; k++) o[i + k] = from[(q + k) * sq];
        i += run;
        q = 0;
        if (++b == B) { b = 0; p++; }
    }
}
"""
)

# out[r, j] = x[r / D, index[r, j], j]
GATHER = (
    INDEX_TO_PLACE
    + r"""
KERNEL void gather(IN(T, x), IN(I, index), OUT(T, out), OUT(int, error), const int code, const int n, const int take,
    const int J, const int D, const int sp, const int sd, const int sj, const int size) {
    GLOBAL const T* a = AT(x); GLOBAL T* o = AT(out); GLOBAL const I* w = AT(index);
    int i = ITEM * take, end = min(i + take, n);
    if (i >= end) return;
    int row = i / J, j = i - row * J;
    while (i < end) {
        GLOBAL const T* from = a + (row / D) * sp + j * sj;
        GLOBAL const I* which = w + i;
        GLOBAL T* to = o + i;
        int run = min(J - j, end - i), bad = 0;
        for (int k = 0; k < run; k++) {
            I v = which[k];
            int fits = v >= 0 && v < size;
            bad |= !fits;
            to[k] = from[(fits ? (int)v : 0) * sd + k * sj];
        }
        if (bad) for (int k = 0; k < run; k++) place_of((long)which[k], size, 0, AT(error), code);
        i += run;
        j = 0;
        row++;
    }
}
"""
)

# out[p, index[p, n, q], q] = COMBINE(that, src[p, n, q]) in the order of n: a work-item owns `chunk` columns q of a
# plane p.
SCATTER = (
    INDEX_TO_PLACE
    + r"""
KERNEL void scatter(OUT(O, out), IN(I, index), IN(S, src), OUT(int, error), const int code, const int P, const int N,
    const int Q, const int chunk, const int take, const int op, const int od, const int oq, const int ip, const int in,
    const int iq, const int sp, const int sn, const int sq, const int size, const int wrap) {
    int chunks = (Q + chunk - 1) / chunk, count = P * chunks;
    for (int item = ITEM * take; item < min(ITEM * take + take, count); item++) {
        int p = item / chunks, first = (item - p * chunks) * chunk, wide = min(chunk, Q - first);
        GLOBAL O* o = AT(out) + p * op + first * oq;
        GLOBAL const I* w = AT(index) + p * ip + first * iq;
        GLOBAL const S* s = AT(src) + p * sp + first * sq;
        if (wide == 1) {
            for (int n = 0; n < N; n++) {
                int at = place_of((long)w[n * in], size, wrap, AT(error), code);
                if (at >= 0) O_ST(o, at * od, COMBINE(O_LD(o, at * od), S_LD(s, n * sn)));
            }
            continue;
        }
        for (int n = 0; n < N; n++, w += in, s += sn) {
            if (iq == 0) {
                int at = place_of((long)w[0], size, wrap, AT(error), code);
                if (at < 0) continue;
                GLOBAL O* to = o + at * od;
                int q = 0;
#ifdef WIDE
                if (oq == 1 && sq == 1) for (; q + 16 <= wide; q += 16)
                    O_ST16(to, q, COMBINE(O_LD16(to, q), S_LD16(s, q)));
#endif
                for (; q < wide; q++) O_ST(to, q * oq, COMBINE(O_LD(to, q * oq), S_LD(s, q * sq)));
            } else for (int q = 0; q < wide; q++) {
                int at = place_of((long)w[q * iq], size, wrap, AT(error), code);
                if (at >= 0) O_ST(o, at * od + q * oq, COMBINE(O_LD(o, at * od + q * oq), S_LD(s, q * sq)));
            }
        }
    }
}
"""
)

# The same with a work-item for each element of the source; several may write one element.
SCATTER_ATOMIC = (
    INDEX_TO_PLACE
    + r"""
KERNEL void scatter_atomic(OUT(O, out), IN(I, index), IN(S, src), OUT(int, error), const int code, const int count,
    const int N, const int Q, const int op, const int od, const int oq, const int ip, const int in, const int iq,
    const int sp, const int sn, const int sq, const int size, const int wrap) {
    int i = ITEM;
    if (i >= count) return;
    int row = i / Q, q = i - row * Q, p = row / N, n = row - p * N;
    int at = place_of((long)AT(index)[p * ip + n * in + q * iq], size, wrap, AT(error), code);
    if (at < 0) return;
    int to = p * op + at * od + q * oq;
#ifdef ATOMIC
    combine_at(AT(out) + to, S_LD(AT(src), p * sp + n * sn + q * sq));
#else
    O_ST(AT(out), to, S_LD(AT(src), p * sp + n * sn + q * sq));
#endif
}
"""
)

# out[i] = x[i] / max(count[i], 1), rounded down for integers.
DIVIDE_BY_COUNT = r"""
KERNEL void divide_by_count(IN(T, x), IN(int, counts), OUT(T, out), const int n, const int take) {
    for (int i = ITEM * take; i < min(ITEM * take + take, n); i++) {
        int c = max(AT(counts)[i], 1);
        T_C v = T_LD(AT(x), i);
#ifdef WHOLE
        T_C whole = v / (T_C)c;
        T_ST(AT(out), i, (T_C)(whole - (whole * (T_C)c > v ? 1 : 0)));
#else
        T_ST(AT(out), i, v / (DIVISOR)c);
#endif
    }
}
"""


def flat_index_source(count: int) -> str:
    """Return the kernel for flat indices: out[b] = the sum of `count` index arrays, broadcast to b, times their
    strides.
    """
    each = range(count)
    arrays = ", ".join(f"IN(I, i{k})" for k in each)
    sums = "\n".join(
        f"        at = place_of((long)AT(i{k})[o[{k}]], how.size[{k}], how.wrap, AT(error), how.code[{k}]);\n"
        f"        total += max(at, 0) * how.to[{k}];\n        bad |= at < 0;"
        for k in each
    )
    return (
        INDEX_TO_PLACE
        + f"""
typedef struct {{ int ndim; int shape[8]; int steps[{count}][8]; int size[{count}]; int to[{count}]; int code[{count}];
int wrap; }} Places;
KERNEL void places({arrays}, OUT(int, out), OUT(int, error), const int n, const int take, const Places how) {{
    for (int i = ITEM * take; i < min(ITEM * take + take, n); i++) {{
        int o[{count}], rest = i, at, total = 0, bad = 0;
        for (int k = 0; k < {count}; k++) o[k] = 0;
        for (int d = how.ndim - 1; d >= 0; d--) {{
            int above = rest / how.shape[d], c = rest - above * how.shape[d];
            rest = above;
            for (int k = 0; k < {count}; k++) o[k] += c * how.steps[k][d];
        }}
{sums}
        AT(out)[i] = bad ? -1 : total;
    }}
}}
"""
    )
