"""Source of arange: start + step * i."""

from __future__ import annotations

RANGE = r"""
KERNEL void range(OUT(T, out), const int n, const W start, const W step) {
    int i = ITEM;
    if (i < n) T_ST(AT(out), i, (T_C)(start + i * step));
}
"""
