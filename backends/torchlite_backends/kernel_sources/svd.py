"""SVD by one-sided Jacobi rotations (Demmel and Veselic, 1992), products of its factors, and the matrix exponential."""

from __future__ import annotations

from . import factorisations as texts

# Rows of w are the columns of the matrix (of its adjoint if it is wide): pairs of them are rotated until all are
# orthogonal, v accumulates the rotations. A round of the tournament is n/2 disjoint pairs. The matrix is scaled to
# elements of at most 1. Columns that shrink to rounding errors are skipped, and their vectors computed from the
# others'.
JACOBI = (
    texts.ELEMENTS
    + texts.GROUPS
    + texts.STEPS
    + texts.REFLECTORS
    + r"""
#if GROUP == 1
#define LANES 1
FUNCTION R sum_of(V v) {
    R parts[VECTOR], sum = 0;
    VSTORE(v, 0, parts);
    for (int i = 0; i < VECTOR; i++) sum += parts[i];
    return sum;
}
APART void inspect(int m, GLOBAL const T* x, GLOBAL const T* y, R* xx, R* yy, T* xy, LOCAL R* s) {
    GLOBAL const R* p = (GLOBAL const R*)x;
    GLOBAL const R* q = (GLOBAL const R*)y;
    V a = 0, b = 0, c = 0;
    int i = 0;
#if COMPLEX
    HALF_V d = 0, f = 0;
#endif
    for (; i + VECTOR <= m * PARTS; i += VECTOR) {
        V u = VLOAD(0, p + i), v = VLOAD(0, q + i);
        a += u * u; b += v * v;
#if COMPLEX
        d += u.even * v.even + u.odd * v.odd; f += u.even * v.odd - u.odd * v.even;
#else
        c += u * v;
#endif
    }
    *xx = sum_of(a); *yy = sum_of(b);
#if COMPLEX
    V both;
    both.even = d; both.odd = 0;
    *xy = VEC2(T, sum_of(both), 0);
    both.even = f;
    (*xy).y = sum_of(both);
#else
    *xy = sum_of(c);
#endif
    for (i = i / PARTS; i < m; i++) { *xx += ABS2(x[i]); *yy += ABS2(y[i]); *xy = plus(*xy, CONJ(x[i]), y[i]); }
}
APART void turn_rows(int m, T c, T turn, GLOBAL T* x, GLOBAL T* y, int lane) {
    T back = -CONJ(turn);
    int i = 0;
    for (; i + WIDTH <= m; i += WIDTH) {
        S u = s_load(x + i), v = s_load(y + i);
        s_store(x + i, s_plus(s_plus(s_zero(), c, u), back, v));
        s_store(y + i, s_plus(s_plus(s_zero(), turn, u), c, v));
    }
    for (; i < m; i++) {
        T u = x[i], v = y[i];
        x[i] = plus(mul(c, u), back, v);
        y[i] = plus(mul(turn, u), c, v);
    }
}
#else
#define LANES 16
FUNCTION R lane_sum(R v, LOCAL R* s) {
    s[ME] = v;
    for (int half_ = LANES / 2; half_ > 0; half_ /= 2) { SYNC; if (ME % LANES < half_) s[ME] += s[ME + half_]; }
    SYNC;
    v = s[ME / LANES * LANES];
    SYNC;
    return v;
}
APART void inspect(int m, GLOBAL const T* x, GLOBAL const T* y, R* xx, R* yy, T* xy, LOCAL R* s) {
    T both = ZERO;
    R one = 0, other = 0;
    for (int i = ME % LANES; i < m; i += LANES) {
        one += ABS2(x[i]); other += ABS2(y[i]); both = plus(both, CONJ(x[i]), y[i]);
    }
    *xx = lane_sum(one, s);
    *yy = lane_sum(other, s);
    R re = lane_sum(RE(both), s);
#if COMPLEX
    R im = lane_sum(IM(both), s);
#endif
    *xy = CPLX(re, im);
}
APART void turn_rows(int m, T c, T turn, GLOBAL T* x, GLOBAL T* y, int lane) {
    for (int i = lane; i < m; i += LANES) {
        T u = x[i], v = y[i];
        x[i] = minus(mul(c, u), CONJ(turn), v);
        y[i] = plus(mul(turn, u), c, v);
    }
}
#endif

APART void rotate_all(int n, int m, GLOBAL T* w, GLOBAL T* v, int wanted, LOCAL R* s) {
    int even = n + n % 2, slots = GROUP / LANES;
    R near_ = EPSILON * sqrt((R)m);
    for (int tries = 0; tries < 40; tries++) {
        R moved = 0;
        for (int round_ = 0; round_ < even - 1; round_++) {
            for (int first = 0; first < even / 2; first += slots) {
                int slot = first + ME / LANES;
                int one = slot ? (round_ + slot) % (even - 1) : round_,
                    other = slot ? (round_ - slot + even - 1) % (even - 1) : even - 1;
                bool active = slot < even / 2 && one < n && other < n;
                int p = active ? min(one, other) : 0, q = active ? max(one, other) : 0;
                R xx, yy;
                T xy;
                inspect(m, w + p * m, w + q * m, &xx, &yy, &xy, s);
                R size = ABS(xy);
                if (active && min(xx, yy) > EPSILON * EPSILON && size > near_ * sqrt(xx) * sqrt(yy)) {
                    R zeta = (yy - xx) / (2 * size), t = copysign((R)1, zeta) / (fabs(zeta) + hypot((R)1, zeta)),
                        c = 1 / sqrt(1 + t * t);
                    T turn = xy / size * (c * t);
                    turn_rows(m, CPLX(c, (R)0), turn, w + p * m, w + q * m, ME % LANES);
                    if (wanted) turn_rows(n, CPLX(c, (R)0), turn, v + p * n, v + q * n, ME % LANES);
                    moved = 1;
                }
                SYNC;
            }
        }
        if (group_max(moved, s) == 0) break;
    }
}

KERNEL MATRICES void svd(OUT(T, w_), OUT(T, v_), OUT(T, x_), OUT(T, q_), OUT(R, r_), OUT(int, o_), OUT(int, info),
    OUT(T, u_), OUT(R, values), OUT(T, vh_), const int n, const int m, const int wide, const int columns,
    const int wanted, const int room) {
    LOCAL_ARRAY(R, s, GROUP);
    int b = MATRIX, whole = columns > n;
    GLOBAL T* w = AT(w_) + b * m * n;
    GLOBAL T* v = AT(v_) + (wanted ? b * n * n : 0);
    GLOBAL T* x = AT(x_) + (wanted ? b * m * n : 0);
    GLOBAL T* q = AT(q_) + (wanted ? b * m * columns : 0);
    GLOBAL T* left = AT(u_) + (wanted ? b * (wide ? n * n : m * columns) : 0);
    GLOBAL T* right = AT(vh_) + (wanted ? b * (wide ? m * columns : n * n) : 0);
    GLOBAL T* work = AT(x_) + (wanted ? BLOCKS * m * n + b * room : 0);
    GLOBAL R* norms = AT(r_) + b * n;
    GLOBAL int* order = AT(o_) + b * n;
    R most = largest(m * n, w, s);
    if (ME == 0) AT(info)[b] = isfinite(most) ? 0 : 1;
    if (!isfinite(most)) {
        for (int i = ME; i < n; i += GROUP) AT(values)[b * n + i] = NAN;
        if (wanted) for (int t = ME; t < n * n; t += GROUP) (wide ? left : right)[t] = NOTHING;
        if (wanted) for (int t = ME; t < m * columns; t += GROUP) (wide ? right : left)[t] = NOTHING;
        return;
    }
    if (most == 0) most = 1;
    for (int t = ME; t < m * n; t += GROUP) w[t] = w[t] / most;
    if (wanted) for (int t = ME; t < n * n; t += GROUP) v[t] = t / n == t % n ? ONE : ZERO;
    SYNC;
    rotate_all(n, m, w, v, wanted, s);
    for (int i = ME; i < n; i += GROUP) {
        R sum = 0;
        for (int k = 0; k < m; k++) sum += ABS2(w[i * m + k]);
        norms[i] = sqrt(sum);
    }
    SYNC;
    R least = EPSILON, poor = 0;
    for (int i = ME; i < n; i += GROUP) {
        int place = 0;
        for (int j = 0; j < n; j++) place += norms[j] > norms[i] || (norms[j] == norms[i] && j < i);
        AT(values)[b * n + place] = norms[i] * most;
        order[place] = i;
        if (norms[i] < least) poor = 1;
    }
    if (!wanted) return;
    int fill = group_max(poor, s) > 0 || whole;
    SYNC;
    for (int t = ME; t < m * n; t += GROUP) {
        int i = order[t % n];
        x[t] = norms[i] < least ? ZERO : w[i * m + t / n] / norms[i];
    }
    SYNC;
    if (fill) {
        factor_qr(m, n, x, work, work + n, s);
        multiply_out(m, n, columns, x, work, q, work + n);
    }
    for (int t = ME; t < m * columns; t += GROUP) {
        int i = t / columns, j = t % columns;
        T e = fill ? q[t] : x[t];
        if (fill && j < n && norms[order[j]] >= least) e = mul(e, x[j * n + j]);
        if (wide) right[j * m + i] = CONJ(e);
        else left[t] = e;
    }
    for (int t = ME; t < n * n; t += GROUP) {
        T e = v[order[t / n] * n + t % n];
        if (wide) left[t % n * n + t / n] = e;
        else right[t] = CONJ(e);
    }
}
"""
)

SVD_PRODUCTS = (
    texts.ELEMENTS
    + texts.GROUPS
    + r"""
KERNEL void inverses(IN(R, values), IN(R, rtol), IN(R, atol), OUT(R, inverse), const int k, const int rtol_step,
    const int atol_step, const int count) {
    int b = ITEM;
    if (b >= count) return;
    R most = 0;
    for (int i = 0; i < k; i++) most = fmax(most, fabs(AT(values)[b * k + i]));
    R limit = fmax(AT(atol)[b * atol_step], AT(rtol)[b * rtol_step] * most);
    for (int i = 0; i < k; i++) {
        R v = AT(values)[b * k + i]; AT(inverse)[b * k + i] = fabs(v) > limit ? 1 / v : isnan(v) ? v : 0;
    }
}

KERNEL void ranks(IN(R, values), OUT(long, rank), const int k, const R cut, const int count) {
    int b = ITEM;
    if (b >= count) return;
    long found = 0;
    for (int i = 0; i < k; i++) found += AT(values)[b * k + i] > cut * AT(values)[b * k];
    AT(rank)[b] = found;
}

KERNEL void others(IN(R, values), IN(T, det_u), IN(T, det_v), OUT(T, factors), const int n, const int count) {
    int t = ITEM, b = t / n;
    if (t >= count) return;
    R product = 1;
    for (int i = 0; i < n; i++) if (i != t % n) product *= AT(values)[b * n + i];
    AT(factors)[t] = CONJ(mul(AT(det_u)[b], AT(det_v)[b])) * product;
}

KERNEL void scaled(IN(T, x), IN(T, factors), OUT(T, y), const int n, const int k, const int turned, const int count) {
    int t = ITEM, i = t / k % n, j = t % k, b = t / k / n;
    if (t >= count) return;
    T v = turned ? AT(x)[(b * k + j) * n + i] : AT(x)[t];
    AT(y)[t] = -mul(turned ? CONJ(v) : v, AT(factors)[b * k + j]);
}

KERNEL void adjoint(IN(T, x), OUT(T, y), const int m, const int n, const int count) {
    int t = ITEM, j = t % m, i = t / m % n, b = t / m / n;
    if (t < count) AT(y)[t] = CONJ(AT(x)[(b * m + j) * n + i]);
}

KERNEL MATRICES void product(IN(T, x), IN(T, y), OUT(T, out), const int m, const int k, const int n, const int parts,
    const int wide) {
    int id = MATRIX, b = id / parts, from = id % parts * wide, columns = min(wide, n - from);
    GLOBAL T* mine = AT(out) + b * m * n + from;
    for (int i = 0; i < m; i++) for (int j = ME; j < columns; j += GROUP) mine[i * n + j] = ZERO;
    SYNC;
    subtract_product(m, columns, k, AT(x) + b * m * k, k, AT(y) + b * k * n + from, n, mine, n);
}
"""
)

EXPONENTIAL = (
    texts.ELEMENTS
    + texts.GROUPS
    + texts.STEPS
    + texts.ELIMINATION
    + texts.SUBSTITUTION
    + r"""
APART void multiply(int n, GLOBAL const T* x, GLOBAL const T* y, GLOBAL T* out) {
    for (int t = ME; t < n * n; t += GROUP) out[t] = ZERO;
    SYNC;
    subtract_product(n, n, n, x, n, y, n, out, n);
    SYNC;
    for (int t = ME; t < n * n; t += GROUP) out[t] = -out[t];
    SYNC;
}

#define TERMS(out, extra, f6, f4, f2, f0) \
    for (int t = ME; t < n * n; t += GROUP) { \
        T v = extra + a6[t] * (R)f6 + a4[t] * (R)f4 + a2[t] * (R)f2; \
        out[t] = t / n == t % n ? v + CPLX((R)f0, (R)0) : v; \
    } \
    SYNC;

KERNEL MATRICES void exponential(OUT(T, a_), OUT(T, work), OUT(int, pivots), OUT(T, panel), const int n) {
    LOCAL_ARRAY(R, s, GROUP);
    int b = MATRIX, halvings = 0;
    GLOBAL T* a = AT(a_) + b * n * n;
    GLOBAL T* a2 = AT(work) + b * 5 * n * n;
    GLOBAL T* a4 = a2 + n * n;
    GLOBAL T* a6 = a4 + n * n;
    GLOBAL T* x = a6 + n * n;
    GLOBAL T* y = x + n * n;
    R norm = 0;
    for (int j = ME; j < n; j += GROUP) {
        R sum = 0;
        for (int i = 0; i < n; i++) sum += ABS(a[i * n + j]);
        norm = sum <= norm ? norm : isfinite(sum) ? sum : (R)INFINITY;
    }
    norm = group_max(norm, s);
    if (!isfinite(norm)) {
        for (int t = ME; t < n * n; t += GROUP) a[t] = NOTHING;
        return;
    }
    R scale = 1;
    while (norm * scale > (R)4.25) { scale /= 2; halvings++; }
    for (int t = ME; t < n * n; t += GROUP) a[t] = a[t] * scale;
    SYNC;
    multiply(n, a, a, a2);
    multiply(n, a2, a2, a4);
    multiply(n, a2, a4, a6);
    TERMS(x, ZERO, 1, 16380, 40840800, 0)
    multiply(n, a6, x, y);
    TERMS(y, y[t], 33522128640, 10559470521600, 1187353796428800, 32382376266240000)
    multiply(n, a, y, x);
    TERMS(y, ZERO, 182, 960960, 1323241920, 0)
    multiply(n, a6, y, a);
    TERMS(a, a[t], 670442572800, 129060195264000, 7771770303897600, 64764752532480000)
    for (int t = ME; t < n * n; t += GROUP) { a2[t] = a[t] - x[t]; a4[t] = a[t] + x[t]; }
    SYNC;
    GLOBAL int* order = AT(pivots) + b * n;
    factor_lu(n, n, a2, order, AT(panel) + b * n * min(n, BLOCKED), s);
    SYNC;
    for (int j = ME; j < n; j += GROUP)
        for (int i = 0; i < n; i++) {
            int o = order[i] - 1; T kept = a4[i * n + j]; a4[i * n + j] = a4[o * n + j]; a4[o * n + j] = kept;
        }
    SYNC;
    substitute(n, n, a2, n, a4, n, 0, 1);
    substitute(n, n, a2, n, a4, n, 1, 0);
    for (int i = 0; i < halvings; i++) { GLOBAL T* from = i % 2 ? a6 : a4; multiply(n, from, from, i % 2 ? a4 : a6); }
    for (int t = ME; t < n * n; t += GROUP) a[t] = halvings % 2 ? a6[t] : a4[t];
}
"""
)
