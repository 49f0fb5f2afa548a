"""Eigenvalues: implicit QL on the tridiagonal form of Hermitian matrices, shifted QR on the Hessenberg form of others.

General matrices are computed in complex arithmetic. See Golub and Van Loan, "Matrix Computations", chapters 7 and 8.
"""

from __future__ import annotations

from . import factorisations as texts

# The rotations of a QL sweep are recorded first, then each work-item applies all of them to its columns. Vectors are
# rows.
HERMITIAN = (
    texts.ELEMENTS
    + texts.GROUPS
    + texts.STEPS
    + texts.REFLECTORS
    + r"""
#define A(i, j) a[(i) * n + (j)]

#if GROUP == 1
#define TURN_COLUMNS(V, width, load, store) \
    for (; k + width <= count; k += width) { \
        V carried = load(w + high * count + k); \
        for (int i = high - 1; i >= low; i--) { \
            V x = load(w + i * count + k); \
            R c = cs[i], s = sn[i]; \
            store(w + (i + 1) * count + k, s * x + c * carried); \
            carried = c * x - s * carried; \
        } \
        store(w + low * count + k, carried); \
    }
#define R_LOAD(p) VLOAD(0, p)
#define R_STORE(p, v) VSTORE(v, 0, p)
APART void turn_rows(int count, int low, int high, GLOBAL const R* cs, GLOBAL const R* sn, GLOBAL R* w) {
    int k = 0;
    TURN_COLUMNS(V, VECTOR, R_LOAD, R_STORE)
    TURN_COLUMNS(R, 1, ITSELF, KEEP)
}
#else
APART void turn_rows(int count, int low, int high, GLOBAL const R* cs, GLOBAL const R* sn, GLOBAL R* w) {
    for (int k = ME; k < count; k += GROUP) {
        R carried = w[high * count + k];
        for (int i = high - 1; i >= low; i--) {
            R x = w[i * count + k];
            w[(i + 1) * count + k] = sn[i] * x + cs[i] * carried;
            carried = cs[i] * x - sn[i] * carried;
        }
        w[low * count + k] = carried;
    }
}
#endif

APART int sweep(int l, int m, GLOBAL R* d, GLOBAL R* e, GLOBAL R* cs, GLOBAL R* sn) {
    R g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(g, (R)1), s = 1, c = 1, p = 0;
    g = d[m] - d[l] + e[l] / (g + copysign(r, g));
    for (int i = m - 1; i >= l; i--) {
        R f = s * e[i], b = c * e[i];
        r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) { d[i + 1] -= p; e[m] = 0; return i + 1; }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        cs[i] = c;
        sn[i] = s;
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
    return l;
}

APART void tridiagonal(int n, GLOBAL T* a, GLOBAL R* d, GLOBAL R* e, GLOBAL T* tau, GLOBAL T* pair, GLOBAL T* rows,
    LOCAL R* s) {
    for (int j = 0; j + 1 < n; j++) {
        int m = n - 1 - j;
        GLOBAL T* v = &A(j, j + 1);
        GLOBAL T* rest = &A(j + 1, j + 1);
        for (int i = ME; i < m; i += GROUP) v[i] = A(j + 1 + i, j);
        SYNC;
        T t = reflector(m, v, 1, s);
        if (ME == 0) { tau[j] = t; d[j] = RE(A(j, j)); e[j] = RE(v[0]); v[0] = ONE; }
        SYNC;
        combine_rows(m, m, v, 1, rest, n, rows);
        SYNC;
        R along = 0;
        for (int i = ME; i < m; i += GROUP) {
            T x = mul(t, CONJ(rows[i]));
            along += RE(mul(CONJ(x), v[i])) * RE(t) - IM(mul(CONJ(x), v[i])) * IM(t);
            pair[2 * i + 1] = x;
        }
        T shift = CPLX((R)-0.5 * group_sum(along, s), (R)0);
        for (int i = ME; i < m; i += GROUP) {
            T x = plus(pair[2 * i + 1], shift, v[i]);
            pair[2 * i] = v[i];
            pair[2 * i + 1] = x;
            rows[i] = CONJ(x);
            rows[n + i] = CONJ(v[i]);
        }
        SYNC;
        subtract_product(m, m, 2, pair, 2, rows, n, rest, n);
        SYNC;
    }
    if (ME == 0) { d[n - 1] = RE(A(n - 1, n - 1)); e[n - 1] = 0; }
    SYNC;
}

KERNEL MATRICES void eigh(OUT(T, a_), OUT(T, q_), OUT(T, t_), OUT(R, r_), OUT(R, values), OUT(T, vectors),
                          const int n, const int upper, const int wanted) {
    LOCAL_ARRAY(R, s, GROUP);
    LOCAL_ARRAY(int, plan, 3);
    int b = MATRIX;
    GLOBAL T* a = AT(a_) + b * n * n;
    GLOBAL T* q = AT(q_) + (wanted ? b * n * n : 0);
    GLOBAL T* tau = AT(t_) + b * 5 * n;
    GLOBAL R* d = AT(r_) + b * 4 * n;
    GLOBAL R* e = d + n;
    GLOBAL R* cs = e + n;
    GLOBAL R* sn = cs + n;
    for (int i = ME; i < n; i += GROUP) {
        A(i, i) = CPLX(RE(A(i, i)), (R)0);
        for (int j = 0; j < i; j++) { if (upper) A(i, j) = CONJ(A(j, i)); else A(j, i) = CONJ(A(i, j)); }
    }
    SYNC;
    R most = largest(n * n, a, s);
    if (!isfinite(most)) {
        for (int i = ME; i < n; i += GROUP) {
            AT(values)[b * n + i] = NAN;
            if (wanted) for (int j = 0; j < n; j++) AT(vectors)[(b * n + i) * n + j] = NOTHING;
        }
        return;
    }
    if (most == 0) most = 1;
    for (int t = ME; t < n * n; t += GROUP) a[t] = a[t] / most;
    SYNC;
    tridiagonal(n, a, d, e, tau, tau + n, tau + 3 * n, s);
    if (wanted) {
        for (int t = ME; t < n * n; t += GROUP) q[t] = t / n == t % n ? ONE : ZERO;
        SYNC;
        for (int j = n - 2; j >= 0; j--)
            reflect(n - 1 - j, n - 1 - j, tau[j], &A(j, j + 1), 1, q + (j + 1) * n + j + 1, n, tau + 3 * n);
        for (int t = ME; t < n * n; t += GROUP) a[t] = q[t % n * n + t / n];
        SYNC;
    }
    int tries = 0;
    for (int l = 0; l < n;) {
        if (ME == 0) {
            int m = l, low = l;
            while (m + 1 < n && fabs(e[m]) > EPSILON * (fabs(d[m]) + fabs(d[m + 1])) && fabs(e[m]) > TINY) m++;
            if (m > l) low = sweep(l, m, d, e, cs, sn);
            plan[0] = m; plan[1] = low;
        }
        SYNC;
        int m = plan[0], low = plan[1];
        if (m == l || ++tries > 60 * n) l++;
        else if (wanted) turn_rows(n * PARTS, low, m, cs, sn, (GLOBAL R*)a);
        SYNC;
    }
    for (int i = ME; i < n; i += GROUP) {
        R value = d[i];
        int place = 0;
        for (int j = 0; j < n; j++) place += d[j] < value || (d[j] == value && j < i);
        AT(values)[b * n + place] = value * most;
        if (wanted) for (int k = 0; k < n; k++) AT(vectors)[(b * n + k) * n + place] = A(i, k);
    }
}
"""
)

# The rotations of a QR step on the rows low..high are noted, then applied from the right, by rows.
GENERAL = (
    texts.ELEMENTS
    + texts.GROUPS
    + texts.STEPS
    + texts.REFLECTORS
    + r"""
#define H(i, j) h[(i) * n + (j)]
#define Z(i, j) z[(i) * n + (j)]

APART void hessenberg(int n, GLOBAL T* h, GLOBAL T* z, GLOBAL T* w, GLOBAL T* v, int wanted, LOCAL R* s) {
    for (int t = ME; t < n * n; t += GROUP) z[t] = t / n == t % n ? ONE : ZERO;
    SYNC;
    for (int j = 0; j + 2 < n; j++) {
        int m = n - 1 - j;
        for (int i = ME; i < m; i += GROUP) v[i] = H(j + 1 + i, j);
        SYNC;
        T tau = reflector(m, v, 1, s), beta = v[0];
        SYNC;
        if (ME == 0) v[0] = ONE;
        for (int i = ME; i < m; i += GROUP) H(j + 1 + i, j) = i ? ZERO : beta;
        SYNC;
        reflect(m, n - j - 1, CONJ(tau), v, 1, h + (j + 1) * n + j + 1, n, w);
        for (int part = 0; part <= wanted; part++) {
            GLOBAL T* x = part ? z : h;
            for (int i = ME; i < n; i += GROUP) {
                T along = ZERO;
                for (int k = 0; k < m; k++) along = plus(along, x[i * n + j + 1 + k], v[k]);
                along = mul(along, tau);
                for (int k = 0; k < m; k++) x[i * n + j + 1 + k] = minus(x[i * n + j + 1 + k], along, CONJ(v[k]));
            }
        }
        SYNC;
    }
}

FUNCTION T shift_of(T a, T b, T c, T d) {
    T half_ = (a - d) / 2, product = mul(b, c);
    T square = mul(half_, half_) + product;
    R size = ABS(square);
    T root = CPLX(sqrt((size + fabs(square.x)) / 2), (R)0);
    if (root.x != 0) root.y = square.y / (2 * root.x);
    if (square.x < 0) root = CPLX(fabs(root.y), copysign(root.x, square.y));
    T down = half_.x * root.x + half_.y * root.y < 0 ? half_ - root : half_ + root;
    return SIZE1(down) == 0 ? d : d - quotient(product, down);
}

FUNCTION int deflated(int n, int high, R most, GLOBAL T* h) {
    int low = high;
    while (low > 0) {
        R around = SIZE1(H(low, low)) + SIZE1(H(low - 1, low - 1));
        if (around == 0) around = most;
        if (SIZE1(H(low, low - 1)) <= EPSILON * around || SIZE1(H(low, low - 1)) <= TINY) {
            H(low, low - 1) = ZERO; break;
        }
        low--;
    }
    return low;
}

APART void turn_pair(int from, int to, R c, T s, GLOBAL T* one, GLOBAL T* other) {
    for (int j = from + ME; j < to; j += GROUP) {
        T x = one[j], y = other[j];
        one[j] = c * x + mul(s, y);
        other[j] = c * y - mul(CONJ(s), x);
    }
}

APART void shifted_step(int n, int low, int high, int wanted, T shift, GLOBAL T* h, GLOBAL T* z, GLOBAL T* turns) {
    int first = wanted ? 0 : low, last = wanted ? n : high + 1;
    SYNC;
    for (int i = low + ME; i <= high; i += GROUP) H(i, i) -= shift;
    SYNC;
    for (int k = low; k < high; k++) {
        T x = H(k, k), y = H(k + 1, k);
        R unit = fmax(SIZE1(x), SIZE1(y));
        T p = unit > 0 ? x / unit : ONE, q = unit > 0 ? y / unit : ZERO;
        R length = sqrt(ABS2(p) + ABS2(q)), size = sqrt(ABS2(p)), c = size / length;
        T phase = size > 0 ? p / size : ONE, s = mul(phase, CONJ(q)) / length;
        SYNC;
        turn_pair(k, last, c, s, h + k * n, h + (k + 1) * n);
        if (ME == 0) { turns[2 * k] = CPLX(c, (R)0); turns[2 * k + 1] = s; }
        SYNC;
    }
    for (int part = 0; part <= wanted; part++) {
        GLOBAL T* x = part ? z : h;
        int until = part ? n : high + 1;
        for (int i = (part ? 0 : first) + ME; i < until; i += GROUP) {
            GLOBAL T* r = x + i * n;
            int k = part || i <= low ? low : i - 1;
            T held = r[k];
            for (; k < high; k++) {
                R c = turns[2 * k].x;
                T s = turns[2 * k + 1], y = r[k + 1];
                r[k] = c * held + mul(CONJ(s), y);
                held = c * y - mul(s, held);
            }
            r[high] = held;
        }
    }
    SYNC;
    for (int i = low + ME; i <= high; i += GROUP) H(i, i) += shift;
    SYNC;
}

APART void triangular_vectors(int n, R most, GLOBAL T* h, GLOBAL T* x) {
    for (int k = ME; k < n; k += GROUP) {
        T value = H(k, k);
        GLOBAL T* mine = x + k * n;
        for (int i = 0; i < n; i++) mine[i] = i == k ? ONE : i < k ? -H(i, k) : ZERO;
        for (int i = k - 1; i >= 0; i--) {
            T gap = H(i, i) - value;
            R least = fmax(EPSILON * most, TINY / EPSILON);
            if (SIZE1(gap) < least) gap = CPLX(least, (R)0);
            T solved = mine[i];
            for (int j = i + 1; j < k; j++) solved = minus(solved, H(i, j), mine[j]);
            solved = quotient(solved, gap);
            mine[i] = solved;
            R size = SIZE1(solved);
            if (size > (R)1e15) for (int j = 0; j <= k; j++) mine[j] = mine[j] / size;
        }
    }
    SYNC;
}

KERNEL MATRICES void eig(OUT(T, h_), OUT(T, z_), OUT(T, w_), OUT(int, info), OUT(T, values), OUT(T, vectors),
    const int n, const int wanted) {
    LOCAL_ARRAY(R, s, GROUP);
    int b = MATRIX, tries = 0, high = n - 1;
    GLOBAL T* h = AT(h_) + b * n * n;
    GLOBAL T* z = AT(z_) + b * n * n;
    GLOBAL T* w = AT(w_) + b * 3 * n;
    R most = largest(n * n, h, s);
    if (ME == 0) AT(info)[b] = isfinite(most) ? 0 : 1;
    if (!isfinite(most)) return;
    if (most == 0) most = 1;
    for (int t = ME; t < n * n; t += GROUP) h[t] = h[t] / most;
    SYNC;
    hessenberg(n, h, z, w, w + n, wanted, s);
    while (high >= 0) {
        if (ME == 0) w[0] = CPLX((R)deflated(n, high, 1, h), (R)0);
        SYNC;
        int low = (int)w[0].x;
        SYNC;
        if (low == high || tries > 60) { high--; tries = 0; continue; }
        T shift = shift_of(H(high - 1, high - 1), H(high - 1, high), H(high, high - 1), H(high, high));
        if (++tries % 10 == 0)
            shift = CPLX(ABS(H(high, high - 1)) + (high > 1 ? ABS(H(high - 1, high - 2)) : (R)0), (R)0);
        shifted_step(n, low, high, wanted, shift, h, z, w + n);
    }
    for (int i = ME; i < n; i += GROUP) AT(values)[b * n + i] = H(i, i) * most;
    if (!wanted) return;
    GLOBAL T* out = AT(vectors) + b * n * n;
    triangular_vectors(n, 1, h, out);
    for (int t = ME; t < n * n; t += GROUP) if (t / n < t % n) {
        T kept = out[t]; int o = t % n * n + t / n; out[t] = out[o]; out[o] = kept;
    }
    SYNC;
    for (int t = ME; t < n * n; t += GROUP) h[t] = ZERO;
    SYNC;
    subtract_product(n, n, n, z, n, out, n, h, n);
    SYNC;
    for (int j = ME; j < n; j += GROUP) {
        R top = 0, sum = 0;
        int at = 0;
        for (int i = 0; i < n; i++) top = fmax(top, SIZE1(H(i, j)));
        for (int i = 0; i < n; i++) { T x = H(i, j) / top; sum += ABS2(x); if (ABS2(x) > ABS2(H(at, j) / top)) at = i; }
        T turn = CONJ(H(at, j)) / ABS(H(at, j)) / (top * sqrt(sum));
        for (int i = 0; i < n; i++)
            out[i * n + j] = i == at ? CPLX(ABS(H(i, j)) / (top * sqrt(sum)), (R)0) : mul(H(i, j), turn);
    }
}
"""
)
