"""Unique elements and rows, nonzero indices, masked elements."""

from __future__ import annotations

# Merge sort of rows of `width` elements: an element's index in a merged run is its index in its run plus the number of
# smaller elements in the other run.
ROWS = r"""
FUNCTION int before(GLOBAL const T* a, GLOBAL const T* b, int width) {
    for (int c = 0; c < width; c++) {
        T_C u = T_LD(a, c), v = T_LD(b, c);
        if (u != v) { return u < v || (v != v && u == u); }
    }
    return 0;
}
KERNEL void number(OUT(int, order), const int count) { int i = ITEM; if (i < count) { order_[i] = i; } }
KERNEL void merge_runs(IN(T, x), IN(int, from), OUT(int, to), const int count, const int width, const int run) {
    int i = ITEM;
    if (i >= count) { return; }
    int first = i / (2 * run) * 2 * run, middle = min(first + run, count), on_left = i < middle;
    int begin = on_left ? middle : first, low = begin, high = on_left ? min(first + 2 * run, count) : middle;
    GLOBAL const T* mine = AT(x) + from_[i] * width;
    while (low < high) {
        int half_way = (low + high) / 2;
        GLOBAL const T* other = AT(x) + from_[half_way] * width;
        if (on_left ? before(other, mine, width) : !before(mine, other, width)) { low = half_way + 1; }
        else { high = half_way; }
    }
    to_[(on_left ? i : i - (middle - first)) + low - begin] = from_[i];
}
KERNEL void starts_of_runs(IN(T, x), IN(int, order), OUT(int, flags), const int count, const int width) {
    int i = ITEM, differs = i == 0;
    if (i >= count) { return; }
    for (int c = 0; c < width && !differs; c++) {
        differs = T_LD(AT(x), order_[i] * width + c) != T_LD(AT(x), order_[i - 1] * width + c);
    }
    flags_[i] = differs;
}
KERNEL void write_runs(IN(T, x), IN(int, order), IN(int, numbers), OUT(T, values), OUT(long, inverse), OUT(int, starts),
    const int count, const int width) {
    int i = ITEM;
    if (i >= count) { return; }
    int run = numbers_[i] - 1, from = order_[i] * width;
    inverse_[order_[i]] = run;
    if (i == 0 || numbers_[i - 1] != run + 1) {
        for (int c = 0; c < width; c++) { T_ST(values_, run * width + c, T_LD(AT(x), from + c)); }
        starts_[run] = i;
    }
}
KERNEL void lengths(IN(int, starts), OUT(long, out), const int runs, const int count) {
    int i = ITEM;
    if (i < runs) { out_[i] = (i + 1 < runs ? starts_[i + 1] : count) - starts_[i]; }
}
"""

PLACES = (
    "KERNEL void places(IN(Item, items), OUT(int, order), const int count) { int i = ITEM; if (i < count) { "
    "order_[i] = PLACE(items_[i]); } }\n"
)

# Chunks of elements: the number of true ones in each, and the compacted output. False elements are written too and
# overwritten by the next, which is faster than a branch.
NONZERO = r"""
typedef struct { int count, chunk, chunks, dims, limit, shape[16]; } Geometry;
KERNEL void count_true(IN(T, x), OUT(int, counts), const Geometry g) {
    int c = ITEM, found = 0, end = min((c + 1) * g.chunk, g.count), i = c * g.chunk;
    if (c >= g.chunks) { return; }
#ifdef VECTORS
    uint16 sums = (uint16)(0);
    for (; i + 16 <= end; i += 16) { sums += convert_uint16(T_LD16(AT(x), i) != (T_C16)(0)) & (uint16)(1); }
    uint lanes[16];
    vstore16(sums, 0, lanes);
    for (int k = 0; k < 16; k++) { found += lanes[k]; }
#endif
    for (; i < end; i++) { found += IS_TRUE(T_LD(AT(x), i)); }
    counts_[c] = found;
}
KERNEL void write_places(IN(T, x), IN(int, counts), IN(int, ends), OUT(long, out), const Geometry g) {
    int c = ITEM;
    if (c >= g.chunks) { return; }
    GLOBAL long* q = out_ + (ends_[c] - counts_[c]) * g.dims;
    int room = min(g.limit - (ends_[c] - counts_[c]), counts_[c]), columns = g.shape[g.dims - 1], i = c * g.chunk,
        column = i % columns, above[16];
    for (int row = i / columns; room > 0; row++, column = 0) {
        for (int d = g.dims - 2, rest = row; d >= 0; d--) { above[d] = rest % g.shape[d]; rest /= g.shape[d]; }
        for (; column < columns && room > 0; column++, i++) {
            int found = IS_TRUE(T_LD(AT(x), i));
            for (int d = 0; d < g.dims - 1; d++) { q[d] = above[d]; }
            q[g.dims - 1] = column;
            q += found ? g.dims : 0;
            room -= found;
        }
    }
}
KERNEL void write_chosen(IN(T, mask), IN(int, counts), IN(int, ends), IN(V, x), OUT(V, out), const Geometry g) {
    int c = ITEM;
    if (c >= g.chunks) { return; }
    for (int i = c * g.chunk, to = ends_[c] - counts_[c]; to < ends_[c]; i++) {
        V_ST(out_, to, V_LD(AT(x), i));
        to += IS_TRUE(T_LD(AT(mask), i));
    }
}
"""
