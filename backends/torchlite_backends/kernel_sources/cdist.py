"""Pairwise distances between rows."""

from __future__ import annotations

# Differences are of the compute type, sums of D: double, if the device has it.
DISTANCES = r"""
#define LEAST 1e-28f
#define MOST 1e38f
#define ACC0(d) sum += (d) != 0 ? 1 : 0
#define ACC1(d) sum += fabs(d)
#define ACC2(d) sum += (d) * (d)
#define ACC3(d) sum = sum >= fabs(d) ? sum : fabs(d)
#define ACC4(d) sum += pow(fabs(d), p)
#define WALK(step) \
    for (int k = 0; k < n; k++) { D_C d = T_LD(x, k) - T_LD(y, k); step(d); }

KERNEL void distances(IN(T, x_), IN(T, y_), OUT(T, out), const int rows, const int columns, const int n, const int mode,
    const float order, const int count) {
    int t = ITEM, j = t % columns, i = t / columns % rows, b = t / columns / rows;
    if (t >= count) return;
    GLOBAL const T* x = AT(x_) + (b * rows + i) * n;
    GLOBAL const T* y = AT(y_) + (b * columns + j) * n;
    D_C sum = 0, p = order;
    if (mode == 0) { WALK(ACC0) }
    if (mode == 1) { WALK(ACC1) }
    if (mode == 2) {
        int k = 0;
        T_C squares = 0;
#ifdef T_LD16
        T_C parts[16];
        while (k + 16 <= n) {
            T_C16 all = 0;
            for (int end = min(n, k + 1024); k + 16 <= end; k += 16) {
                T_C16 d = T_LD16(x, k) - T_LD16(y, k);
                all += d * d;
            }
            vstore16(all, 0, parts);
            for (int w = 0; w < 16; w++) squares += parts[w];
        }
#endif
        for (; k < n; k++) { T_C d = T_LD(x, k) - T_LD(y, k); squares += d * d; }
        if (squares > LEAST && squares < MOST) {
            T_ST(AT(out), t, sqrt(squares));
            return;
        }
        WALK(ACC2)  // squares left the range
        sum = sqrt(sum);
    }
    if (mode == 3) { WALK(ACC3) }
    if (mode == 4) { WALK(ACC4) sum = pow(sum, 1 / p); }
    T_ST(AT(out), t, (T_C)sum);
}
"""
