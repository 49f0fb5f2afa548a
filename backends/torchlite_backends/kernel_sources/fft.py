"""Discrete Fourier transforms: Stockham's self-sorting radices 2, 3, 4, 5 and odd primes to 31.

Also Bluestein's products, and the halving of real transforms.
"""

from __future__ import annotations

from . import factorisations as texts

# A butterfly of radix r reads elements p, p + m, p + 2 m, … and writes them at r p, r p + 1, …; its results are
# multiplied by powers of the stage's root. `scale` is 1 except in the last stage.
BUTTERFLIES = r"""
#define LOAD_1(at, re, im) { T t_ = x[at]; re = t_.x; im = t_.y; }
#define STORE_1(at, re, im) y[at] = VEC2(T, re, im);
#define LOAD_V(at, re, im) { V t_ = VLOAD(0, (GLOBAL const R*)(x + (at))); re = t_.even; im = t_.odd; }
#define STORE_V(at, re, im) { V t_; t_.even = re; t_.odd = im; VSTORE(t_, 0, (GLOBAL R*)(y + (at))); }
#define FROM(k) q + s * (p + (k) * m)
#define TURNED(k, re, im) STORE(q + s * (radix * p + k), (re) * w[k].x - (im) * w[k].y, (re) * w[k].y + (im) * w[k].x)

#define BUTTERFLY2(F, LOAD, STORE) { \
    F ar, ai, br, bi; \
    LOAD(FROM(0), ar, ai) LOAD(FROM(1), br, bi) \
    STORE(q + s * (2 * p), (ar + br) * scale, (ai + bi) * scale) \
    F dr = ar - br, di = ai - bi; \
    STORE(q + s * (2 * p + 1), dr * w[1].x - di * w[1].y, dr * w[1].y + di * w[1].x) }

#define BUTTERFLY3(F, LOAD, STORE) { \
    F ar, ai, br, bi, cr, ci; \
    LOAD(FROM(0), ar, ai) LOAD(FROM(1), br, bi) LOAD(FROM(2), cr, ci) \
    F sr = br + cr, si = bi + ci, dr = (bi - ci) * (sign * (R)0.86602540378443864676), \
        di = (cr - br) * (sign * (R)0.86602540378443864676); \
    STORE(q + s * (3 * p), (ar + sr) * scale, (ai + si) * scale) \
    ar -= sr / 2; ai -= si / 2; \
    br = ar + dr; bi = ai + di; cr = ar - dr; ci = ai - di; \
    STORE(q + s * (3 * p + 1), br * w[1].x - bi * w[1].y, br * w[1].y + bi * w[1].x) \
    STORE(q + s * (3 * p + 2), cr * w[2].x - ci * w[2].y, cr * w[2].y + ci * w[2].x) }

#define BUTTERFLY4(F, LOAD, STORE) { \
    F ar, ai, br, bi, cr, ci, dr, di; \
    LOAD(FROM(0), ar, ai) LOAD(FROM(1), br, bi) LOAD(FROM(2), cr, ci) LOAD(FROM(3), dr, di) \
    F er = ar + cr, ei = ai + ci, fr = br + dr, fi = bi + di, gr = (bi - di) * sign, gi = (dr - br) * sign; \
    ar -= cr; ai -= ci; \
    STORE(q + s * (4 * p), (er + fr) * scale, (ei + fi) * scale) \
    br = ar + gr; bi = ai + gi; cr = er - fr; ci = ei - fi; dr = ar - gr; di = ai - gi; \
    STORE(q + s * (4 * p + 1), br * w[1].x - bi * w[1].y, br * w[1].y + bi * w[1].x) \
    STORE(q + s * (4 * p + 2), cr * w[2].x - ci * w[2].y, cr * w[2].y + ci * w[2].x) \
    STORE(q + s * (4 * p + 3), dr * w[3].x - di * w[3].y, dr * w[3].y + di * w[3].x) }

#define BUTTERFLY5(F, LOAD, STORE) { \
    F ar, ai, br, bi, cr, ci, dr, di, er, ei; \
    LOAD(FROM(0), ar, ai) LOAD(FROM(1), br, bi) LOAD(FROM(2), cr, ci) LOAD(FROM(3), dr, di) LOAD(FROM(4), er, ei) \
    const R c1 = (R)0.30901699437494742410, c2 = (R)-0.80901699437494742410, s1 = sign * (R)0.95105651629515357212, \
        s2 = sign * (R)0.58778525229247312917; \
    F pr = br + er, pi = bi + ei, mr = br - er, mi = bi - ei, ur = cr + dr, ui = ci + di, vr = cr - dr, vi = ci - di; \
    STORE(q + s * (5 * p), (ar + pr + ur) * scale, (ai + pi + ui) * scale) \
    F hr = ar + c1 * pr + c2 * ur, hi = ai + c1 * pi + c2 * ui, gr = s1 * mi + s2 * vi, gi = -s1 * mr - s2 * vr; \
    F kr = ar + c2 * pr + c1 * ur, ki = ai + c2 * pi + c1 * ui, lr = s2 * mi - s1 * vi, li = s1 * vr - s2 * mr; \
    br = hr + gr; bi = hi + gi; cr = kr + lr; ci = ki + li; dr = kr - lr; di = ki - li; er = hr - gr; ei = hi - gi; \
    STORE(q + s * (5 * p + 1), br * w[1].x - bi * w[1].y, br * w[1].y + bi * w[1].x) \
    STORE(q + s * (5 * p + 2), cr * w[2].x - ci * w[2].y, cr * w[2].y + ci * w[2].x) \
    STORE(q + s * (5 * p + 3), dr * w[3].x - di * w[3].y, dr * w[3].y + di * w[3].x) \
    STORE(q + s * (5 * p + 4), er * w[4].x - ei * w[4].y, er * w[4].y + ei * w[4].x) }

#define BUTTERFLY_ANY(F, LOAD, STORE) { \
    F re[31], im[31]; \
    for (int k = 0; k < radix; k++) LOAD(FROM(k), re[k], im[k]) \
    for (int j = 0; j < radix; j++) { \
        F sr = re[0], si = im[0]; \
        for (int k = 1; k < radix; k++) { \
            T u = roots[j * k % radix * apart]; u.y *= sign; sr += re[k] * u.x - im[k] * u.y; \
            si += re[k] * u.y + im[k] * u.x; } \
        STORE(q + s * (radix * p + j), sr * w[j].x - si * w[j].y, sr * w[j].y + si * w[j].x) \
    } }

#define TURNS(count) \
    w[0] = VEC2(T, scale, 0); \
    for (int j = 1; j < (count); j++) { T u = roots[p * j * step]; w[j] = VEC2(T, u.x * scale, u.y * scale * sign); }

#if GROUP == 1
#define EACH(count, BUTTERFLY) \
    for (int p = p0; p < p1; p++) { \
        TURNS(count) \
        int q = q0; \
        for (; q + WIDTH <= q1; q += WIDTH) BUTTERFLY(HALF_V, LOAD_V, STORE_V) \
        for (; q < q1; q++) BUTTERFLY(R, LOAD_1, STORE_1) \
    }
#else
#define EACH(count, BUTTERFLY) \
    for (int t = p0; t < m * s; t += p1) { int p = t / s, q = t % s; TURNS(count) BUTTERFLY(R, LOAD_1, STORE_1) }
#endif

APART void pass(int radix, int n, int m, int s, int p0, int p1, int q0, int q1,
                GLOBAL const T* x, GLOBAL T* y, GLOBAL const T* roots, R sign, R scale) {
    int step = n / (radix * m), apart = n / radix;
    if (radix == 4) { T w[4]; EACH(4, BUTTERFLY4) }
    else if (radix == 2) { T w[2]; EACH(2, BUTTERFLY2) }
    else if (radix == 3) { T w[3]; EACH(3, BUTTERFLY3) }
    else if (radix == 5) { T w[5]; EACH(5, BUTTERFLY5) }
    else { T w[31]; EACH(radix, BUTTERFLY_ANY) }
}
"""

# `rows`: a work-group computes all stages of a transform. `stage`: all work-items share one stage of few long
# transforms.
TRANSFORM = (
    texts.ELEMENTS
    + texts.GROUPS
    + BUTTERFLIES
    + r"""
KERNEL MATRICES void rows(IN(T, x), OUT(T, out), OUT(T, between), IN(T, roots), IN(int, radices), const int n,
    const int inner, const int stages, const int sign, const R scale) {
    int b = MATRIX, m = n, s = inner;
    GLOBAL const T* from = AT(x) + b * n * inner;
    for (int k = 0; k < stages; k++) {
        int radix = AT(radices)[k];
        GLOBAL T* to = ((stages - k) % 2 ? AT(out) : AT(between)) + b * n * inner;
        m /= radix;
#if GROUP == 1
        pass(radix, n, m, s, 0, m, 0, s, from, to, AT(roots), sign, k + 1 == stages ? scale : 1);
#else
        pass(radix, n, m, s, ME, GROUP, 0, 0, from, to, AT(roots), sign, k + 1 == stages ? scale : 1);
#endif
        SYNC;
        from = to;
        s *= radix;
    }
}

KERNEL VECTORS void stage(IN(T, x), OUT(T, y), IN(T, roots), const int radix, const int n, const int inner, const int m,
    const int s, const int parts, const int sign, const R scale) {
    int id = ITEM, b = id / parts, part = id % parts;
    GLOBAL const T* from = AT(x) + b * n * inner;
    GLOBAL T* to = AT(y) + b * n * inner;
#if GROUP == 1
    int wide = m >= parts ? (m + parts - 1) / parts : ((s + parts - 1) / parts + WIDTH - 1) / WIDTH * WIDTH;
    if (m >= parts) pass(radix, n, m, s, min(part * wide, m), min((part + 1) * wide, m), 0, s, from, to, AT(roots),
        sign, scale);
    else pass(radix, n, m, s, 0, m, min(part * wide, s), min((part + 1) * wide, s), from, to, AT(roots), sign, scale);
#else
    pass(radix, n, m, s, part, parts, 0, 0, from, to, AT(roots), sign, scale);
#endif
}
"""
)

BLUESTEIN_AND_REAL = (
    texts.ELEMENTS
    + r"""
KERNEL void chirped(IN(T, x), IN(T, chirp), OUT(T, y), const int n, const int m, const int inner, const int sign,
    const int count) {
    int t = ITEM, i = t % inner, k = t / inner % m, b = t / inner / m;
    if (t >= count) return;
    T value = ZERO;
    if (k < n) { T u = AT(chirp)[k]; u.y *= sign; value = mul(AT(x)[(b * n + k) * inner + i], u); }
    AT(y)[t] = value;
}

KERNEL void spectrum(OUT(T, y), IN(T, filter), const int m, const int inner, const int sign, const int count) {
    int t = ITEM;
    if (t >= count) return;
    T u = AT(filter)[t / inner % m];
    u.y *= sign;
    AT(y)[t] = mul(AT(y)[t], u);
}

KERNEL void unchirped(IN(T, y), IN(T, chirp), OUT(T, x), const int n, const int m, const int inner, const int sign,
    const R scale, const int count) {
    int t = ITEM, i = t % inner, k = t / inner % n, b = t / inner / n;
    if (t >= count) return;
    T u = AT(chirp)[k];
    u.y *= sign;
    AT(x)[t] = mul(AT(y)[(b * m + k) * inner + i], u) * scale;
}

KERNEL void halves(IN(T, z), IN(T, roots), OUT(T, x), const int n, const int size, const int count) {
    int t = ITEM, k = t % size, b = t / size, h = n / 2, turned = k > h;
    if (t >= count) return;
    if (turned) k = n - k;
    T one = AT(z)[b * h + k % h], other = AT(z)[b * h + (h - k) % h], u = AT(roots)[k % n];
    other = CONJ(other);
    T even = (one + other) / 2, odd = (one - other) / 2;
    T v = even + mul(u, VEC2(T, odd.y, -odd.x));
    AT(x)[t] = turned ? CONJ(v) : v;
}

KERNEL void joined(IN(T, x), IN(T, roots), OUT(T, z), const int n, const int size, const int count) {
    int h = n / 2, t = ITEM, k = t % h, b = t / h;
    if (t >= count) return;
    T one = k < size ? AT(x)[b * size + k] : ZERO, other = h - k < size ? AT(x)[b * size + h - k] : ZERO,
        u = AT(roots)[k];
    if (k == 0) { one.y = 0; other.y = 0; }
    other = CONJ(other);
    T odd = mul(one - other, CONJ(u));
    AT(z)[t] = one + other + VEC2(T, -odd.y, odd.x);
}

KERNEL void whole(IN(T, x), OUT(T, y), const int n, const int size, const int inner, const int count) {
    int t = ITEM, i = t % inner, k = t / inner % n, b = t / inner / n, turned = k > n / 2, from = turned ? n - k : k;
    if (t >= count) return;
    T v = from < size ? AT(x)[(b * size + from) * inner + i] : ZERO;
    if (from == 0 || 2 * from == n) v.y = 0;
    AT(y)[t] = turned ? CONJ(v) : v;
}
"""
)
