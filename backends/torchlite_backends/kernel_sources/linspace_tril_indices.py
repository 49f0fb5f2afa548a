"""linspace, and triangle indices."""

from __future__ import annotations

# The first half counted from the start, the second from the end. POWER(x) is the value at a point; START, END and STEP
# are of the type W.
SPACED = r"""
typedef struct { W start, end, step; } Ends;
KERNEL void spaced(OUT(T, out), const int n, const Ends e) {
    int i = ITEM;
    if (i >= n) return;
    W v = i < n / 2 ? e.start + e.step * (REAL)i : e.end - e.step * (REAL)(n - 1 - i);
    T_ST(AT(out), i, FINAL(POWER(v)));
}
"""

# Pairs (row, column) with column <= row + offset, row by row; a work-item writes a row.
PAIRS = r"""
KERNEL void pairs(OUT(T, out), const int rows, const int columns, const int offset, const int lower, const int total) {
    int row = ITEM;
    if (row >= rows) return;
    int at = 0;
    for (int r = 0; r < row; r++) {
        int cut = clamp(r + offset + lower, 0, columns); at += lower ? cut : columns - cut;
    }
    int cut = clamp(row + offset + lower, 0, columns), first = lower ? 0 : cut, last = lower ? cut : columns;
    for (int c = first; c < last; c++, at++) { AT(out)[at] = (T)row; AT(out)[total + at] = (T)c; }
}
"""
