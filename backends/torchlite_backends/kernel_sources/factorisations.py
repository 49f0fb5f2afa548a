"""OpenCL C of matrix factorisations: real and complex arithmetic, vector strips, and steps of a work-group on a matrix.

A program is built for one kind. `T` is an element, `R` its real type; matrices are row-major. `GROUP` is the number of
work-items per matrix: with 1 (CPUs) there are no barriers, and rows are processed in strips, vectors of `WIDTH`
elements. `vec_type_hint` prevents vectorisation over work-items, and noinline functions keep the programs small: both
save most of the build time.
"""

from __future__ import annotations

ELEMENTS = r"""
#if COMPLEX
#define RE(a) ((a).x)
#define IM(a) ((a).y)
#define CPLX(x, y) (VEC2(T, x, y))
#define CONJ(a) (VEC2(T, (a).x, -(a).y))
#define SIZE1(a) (fabs((a).x) + fabs((a).y))
#define PARTS 2
FUNCTION T mul(T a, T b) { return VEC2(T, a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
FUNCTION T quotient(T a, T b) {
    if (fabs(b.x) >= fabs(b.y)) {
        R r = b.y / b.x, d = b.x + b.y * r; return VEC2(T, (a.x + a.y * r) / d, (a.y - a.x * r) / d);
    }
    R r = b.x / b.y, d = b.x * r + b.y;
    return VEC2(T, (a.x * r + a.y) / d, (a.y * r - a.x) / d);
}
#define ABS(a) hypot((a).x, (a).y)
#else
#define RE(a) (a)
#define IM(a) ((R)0)
#define CPLX(x, y) (x)
#define CONJ(a) (a)
#define SIZE1(a) fabs(a)
#define PARTS 1
#define mul(a, b) ((a) * (b))
#define quotient(a, b) ((a) / (b))
#define ABS(a) fabs(a)
#endif
#define ABS2(a) (RE(a) * RE(a) + IM(a) * IM(a))
#define ONE CPLX((R)1, (R)0)
#define ZERO CPLX((R)0, (R)0)
#define NOTHING CPLX((R)NAN, (R)NAN)
#define BAD(a) (!isfinite(RE(a)) || !isfinite(IM(a)))
FUNCTION T plus(T c, T a, T b) { return c + mul(a, b); }
FUNCTION T minus(T c, T a, T b) { return c - mul(a, b); }
#define ITSELF(p) (*(p))
#define KEEP(p, v) (*(p) = (v))
"""

GROUPS = r"""
#define VECTORS VECTOR_HINT(V)
#define MATRICES GROUP_SIZE(GROUP) VECTORS
#define APART FUNCTION NOT_INLINE
#if GROUP == 1
#define SYNC
#define ME 0
#define MATRIX ITEM
#define group_sum(v, s) (v)
#define group_max(v, s) (v)
#if COMPLEX
#define WIDTH (VECTOR / 2)
typedef struct { HALF_V x, y; } S;
FUNCTION S s_load(GLOBAL const T* p) { V v = VLOAD(0, (GLOBAL const R*)p); S s; s.x = v.even; s.y = v.odd; return s; }
FUNCTION void s_store(GLOBAL T* p, S s) { V v; v.even = s.x; v.odd = s.y; VSTORE(v, 0, (GLOBAL R*)p); }
FUNCTION S s_plus(S c, T a, S b) { c.x += a.x * b.x - a.y * b.y; c.y += a.x * b.y + a.y * b.x; return c; }
FUNCTION S s_minus(S c, T a, S b) { c.x -= a.x * b.x - a.y * b.y; c.y -= a.x * b.y + a.y * b.x; return c; }
FUNCTION S s_zero(void) { S s; s.x = 0; s.y = 0; return s; }
#else
#define WIDTH VECTOR
#define S V
#define s_load(p) VLOAD(0, p)
#define s_store(p, v) VSTORE(v, 0, p)
#define s_plus(c, a, b) ((c) + (V)(a) * (b))
#define s_minus(c, a, b) ((c) - (V)(a) * (b))
#define s_zero() ((V)0)
#endif
#else
#define SYNC BARRIER_ALL
#define ME THREAD
#define MATRIX BLOCK
FUNCTION R group_sum(R v, LOCAL R* s) {
    s[ME] = v;
    for (int half_ = GROUP / 2; half_ > 0; half_ /= 2) { SYNC; if (ME < half_) s[ME] += s[ME + half_]; }
    SYNC;
    v = s[0];
    SYNC;
    return v;
}
FUNCTION R group_max(R v, LOCAL R* s) {
    s[ME] = v;
    for (int half_ = GROUP / 2; half_ > 0; half_ /= 2) { SYNC; if (ME < half_) s[ME] = fmax(s[ME], s[ME + half_]); }
    SYNC;
    v = s[0];
    SYNC;
    return v;
}
#endif

#if GROUP == 1
#define PRODUCT_COLUMNS(S, width, load, store, minus) \
    for (; j + width <= n; j += width) { \
        int i = 0; \
        for (; width > 1 && i + 4 <= m; i += 4) { \
            GLOBAL const T* a0 = a + i * lda; \
            GLOBAL T* r = c + i * ldc + j; \
            S c0 = load(r), c1 = load(r + ldc), c2 = load(r + 2 * ldc), c3 = load(r + 3 * ldc); \
            NOT_UNROLLED for (int p = 0; p < k; p++) { \
                S row = load(b + p * ldb + j); \
                c0 = minus(c0, a0[p], row); c1 = minus(c1, a0[lda + p], row); \
                c2 = minus(c2, a0[2 * lda + p], row); c3 = minus(c3, a0[3 * lda + p], row); \
            } \
            store(r, c0); store(r + ldc, c1); store(r + 2 * ldc, c2); store(r + 3 * ldc, c3); \
        } \
        for (; i < m; i++) { \
            S c0 = load(c + i * ldc + j); \
            NOT_UNROLLED for (int p = 0; p < k; p++) c0 = minus(c0, a[i * lda + p], load(b + p * ldb + j)); \
            store(c + i * ldc + j, c0); \
        } \
    }
APART void subtract_rest(int m, int n, int k, GLOBAL const T* a, int lda, GLOBAL const T* b, int ldb, GLOBAL T* c,
    int ldc) {
    int j = 0;
    PRODUCT_COLUMNS(S, WIDTH, s_load, s_store, s_minus)
    PRODUCT_COLUMNS(T, 1, ITSELF, KEEP, minus)
}
APART int product_strips(int m, int n, int k, GLOBAL const T* a, int lda, GLOBAL const T* b, int ldb, GLOBAL T* c,
    int ldc) {
    S one[32], other[32];
    int j = 0;
    for (; j + 2 * WIDTH <= n; j += 2 * WIDTH) {
        for (int from = 0; from < k; from += 32) {
            int some = min(32, k - from);
            for (int p = 0; p < some; p++) {
                GLOBAL const T* r = b + (from + p) * ldb + j; one[p] = s_load(r); other[p] = s_load(r + WIDTH);
            }
            for (int i = 0; i + 4 <= m; i += 4) {
                GLOBAL const T* a0 = a + i * lda + from;
                GLOBAL T* r = c + i * ldc + j;
                S c0 = s_load(r), c1 = s_load(r + ldc), c2 = s_load(r + 2 * ldc), c3 = s_load(r + 3 * ldc);
                S d0 = s_load(r + WIDTH), d1 = s_load(r + ldc + WIDTH), d2 = s_load(r + 2 * ldc + WIDTH),
                    d3 = s_load(r + 3 * ldc + WIDTH);
                NOT_UNROLLED for (int p = 0; p < some; p++) {
                    S u = one[p], v = other[p];
                    T f0 = a0[p], f1 = a0[lda + p], f2 = a0[2 * lda + p], f3 = a0[3 * lda + p];
                    c0 = s_minus(c0, f0, u); d0 = s_minus(d0, f0, v); c1 = s_minus(c1, f1, u); d1 = s_minus(d1, f1, v);
                    c2 = s_minus(c2, f2, u); d2 = s_minus(d2, f2, v); c3 = s_minus(c3, f3, u); d3 = s_minus(d3, f3, v);
                }
                s_store(r, c0); s_store(r + ldc, c1); s_store(r + 2 * ldc, c2); s_store(r + 3 * ldc, c3);
                s_store(r + WIDTH, d0); s_store(r + ldc + WIDTH, d1); s_store(r + 2 * ldc + WIDTH, d2);
                s_store(r + 3 * ldc + WIDTH, d3);
            }
        }
    }
    return j;
}
APART void subtract_product(int m, int n, int k, GLOBAL const T* a, int lda, GLOBAL const T* b, int ldb, GLOBAL T* c,
    int ldc) {
    int j = 0, top = m / 4 * 4;
    if (m >= 16) {
        j = product_strips(top, n, k, a, lda, b, ldb, c, ldc);
        if (j && top < m) subtract_rest(m - top, j, k, a + top * lda, lda, b, ldb, c + top * ldc, ldc);
    }
    subtract_rest(m, n - j, k, a, lda, b + j, ldb, c + j, ldc);
}
APART void combine_rows(int m, int n, GLOBAL const T* v, int step, GLOBAL const T* a, int lda, GLOBAL T* w) {
    int j = 0;
    for (; j + 4 * WIDTH <= n; j += 4 * WIDTH) {
        S w0 = s_zero(), w1 = s_zero(), w2 = s_zero(), w3 = s_zero();
        for (int i = 0; i < m; i++) {
            T f = CONJ(v[i * step]);
            GLOBAL const T* r = a + i * lda + j;
            w0 = s_plus(w0, f, s_load(r)); w1 = s_plus(w1, f, s_load(r + WIDTH));
            w2 = s_plus(w2, f, s_load(r + 2 * WIDTH)); w3 = s_plus(w3, f, s_load(r + 3 * WIDTH));
        }
        s_store(w + j, w0); s_store(w + j + WIDTH, w1); s_store(w + j + 2 * WIDTH, w2); s_store(w + j + 3 * WIDTH, w3);
    }
    for (; j + WIDTH <= n; j += WIDTH) {
        S w0 = s_zero();
        for (int i = 0; i < m; i++) w0 = s_plus(w0, CONJ(v[i * step]), s_load(a + i * lda + j));
        s_store(w + j, w0);
    }
    for (; j < n; j++) {
        T w0 = ZERO;
        for (int i = 0; i < m; i++) w0 = plus(w0, CONJ(v[i * step]), a[i * lda + j]);
        w[j] = w0;
    }
}
#else
APART void subtract_product(int m, int n, int k, GLOBAL const T* a, int lda, GLOBAL const T* b, int ldb, GLOBAL T* c,
    int ldc) {
    for (int t = ME; t < m * n; t += GROUP) {
        int i = t / n, j = t % n;
        T sum = c[i * ldc + j];
        NOT_UNROLLED for (int p = 0; p < k; p++) sum = minus(sum, a[i * lda + p], b[p * ldb + j]);
        c[i * ldc + j] = sum;
    }
}
APART void combine_rows(int m, int n, GLOBAL const T* v, int step, GLOBAL const T* a, int lda, GLOBAL T* w) {
    for (int j = ME; j < n; j += GROUP) {
        T sum = ZERO;
        for (int i = 0; i < m; i++) sum = plus(sum, CONJ(v[i * step]), a[i * lda + j]);
        w[j] = sum;
    }
}
#endif
"""

STEPS = r"""
#define BLOCKED 32

APART R largest(int count, GLOBAL const T* a, LOCAL R* s) {
    R most = 0;
    for (int i = ME; i < count; i += GROUP) {
        R v = SIZE1(a[i]); most = v <= most ? most : isfinite(v) ? v : (R)INFINITY;
    }
    return group_max(most, s);
}
"""

REFLECTORS = r"""
APART T reflector(int m, GLOBAL T* x, int step, LOCAL R* s) {
    R most = 0, sum = 0;
    for (int i = 1 + ME; i < m; i += GROUP) most = fmax(most, fmax(fabs(RE(x[i * step])), fabs(IM(x[i * step]))));
    most = group_max(most, s);
    T alpha = x[0];
    if (most == 0 && IM(alpha) == 0) { SYNC; return ZERO; }
    R unit = fmax(most, fmax(fabs(RE(alpha)), fabs(IM(alpha))));
    for (int i = 1 + ME; i < m; i += GROUP) { T v = x[i * step] / unit; sum += ABS2(v); }
    sum = group_sum(sum, s);
    T first = alpha / unit;
    R norm = unit * sqrt(sum + ABS2(first)), beta = RE(alpha) >= 0 ? -norm : norm;
    T scale = quotient(ONE, alpha - CPLX(beta, (R)0));
    for (int i = 1 + ME; i < m; i += GROUP) x[i * step] = mul(x[i * step], scale);
    SYNC;
    if (ME == 0) x[0] = CPLX(beta, (R)0);
    SYNC;
    return (CPLX(beta, (R)0) - alpha) / beta;
}

APART void reflect(int m, int n, T tau, GLOBAL T* v, int step, GLOBAL T* a, int lda, GLOBAL T* w) {
    T kept = v[0];
    SYNC;
    if (ME == 0) v[0] = ONE;
    SYNC;
    combine_rows(m, n, v, step, a, lda, w);
    SYNC;
    for (int j = ME; j < n; j += GROUP) w[j] = mul(tau, w[j]);
    SYNC;
    subtract_product(m, n, 1, v, step, w, 0, a, lda);
    SYNC;
    if (ME == 0) v[0] = kept;
    SYNC;
}

APART void pack_reflectors(int m, int k, GLOBAL const T* a, int lda, GLOBAL const T* tau, int turned,
                           GLOBAL T* v, GLOBAL T* adjoint, GLOBAL T* inner) {
    GLOBAL T* gram = inner + k * k;
    for (int t = ME; t < m * k; t += GROUP) {
        int i = t / k, j = t % k;
        T e = i > j ? a[i * lda + j] : i == j ? ONE : ZERO;
        v[t] = e;
        adjoint[j * m + i] = CONJ(e);
    }
    for (int t = ME; t < 2 * k * k; t += GROUP) inner[t] = ZERO;
    SYNC;
    subtract_product(k, k, m, adjoint, m, v, k, gram, k);
    SYNC;
    for (int j = 0; j < k; j++) {
        for (int i = ME; i <= j; i += GROUP) {
            T sum = i == j ? ONE : ZERO;
            for (int l = i; l < j; l++)
                sum = plus(sum, turned ? CONJ(inner[l * k + i]) : inner[i * k + l], gram[l * k + j]);
            sum = mul(sum, tau[j]);
            inner[turned ? j * k + i : i * k + j] = turned ? CONJ(sum) : sum;
        }
        SYNC;
    }
}

FUNCTION void apply_reflectors(int m, int n, int k, GLOBAL const T* v, GLOBAL const T* adjoint, GLOBAL const T* inner,
                      GLOBAL T* a, int lda, GLOBAL T* w) {
    for (int t = ME; t < 2 * k * n; t += GROUP) w[t] = ZERO;
    SYNC;
    subtract_product(k, n, m, adjoint, m, a, lda, w, n);
    SYNC;
    subtract_product(k, n, k, inner, k, w, n, w + k * n, n);
    SYNC;
    subtract_product(m, n, k, v, k, w + k * n, n, a, lda);
    SYNC;
}

APART void factor_qr(int m, int n, GLOBAL T* a, GLOBAL T* tau, GLOBAL T* work, LOCAL R* s) {
    int least = min(m, n);
    for (int start = 0; start < least; start += BLOCKED) {
        int stop = min(start + BLOCKED, least), size = stop - start, rows = m - start;
        for (int j = start; j < stop; j++) {
            T t = reflector(m - j, a + j * n + j, n, s);
            if (ME == 0) tau[j] = t;
            reflect(m - j, stop - j - 1, CONJ(t), a + j * n + j, n, a + j * n + j + 1, n, work);
        }
        if (stop == n) continue;
        GLOBAL T* adjoint = work + rows * size;
        GLOBAL T* inner = adjoint + rows * size;
        pack_reflectors(rows, size, a + start * n + start, n, tau + start, 1, work, adjoint, inner);
        apply_reflectors(rows, n - stop, size, work, adjoint, inner, a + start * n + stop, n, inner + 2 * size * size);
    }
}

APART void multiply_out(int m, int n, int columns, GLOBAL const T* a, GLOBAL const T* tau, GLOBAL T* q,
    GLOBAL T* work) {
    int least = min(m, n);
    for (int t = ME; t < m * columns; t += GROUP) q[t] = t / columns == t % columns ? ONE : ZERO;
    SYNC;
    for (int start = (least - 1) / BLOCKED * BLOCKED; start >= 0; start -= BLOCKED) {
        int size = min(BLOCKED, least - start), rows = m - start;
        GLOBAL T* adjoint = work + rows * size;
        GLOBAL T* inner = adjoint + rows * size;
        pack_reflectors(rows, size, a + start * n + start, n, tau + start, 0, work, adjoint, inner);
        apply_reflectors(rows, columns - start, size, work, adjoint, inner, q + start * columns + start, columns,
            inner + 2 * size * size);
    }
}
"""

ELIMINATION = r"""
APART int factor_panel(int m, int n, int start, GLOBAL T* a, GLOBAL int* pivots, LOCAL R* s) {
    int info = 0;
    for (int j = 0; j < n; j++) {
        R most = -1;
        for (int i = j + ME; i < m; i += GROUP) { R v = SIZE1(a[i * n + j]); if (v > most) most = v; }
        most = group_max(most, s);
        int chosen = m;
        for (int i = j + ME; i < m; i += GROUP) if (SIZE1(a[i * n + j]) == most) { chosen = i; break; }
        chosen = -(int)group_max(-(R)chosen, s);
        if (chosen == m) chosen = j;
        if (ME == 0) pivots[j] = start + chosen + 1;
        if (chosen != j)
            for (int c = ME; c < n; c += GROUP) {
                T kept = a[j * n + c]; a[j * n + c] = a[chosen * n + c]; a[chosen * n + c] = kept;
            }
        SYNC;
        T pivot = a[j * n + j];
        bool zero = RE(pivot) == 0 && IM(pivot) == 0;
        if (zero && !info) info = start + j + 1;
        if (!zero) for (int i = j + 1 + ME; i < m; i += GROUP) a[i * n + j] = quotient(a[i * n + j], pivot);
        SYNC;
        subtract_product(m - j - 1, n - j - 1, 1, a + (j + 1) * n + j, n, a + j * n + j + 1, n, a + (j + 1) * n + j + 1,
            n);
        SYNC;
    }
    return info;
}

APART int factor_lu(int m, int n, GLOBAL T* a, GLOBAL int* pivots, GLOBAL T* panel, LOCAL R* s) {
    int least = m < n ? m : n, info = 0;
    for (int start = 0; start < least; start += BLOCKED) {
        int size = min(BLOCKED, least - start), stop = start + size, rows = m - start;
        for (int t = ME; t < rows * size; t += GROUP) panel[t] = a[(start + t / size) * n + start + t % size];
        SYNC;
        int found = factor_panel(rows, size, start, panel, pivots + start, s);
        if (!info) info = found;
        for (int j = start; j < stop; j++) {
            int o = pivots[j] - 1;
            if (o != j) for (int c = ME; c < n; c += GROUP) {
                T kept = a[j * n + c]; a[j * n + c] = a[o * n + c]; a[o * n + c] = kept;
            }
        }
        SYNC;
        for (int t = ME; t < rows * size; t += GROUP) a[(start + t / size) * n + start + t % size] = panel[t];
        SYNC;
        if (stop == n) continue;
        for (int j = 1; j < size; j++) {
            subtract_product(1, n - stop, j, panel + j * size, size, a + start * n + stop, n,
                a + (start + j) * n + stop, n); SYNC;
        }
        subtract_product(m - stop, n - stop, size, panel + size * size, size, a + start * n + stop, n,
            a + stop * n + stop, n);
        SYNC;
    }
    return info;
}
"""

SUBSTITUTION = r"""
FUNCTION void divide_row(int n, T by, GLOBAL T* x) {
    for (int j = ME; j < n; j += GROUP) x[j] = quotient(x[j], by);
}

APART void substitute(int n, int k, GLOBAL const T* a, int lda, GLOBAL T* x, int ldx, int upper, int unit) {
    for (int done = 0; done < n; done += BLOCKED) {
        int size = done + BLOCKED < n ? BLOCKED : n - done, start = upper ? n - done - size : done,
            solved = upper ? start + size : 0;
        subtract_product(size, k, done, a + start * lda + solved, lda, x + solved * ldx, ldx, x + start * ldx, ldx);
        SYNC;
        for (int t = 0; t < size; t++) {
            int i = upper ? start + size - 1 - t : start + t, from = upper ? i + 1 : start;
            subtract_product(1, k, t, a + i * lda + from, lda, x + from * ldx, ldx, x + i * ldx, ldx);
            SYNC;
            if (!unit) divide_row(k, a[i * lda + i], x + i * ldx);
            SYNC;
        }
    }
}
"""

LU = r"""
KERNEL MATRICES void lu(OUT(T, a), OUT(int, pivots), OUT(int, info), OUT(T, work), const int m, const int n) {
    LOCAL_ARRAY(R, s, GROUP);
    int b = MATRIX, found = factor_lu(m, n, AT(a) + b * m * n, AT(pivots) + b * min(m, n),
        AT(work) + b * m * min(n, BLOCKED), s);
    if (ME == 0) AT(info)[b] = found;
}

KERNEL MATRICES void lu_solve(IN(T, a), IN(int, pivots), IN(int, info), OUT(T, x), const int n, const int k,
                              const int parts, const int wide, const int shared) {
    int id = MATRIX, b = id / parts, from = id % parts * wide, columns = min(wide, k - from), f = shared ? 0 : b;
    GLOBAL const T* lu = AT(a) + f * n * n;
    GLOBAL const int* order = AT(pivots) + f * n;
    GLOBAL T* mine = AT(x) + b * n * k + from;
    for (int j = ME; j < columns; j += GROUP)
        for (int i = 0; i < n; i++) {
            int o = order[i] - 1; if (o != i) {
                T kept = mine[i * k + j]; mine[i * k + j] = mine[o * k + j]; mine[o * k + j] = kept;
            }
        }
    SYNC;
    substitute(n, columns, lu, n, mine, k, 0, 1);
    substitute(n, columns, lu, n, mine, k, 1, 0);
    if (AT(info)[f]) for (int j = ME; j < columns; j += GROUP) for (int i = 0; i < n; i++) mine[i * k + j] = NOTHING;
}

KERNEL void identity(OUT(T, x), const int m, const int n, const int count) {
    int t = ITEM;
    if (t < count) AT(x)[t] = t / n % m == t % n ? ONE : ZERO;
}

KERNEL void determinant(IN(T, lu), IN(int, pivots), OUT(T, det), OUT(R, logarithm), const int n, const int logs,
    const int count) {
    int b = ITEM;
    if (b >= count) return;
    T value = ONE;
    R sum = 0;
    for (int i = 0; i < n; i++) {
        T d = AT(lu)[(b * n + i) * n + i];
        if (AT(pivots)[b * n + i] != i + 1) value = -value;
        if (logs) {
            R size = ABS(d);
            sum += log(size);
            d = size == 0 ? ZERO : d / size;
        }
        value = mul(value, d);
    }
    AT(det)[b] = value;
    if (logs) AT(logarithm)[b] = sum;
}
"""

TRIANGULAR = r"""
KERNEL MATRICES void triangular(IN(T, a), OUT(T, x), const int n, const int k, const int parts, const int wide,
    const int shared, const int upper, const int unit) {
    int id = MATRIX, b = id / parts, from = id % parts * wide;
    substitute(n, min(wide, k - from), AT(a) + (shared ? 0 : b) * n * n, n, AT(x) + b * n * k + from, k, upper, unit);
}
"""

CHOLESKY = r"""
KERNEL MATRICES void cholesky(OUT(T, a_), OUT(int, info), const int n) {
    int b = MATRIX, failed = 0;
    GLOBAL T* a = AT(a_) + b * n * n;
    for (int start = 0; start < n && !failed; start += BLOCKED) {
        int stop = min(start + BLOCKED, n);
        for (int j = start; j < stop; j++) {
            R pivot = RE(a[j * n + j]);
            if (!(pivot > 0)) { failed = j + 1; break; }
            pivot = sqrt(pivot);
            SYNC;
            if (ME == 0) a[j * n + j] = CPLX(pivot, (R)0);
            for (int i = j + 1 + ME; i < n; i += GROUP) {
                T v = a[i * n + j] / pivot; a[i * n + j] = v; a[j * n + i] = CONJ(v);
            }
            SYNC;
            for (int i = j + 1 + ME; i < n; i += GROUP) {
                T v = a[i * n + j];
                for (int c = j + 1; c < stop && c <= i; c++) a[i * n + c] = minus(a[i * n + c], v, a[j * n + c]);
            }
            SYNC;
        }
        for (int i = stop; i < n && !failed; i += BLOCKED) {
            int rows = min(BLOCKED, n - i);
            subtract_product(rows, i + rows - stop, stop - start, a + i * n + start, n, a + start * n + stop, n,
                a + i * n + stop, n);
        }
        SYNC;
    }
    for (int i = ME; i < n; i += GROUP) for (int j = i + 1; j < n; j++) a[i * n + j] = ZERO;
    if (ME == 0) AT(info)[b] = failed;
}

"""

QR = r"""
KERNEL MATRICES void geqrf(OUT(T, a), OUT(T, tau), OUT(T, work), const int m, const int n, const int room) {
    LOCAL_ARRAY(R, s, GROUP);
    int b = MATRIX;
    factor_qr(m, n, AT(a) + b * m * n, AT(tau) + b * min(m, n), AT(work) + b * room, s);
}

KERNEL MATRICES void make_q(IN(T, a), IN(T, tau), OUT(T, q), OUT(T, work), const int m, const int n, const int columns,
    const int room) {
    int b = MATRIX;
    multiply_out(m, n, columns, AT(a) + b * m * n, AT(tau) + b * min(m, n), AT(q) + b * m * columns,
        AT(work) + b * room);
}

KERNEL void upper_part(IN(T, a), OUT(T, r), const int m, const int n, const int rows, const int count) {
    int t = ITEM, j = t % n, i = t / n % rows, b = t / n / rows;
    if (t < count) AT(r)[t] = j >= i ? AT(a)[(b * m + i) * n + j] : ZERO;
}
"""

SYMMETRIC = r"""
#if GROUP != 1
#define LEADER if (ME == 0)
#else
#define LEADER
#endif
#define AT_(i, j) a[(i) * n + (j)]
#define TURNED(x) (hermitian ? CONJ(x) : (x))
#define DIAGONAL(i) (hermitian ? fabs(RE(AT_(i, i))) : SIZE1(AT_(i, i)))

APART int choose_pivot(int n, int k, GLOBAL const T* a, int hermitian, int* size, int* zero) {
    const R growth = (R)0.6403882032022076;
    R here = DIAGONAL(k), most = 0, others = 0;
    int row = k;
    *size = 1;
    for (int i = k + 1; i < n; i++) { R v = SIZE1(AT_(i, k)); if (v > most) { most = v; row = i; } }
    *zero = fmax(here, most) == 0;
    if (*zero || here >= growth * most) return k;
    for (int j = k; j < row; j++) others = fmax(others, SIZE1(AT_(row, j)));
    for (int i = row + 1; i < n; i++) others = fmax(others, SIZE1(AT_(i, row)));
    if (here >= growth * most * (most / others)) return k;
    *size = DIAGONAL(row) >= growth * others ? 1 : 2;
    return row;
}

APART void exchange(int n, int one, int other, int k, GLOBAL T* a, int hermitian) {
    T kept;
    for (int i = other + 1; i < n; i++) { kept = AT_(i, one); AT_(i, one) = AT_(i, other); AT_(i, other) = kept; }
    for (int i = one + 1; i < other; i++) {
        kept = AT_(i, one); AT_(i, one) = TURNED(AT_(other, i)); AT_(other, i) = TURNED(kept);
    }
    AT_(other, one) = TURNED(AT_(other, one));
    kept = AT_(one, one); AT_(one, one) = AT_(other, other); AT_(other, other) = kept;
    if (one > k) { kept = AT_(one, k); AT_(one, k) = AT_(other, k); AT_(other, k) = kept; }
}

KERNEL MATRICES void ldl(OUT(T, a_), OUT(int, pivots_), OUT(int, info_), const int n, const int hermitian) {
    LOCAL_ARRAY(int, plan, 3);
    int b = MATRIX, k = 0, info = 0;
    GLOBAL T* a = AT(a_) + b * n * n;
    GLOBAL int* pivots = AT(pivots_) + b * n;
    for (int i = ME; i < n; i += GROUP) {
        if (hermitian) AT_(i, i) = CPLX(RE(AT_(i, i)), (R)0);
        for (int j = i + 1; j < n; j++) AT_(i, j) = ZERO;
    }
    SYNC;
    while (k < n) {
        int row, size, zero;
        LEADER {
            row = choose_pivot(n, k, a, hermitian, &size, &zero);
            if (!zero && row != k + size - 1) exchange(n, k + size - 1, row, k, a, hermitian);
            if (hermitian) for (int i = k; i < k + size; i++) AT_(i, i) = CPLX(RE(AT_(i, i)), (R)0);
            pivots[k] = zero ? k + 1 : size == 1 ? row + 1 : -row - 1;
            if (size == 2) pivots[k + 1] = -row - 1;
            plan[0] = row; plan[1] = size; plan[2] = zero;
        }
        SYNC;
        if (GROUP != 1) { row = plan[0]; size = plan[1]; zero = plan[2]; }
        SYNC;
        if (zero) {
            if (!info) info = k + 1;
        } else if (size == 1) {
            T pivot = AT_(k, k);
            for (int i = k + 1 + ME; i < n; i += GROUP) {
                T factor = quotient(AT_(i, k), pivot);
                for (int j = k + 1; j <= i; j++) AT_(i, j) = minus(AT_(i, j), factor, TURNED(AT_(j, k)));
                AT_(k, i) = factor;
            }
            SYNC;
            for (int i = k + 1 + ME; i < n; i += GROUP) { AT_(i, k) = AT_(k, i); AT_(k, i) = ZERO; }
        } else {
            T low = AT_(k + 1, k), high = TURNED(low), first = AT_(k, k), last = AT_(k + 1, k + 1);
            T det = mul(first, last) - mul(low, high);
            for (int i = k + 2 + ME; i < n; i += GROUP) {
                T x = AT_(i, k), y = AT_(i, k + 1);
                T p = quotient(mul(x, last) - mul(y, low), det), q = quotient(mul(y, first) - mul(x, high), det);
                for (int j = k + 2; j <= i; j++)
                    AT_(i, j) = minus(minus(AT_(i, j), p, TURNED(AT_(j, k))), q, TURNED(AT_(j, k + 1)));
                AT_(k, i) = p;
                AT_(k + 1, i) = q;
            }
            SYNC;
            for (int i = k + 2 + ME; i < n; i += GROUP) {
                AT_(i, k) = AT_(k, i); AT_(i, k + 1) = AT_(k + 1, i);
                AT_(k, i) = ZERO; AT_(k + 1, i) = ZERO;
            }
        }
        SYNC;
        k += size;
    }
    if (ME == 0) AT(info_)[b] = info;
}

KERNEL void ldl_solve(IN(T, a_), IN(int, pivots_), OUT(T, x_), const int n, const int columns, const int hermitian,
    const int count) {
    int t = ITEM, b = t / columns;
    if (t >= count) return;
    GLOBAL const T* a = AT(a_) + b * n * n;
    GLOBAL const int* pivots = AT(pivots_) + b * n;
    GLOBAL T* x = AT(x_) + b * n * columns + t % columns;
#define X(i) x[(i) * columns]
    int k = 0;
    while (k < n) {
        int size = pivots[k] > 0 ? 1 : 2, one = k + size - 1, other = abs(pivots[k]) - 1;
        T kept = X(one); X(one) = X(other); X(other) = kept;
        for (int i = k + size; i < n; i++) for (int j = k; j < k + size; j++) X(i) = minus(X(i), AT_(i, j), X(j));
        if (size == 1) X(k) = quotient(X(k), AT_(k, k));
        else {
            T low = AT_(k + 1, k), high = TURNED(low), first = AT_(k, k), last = AT_(k + 1, k + 1), u = X(k),
                v = X(k + 1);
            T det = mul(first, last) - mul(low, high);
            X(k) = quotient(mul(last, u) - mul(high, v), det);
            X(k + 1) = quotient(mul(first, v) - mul(low, u), det);
        }
        k += size;
    }
    while (k > 0) {
        int size = pivots[k - 1] > 0 ? 1 : 2, one = k - 1, other = abs(pivots[k - 1]) - 1;
        k -= size;
        for (int j = k; j < k + size; j++) for (int i = k + size; i < n; i++)
            X(j) = minus(X(j), TURNED(AT_(i, j)), X(i));
        T kept = X(one); X(one) = X(other); X(other) = kept;
    }
}
"""

PERMUTATION = r"""
KERNEL void permutation(IN(int, pivots), OUT(long, order_), OUT(int, error), const int k, const int size,
    const int code, const int count) {
    int b = ITEM;
    if (b >= count) return;
    GLOBAL long* order = AT(order_) + b * size;
    for (int i = 0; i < size; i++) order[i] = i;
    for (int i = 0; i < k; i++) {
        int other = AT(pivots)[b * k + i] - 1;
        if (other < 0 || other >= size) {
            AT(error)[1] = other + 1; AT(error)[2] = size; AT(error)[3] = other < -1 ? -1 : 0; AT(error)[0] = code;
            return;
        }
        long kept = order[i]; order[i] = order[other]; order[other] = kept;
    }
}
"""

PERMUTATION_MATRIX = r"""
KERNEL void matrix(IN(long, order), OUT(T, p), const int n, const int count) {
    int t = ITEM, j = t % n, i = t / n % n, b = t / n / n;
    if (t >= count) return;
    int one = AT(order)[b * n + j] == i;
#if COMPLEX
    AT(p)[t] = VEC2(T, one, 0);
#else
    T_ST(AT(p), t, (T_C)one);
#endif
}
"""
