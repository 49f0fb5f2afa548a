"""Prefix sums of masks and counts by blocks: block sums, the sums before each block, then positions within blocks."""

from __future__ import annotations

# Sums of masks are int; those of counts (`S` is long) may exceed it.
BLOCK_SUMS = r"""
KERNEL void block_sums(IN(T, x), OUT(S, sums), const int n, const int length) {
    int block = ITEM, i = block * length, end = min(i + length, n), negative = 0;
    S sum = 0;
#ifdef MASK
    int16 part = (int16)(0);
    for (; i + 16 <= end; i += 16) part -= convert_int16(vload16(0, AT(x) + i) != (uchar16)(0));
    int lanes[16];
    vstore16(part, 0, lanes);
    for (int k = 0; k < 16; k++) sum += lanes[k];
    for (; i < end; i++) sum += AT(x)[i] != 0;
#endif
    for (; i < end; i++) { sum += (S)AT(x)[i]; negative |= AT(x)[i] < 0; }
    AT(sums)[block] = negative ? (S)-1 : sum;
}

KERNEL void running_sums(OUT(S, sums), const int blocks) {
    S sum = 0;
    int negative = 0;
    for (int b = 0; b < blocks; b++) {
        S v = AT(sums)[b];
        AT(sums)[b] = sum;
        negative |= v < 0;
        sum += max(v, (S)0);
    }
    AT(sums)[blocks] = sum;
    AT(sums)[blocks + 1] = negative;
}
"""

TRUE_INDICES = r"""
KERNEL void flat_places(IN(uchar, mask), IN(int, starts), OUT(int, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = AT(starts)[block];
    for (int i = block * length; i < end; i += 32) {
        int found[32], count = 0;
        for (int k = 0; k < min(32, end - i); k++) { found[count] = i + k; count += AT(mask)[i + k] != 0; }
        for (int k = 0; k < count; k++) AT(out)[at + k] = found[k];
        at += count;
    }
}

typedef struct { int ndim; int n[15]; } Shape;
KERNEL void coordinates(IN(int, places), OUT(int, out), const int total, const int take, const Shape shape) {
    for (int i = ITEM * take; i < min(ITEM * take + take, total); i++) {
        int rest = AT(places)[i];
        for (int d = shape.ndim - 1; d >= 0; d--) {
            int above = rest / shape.n[d];
            AT(out)[d * total + i] = rest - above * shape.n[d];
            rest = above;
        }
    }
}
"""

# Masked select, and masked assignment from a source.
COMPRESS = r"""
KERNEL void taken(IN(uchar, mask), IN(int, starts), IN(T, x), OUT(T, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = AT(starts)[block];
    for (int i = block * length; i < end; i += 32) {
        T found[32];
        int count = 0;
        for (int k = 0; k < min(32, end - i); k++) { found[count] = AT(x)[i + k]; count += AT(mask)[i + k] != 0; }
        for (int k = 0; k < count; k++) AT(out)[at + k] = found[k];
        at += count;
    }
}

KERNEL void fill_masked(IN(uchar, mask), IN(int, starts), IN(T, source), OUT(T, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = AT(starts)[block];
    for (int i = block * length; i < end; i++) if (AT(mask)[i]) AT(out)[i] = AT(source)[at++];
}
"""

REPEAT = r"""
KERNEL void repeat_places(IN(T, repeats), IN(long, starts), OUT(T, out), const int n, const int length) {
    int block = ITEM, end = min((block + 1) * length, n), at = (int)AT(starts)[block];
    for (int i = block * length; i < end; i++) for (int k = 0; k < (int)AT(repeats)[i]; k++) AT(out)[at++] = (T)i;
}
"""
