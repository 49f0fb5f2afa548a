"""Copies with zeros around each image, which convolutions then read without a question about edges."""

# A row of the padded array for each work-item of a CPU (a stretch of them), an element for each of a GPU. Elements are moved as bits, whatever they mean.
PAD = r"""
typedef struct { int rows, depth, height, width, before_d, before_h, before_w, padded_d, padded_h, padded_w; } Pad;
#ifdef BY_ELEMENT
KERNEL void pad(IN(T, x), OUT(T, y), const Pad s) {
    if (ITEM >= s.rows * s.padded_w) { return; }
    int at = ITEM % s.padded_w, row = ITEM / s.padded_w, h = row % s.padded_h - s.before_h, w = at - s.before_w;
    row /= s.padded_h;
    int d = row % s.padded_d - s.before_d;
    int inside = h >= 0 && h < s.height && d >= 0 && d < s.depth && w >= 0 && w < s.width;
    T v = ZERO;
    if (inside) { v = AT(x)[((row / s.padded_d * s.depth + d) * s.height + h) * s.width + w]; }
    AT(y)[ITEM] = v;
}
#else
KERNEL void pad(IN(T, x), OUT(T, y), const Pad s) {
    int items = (int)get_global_size(0), stop = (int)((long)s.rows * (ITEM + 1) / items);
    for (int i = (int)((long)s.rows * ITEM / items); i < stop; ++i) {
        GLOBAL T* to = AT(y) + i * s.padded_w;
        int h = i % s.padded_h - s.before_h, outer = i / s.padded_h, d = outer % s.padded_d - s.before_d, w = 0;
        if (h >= 0 && h < s.height && d >= 0 && d < s.depth) {
            GLOBAL const T* from = AT(x) + ((outer / s.padded_d * s.depth + d) * s.height + h) * s.width - s.before_w;
            int end = min(s.padded_w, s.before_w + s.width), start = max(0, s.before_w);
            for (; w < start; ++w) { to[w] = ZERO; }
            for (; w + 16 <= end; w += 16) { MOVE16(to + w, from + w); }
            for (; w < end; ++w) { to[w] = from[w]; }
        }
        for (; w < s.padded_w; ++w) { to[w] = ZERO; }
    }
}
#endif
"""
