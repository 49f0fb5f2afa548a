"""Dropout in one launch: Philox decides the mask, which is stored as a byte per element for backward.

For LANES and types see `philox`.
"""

from __future__ import annotations

from .philox import ROUNDS

FORWARD = (
    ROUNDS
    + r"""
KERNEL void dropout(IN(T, x), OUT(T, out), OUT(uchar, kept), const int n,
    const uint k0, const uint k1, const ulong first, const uint limit, const T_C scale) {
    const int block = ITEM * LANES;
    int at = block / 16 * 64 + block % 16;
    if (at >= n) return;
    U c[4];
    words(c, first + block, k0, k1);
    for (int k = 0; k < 4; k++, at += 16) {
        U keep = c[k] <= (U)(limit) ? (U)(1) : (U)(0);
#if LANES == 16
        if (at + 16 <= n) {
            vstore16(convert_uchar16(keep), 0, AT(kept) + at);
            T_ST16(AT(out), at, T_LD16(AT(x), at) * (TO_T(keep) * scale));
            continue;
        }
#endif
        for (int lane = 0; lane < LANES && at + lane < n; lane++) {
            uint one = ((uint*)&keep)[lane];
            AT(kept)[at + lane] = (uchar)one;
            T_ST(AT(out), at + lane, T_LD(AT(x), at + lane) * (one * scale));
        }
    }
}
"""
)

BACKWARD = r"""
KERNEL void dropout_backward(IN(T, grad), IN(uchar, kept), OUT(T, out), const int n, const T_C scale) {
    int i = ITEM * LANES;
#if LANES == 16
    if (i + 16 <= n) {
        T_ST16(AT(out), i, T_LD16(AT(grad), i) * (TO_T(vload16(0, AT(kept) + i)) * scale));
        return;
    }
#endif
    for (int end = min(i + LANES, n); i < end; i++) T_ST(AT(out), i, T_LD(AT(grad), i) * (AT(kept)[i] * scale));
}
"""
