"""Sparse products: sparse times dense (SpMM), its minimum and maximum forms, and sampled dense-dense (SDDMM).

Each result has one writer, so results are deterministic. Invalid indices are skipped. `I` is the type of indices,
`COMPLEX` is 1 for complex elements.
"""

from __future__ import annotations

from .row_macros import row_macros_source

_WORDS = (
    row_macros_source()
    + r"""
#if COMPLEX
#define TIMES(v, w) VEC2(C, (v).x * (w).x - (v).y * (w).y, (v).x * (w).y + (v).y * (w).x)
#else
#define TIMES(v, w) ((v) * (w))
#endif
#define INSIDE(i, n) ((i) >= 0 && (i) < (n))
#define WITHIN(i, n) ((i) < 0 ? 0 : (i) > (n) ? (n) : (int)(i))
"""
)
# A worker has W columns of a row of `out`; several items in a work-group share the row's elements among them.
SPMM = (
    _WORDS
    + r"""
KERNEL void rows_times(IN(I, starts), IN(I, columns), IN(T, values), IN(T, dense), OUT(T, out), const int pieces,
    const int n, const int size, const int count, const int per) {
    SCRATCH
    const int across = (n + W - 1) / W;
    EACH_ROW(piece, pieces, per) {
        const int row = piece / across, i = piece % across * W;
        const int first = WITHIN(AT(starts)[row], count), end = WITHIN(AT(starts)[row + 1], count);
        V total = SPLAT(0);
        for (int k = first + LANE; k < end; k += LANES) {
            const I column = AT(columns)[k];
            if (INSIDE(column, size)) {
                GLOBAL const T* from = AT(dense) + (int)column * n + i;
                total += TIMES(LOAD_T(from, n - i, 0), T_LD(AT(values), k));
            }
        }
        const V sum = SUM_OF_ITEMS(total);
        if (LANE == 0) STORE_T(AT(out) + row * n + i, n - i, sum);
    }
}
"""
)
# A worker has a column of a row of `best`: the first of `rows_times`'s terms that is the smallest (SMALLEST), the
# largest, or NaN; `count` if there is none.
SPMM_MINMAX = (
    _WORDS
    + r"""
KERNEL void rows_extremes(IN(I, starts), IN(I, columns), IN(T, values), IN(T, dense), OUT(long, best), const int pieces,
    const int n, const int size, const int count, const int per) {
    EACH_ROW(piece, pieces, per) {
        const int row = piece / n, i = piece % n;
        const int first = WITHIN(AT(starts)[row], count), end = WITHIN(AT(starts)[row + 1], count);
        int found = count;
        C most = 0;
        for (int k = first; k < end; k++) {
            const I column = AT(columns)[k];
            if (!INSIDE(column, size)) continue;
            const C term = T_LD(AT(dense), (int)column * n + i) * T_LD(AT(values), k);
            const int better = SMALLEST ? term < most : term > most;
            if (found == count || better || term != term) {
                found = k;
                most = term;
            }
        }
        AT(best)[piece] = found;
    }
}
"""
)
# A worker has an element of `out`, the items of a work-group share its two rows.
SDDMM = (
    _WORDS
    + r"""
KERNEL void products_at(IN(I, rows), IN(I, columns), IN(T, left), IN(T, right), OUT(T, out), const int count,
    const int n, const int height, const int width, const int per) {
    SCRATCH
    EACH_ROW(at, count, per) {
        const I row = AT(rows)[at], column = AT(columns)[at];
        V total = SPLAT(0);
        if (INSIDE(row, height) && INSIDE(column, width)) {
            GLOBAL const T* one = AT(left) + (int)row * n;
            GLOBAL const T* two = AT(right) + (int)column * n;
            ALONG(i, n) total += TIMES(LOAD_T(one + i, n - i, 0), LOAD_T(two + i, n - i, 0));
        }
        const C sum = SUM_OF_LANES(total);
        if (LANE == 0) T_ST(AT(out), at, sum);
    }
}
"""
)
