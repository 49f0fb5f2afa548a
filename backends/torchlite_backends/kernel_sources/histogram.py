"""Histograms: counts per bin, and the bins of numbers."""

from __future__ import annotations

# A histogram of each part of the elements; PLACE is the bin of element i, negative for none.
COUNT_BINS = r"""
KERNEL void count_bins(IN(T, x), IN(V, weights), OUT(B, bins), const int count, const int size, const int chunk,
    const R low, const R high) {
    int part = ITEM, end = min((part + 1) * chunk, count);
    GLOBAL B* mine = AT(bins) + part * size;
    for (int j = 0; j < size; j++) { mine[j] = 0; }
    for (int i = part * chunk; i < end; i++) {
        int bin = -1;
        PLACE(T_LD(AT(x), i))
        if (bin >= 0) { mine[bin] += WEIGHT; }
    }
}
"""

# The number of the box that a point falls into, one dimension a launch.
FIND_BINS = r"""
KERNEL void find_bins(IN(T, x), IN(T, edges), OUT(int, place), const int count, const int dims, const int column,
    const int size) {
    int i = ITEM;
    if (i >= count) { return; }
    T_C v = T_LD(AT(x), i * dims + column);
    int low = 0, high = size + 1, before = column ? place_[i] : 0;
    while (low < high) {
        int middle = (low + high) / 2;
        if (T_LD(AT(edges), middle) <= v) { low = middle + 1; } else { high = middle; }
    }
    int inside = v >= T_LD(AT(edges), 0) && v <= T_LD(AT(edges), size);
    place_[i] = inside && before >= 0 ? before * size + min(low - 1, size - 1) : -1;
}
"""
