"""Running sums of masks and counts by blocks: first each block's sum, then the sums before each block, then the places within the blocks."""
from __future__ import annotations

MASKS = r"""
KERNEL void block_sums(IN(T, x), OUT(int, sums), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), sum = 0, negative = 0;
    for (int i = block * length; i < end; i++) { int v = (int)AT(x)[i]; sum += v; negative |= AT(x)[i] < 0; }
    AT(sums)[block] = negative ? -1 : sum;
}

KERNEL void running_sums(OUT(int, sums), const int blocks) {
    int sum = 0, negative = 0;
    for (int b = 0; b < blocks; b++) {
        int v = AT(sums)[b];
        AT(sums)[b] = sum;
        negative |= v < 0;
        sum += max(v, 0);
    }
    AT(sums)[blocks] = sum;
    AT(sums)[blocks + 1] = negative;
}

KERNEL void flat_places(IN(uchar, mask), IN(int, starts), OUT(int, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = AT(starts)[block];
    for (int i = block * length; i < end; i++) if (AT(mask)[i]) AT(out)[at++] = i;
}

typedef struct { int ndim; int n[15]; } Shape;
KERNEL void coordinates(IN(int, places), OUT(int, out), const int total, const int take, const Shape shape) {
    for (int i = ITEM * take; i < min(ITEM * take + take, total); i++) {
        int rest = AT(places)[i];
        for (int d = shape.ndim - 1; d >= 0; d--) {
            AT(out)[d * total + i] = rest % shape.n[d];
            rest /= shape.n[d];
        }
    }
}

KERNEL void taken(IN(uchar, mask), IN(int, starts), IN(T, x), OUT(T, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = AT(starts)[block];
    for (int i = block * length; i < end; i++) if (AT(mask)[i]) AT(out)[at++] = AT(x)[i];
}

KERNEL void fill_masked(IN(uchar, mask), IN(int, starts), IN(T, source), OUT(T, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = AT(starts)[block];
    for (int i = block * length; i < end; i++) if (AT(mask)[i]) AT(out)[i] = AT(source)[at++];
}

KERNEL void repeat_places(IN(T, repeats), IN(int, starts), OUT(T, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = AT(starts)[block];
    for (int i = block * length; i < end; i++) for (int k = 0; k < (int)AT(repeats)[i]; k++) AT(out)[at++] = (T)i;
}
"""
