"""Embedding gradient: add rows of `grad` to the rows `index` of `out`, in the order of `index`.

Invalid indices and `padding` are skipped.
"""

from __future__ import annotations

from .row_macros import row_macros_source

# A worker has `take` columns of all rows and zeroes them first: no two workers write one element.
BY_COLUMNS = (
    row_macros_source()
    + r"""
KERNEL void embedding_by_columns(IN(T, grad), IN(I, index), IN(C, shares), OUT(C, out), const int count, const int size,
    const int n, const int take, const int padding, const int shared) {
    const int first = ITEM * take, end = SMALLER(first + take, n);
    for (int row = 0; row < size; row++) for (int i = first; i < end; i += W)
        STORE_C(AT(out) + row * n + i, end - i, SPLAT(0));
    for (int k = 0; k < count; k++) {
        long row = (long)AT(index)[k];
        if (row < 0 || row >= size || row == padding) continue;
        GLOBAL C* to = AT(out) + row * n;
        C share = shared ? AT(shares)[k] : 1;
        for (int i = first; i < end; i += W)
            STORE_C(to + i, end - i, LOAD_C(to + i, end - i, 0) + LOAD_T(AT(grad) + k * n + i, end - i, 0) * share);
    }
}
"""
)
# A work-group has one position of `index`; at an index's first occurrence it adds the rows of all its occurrences.
# `out` is zero-initialised.
BY_POSITIONS = (
    row_macros_source()
    + r"""
KERNEL void embedding_by_positions(IN(T, grad), IN(I, index), IN(C, shares), OUT(C, out), const int count,
    const int size, const int n, const int padding, const int shared) {
    LOCAL_ARRAY(int, hits, LANES);
    const int own = BLOCK;
    const long row = (long)AT(index)[own];
    if (row < 0 || row >= size || row == padding) return;
    GLOBAL C* to = AT(out) + row * n;
    int before = 0;
    for (int k = THREAD; k < own; k += LANES) before |= (long)AT(index)[k] == row;
    hits[THREAD] = before;
    BARRIER;
    for (int k = 0; k < LANES; k++) before |= hits[k];
    if (before) return;
    for (int tile = own; tile < count; tile += LANES) {
        BARRIER;
        hits[THREAD] = tile + THREAD < count && (long)AT(index)[tile + THREAD] == row;
        BARRIER;
        for (int k = 0; k < LANES; k++) {
            if (!hits[k]) continue;
            C share = shared ? AT(shares)[tile + k] : 1;
            for (int i = THREAD; i < n; i += LANES) to[i] += T_LD(AT(grad), (tile + k) * n + i) * share;
        }
    }
}
"""
)
INVERSE_COUNTS = r"""
KERNEL void embedding_shares(IN(I, index), OUT(T, shares), const int count) {
    if (ITEM >= count) return;
    int found = 0;
    for (int k = 0; k < count; k++) found += AT(index)[k] == AT(index)[ITEM];
    AT(shares)[ITEM] = (T)1 / found;
}
"""
