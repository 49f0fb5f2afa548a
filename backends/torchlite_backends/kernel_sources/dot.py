"""Dot products of vectors: sums of parts."""

from __future__ import annotations

from .row_macros import row_macros_source

DOT = (
    row_macros_source()
    + r"""
KERNEL void dot_parts(IN(T, x), IN(T, y), OUT(O, out), const int parts, const int n, const int length, const int per) {
    SCRATCH
    EACH_ROW(part, parts, per) {
        const int start = part * length, count = SMALLER(length, n - start);
        SUM(total)
        ALONG(i, count)
            ADD_TO(total, LOAD_T(AT(x) + start + i, count - i, 0) * LOAD_T(AT(y) + start + i, count - i, 0))
        D sum = SUM_OF_LANES(total_all + TO_D(total));
        if (LANE == 0) O_ST(AT(out), part, (O_C)sum);
    }
}
"""
)
