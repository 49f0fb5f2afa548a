"""Cross entropy with class indices, forward and backward, along any dimension of the logits.

I is the type of the targets, P that of the class weights. The bits of `flags`: 1 class weights, 2 mean; forward 4 one
worker has all rows and also reduces; backward 8 each worker sums the weights, 16 one gradient per row.
"""

from __future__ import annotations

from .gather_scatter import INDEX_TO_PLACE
from .row_macros import row_macros_source

_WORDS = (
    row_macros_source("P")
    + r"""
FUNCTION C weight_of(const long target, GLOBAL const P* weight, const int n, const int flags, const long ignore) {
    if (target == ignore || target < 0 || target >= n) return 0;
    return flags & 1 ? (C)P_LD(weight, target) : 1;
}
#if COLUMNS
#define TARGET_OF(row, inner) ((row) / PIECES(inner) * (inner) + (row) % PIECES(inner) * W)
#define EACH_LANE(k) for (int k = 0; k < SMALLER(W, left); k++)
#define OF_LANE(v, k) LANE_OF(v, k)
#define PLACE_OF(chosen, k) (start + (chosen) * step + k)
#else
#define TARGET_OF(row, inner) (row)
#define EACH_LANE(k) for (int k = 0; k < 1; k++)
#define OF_LANE(v, k) (v)
#define PLACE_OF(chosen, k) (start + (chosen))
#endif
"""
)
CROSS_ENTROPY = (
    _WORDS
    + INDEX_TO_PLACE
    + r"""
KERNEL void cross_entropy(IN(T, x), IN(I, target), IN(P, weight), OUT(C, lse), OUT(C, losses), OUT(C, weights),
    OUT(T, result), OUT(int, error), const int code, const int rows, const int n, const int inner, const int per,
    const int flags, const long ignore) {
    SCRATCH
    D loss = 0, shares = 0;
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, inner)
        V highest = SPLAT(-INFINITY);
        SUM(total)
        ACROSS(i, n) {
            V v = GET(x, i, -INFINITY);
            highest = LARGER(highest, v);
        }
        R top = ROW_MAX(highest);
        ACROSS(i, n) ADD_TO(total, exp(GET(x, i, -INFINITY) - top))
        R logs = log(TO_R(TOTAL(total))), sum = logs + top;
        if (LANE == 0) EACH_LANE(k) {
            int at = TARGET_OF(row, inner) + k;
            long chosen = (long)AT(target)[at];
            int place = chosen == ignore ? -1 : place_of(chosen, n, 0, AT(error), code);
            C share = weight_of(chosen, AT(weight), n, flags, ignore),
                own = place < 0 ? 0 : (OF_LANE(logs, k) + (OF_LANE(top, k) - T_LD(AT(x), PLACE_OF(place, k)))) * share;
            AT(lse)[at] = OF_LANE(sum, k);
            loss += own;
            shares += share;
            if (!(flags & 4)) {
                AT(losses)[at] = own;
                AT(weights)[at] = share;
            }
        }
    }
    if (LANE == 0 && flags & 4) T_ST(AT(result), 0, (C)(flags & 2 ? loss / shares : loss));
}
"""
)
CROSS_ENTROPY_TOTAL = (
    row_macros_source()
    + r"""
KERNEL void cross_entropy_total(IN(C, losses), IN(C, weights), OUT(T, result), const int n, const int flags) {
    SCRATCH
    SUM(loss)
    SUM(shares)
    ALONG(i, n) {
        ADD_TO(loss, LOAD_C(AT(losses) + i, n - i, 0))
        ADD_TO(shares, LOAD_C(AT(weights) + i, n - i, 0))
    }
    D sum = SUM_OF_LANES(loss_all + TO_D(loss)), all = SUM_OF_LANES(shares_all + TO_D(shares));
    if (LANE == 0) T_ST(AT(result), 0, (C)(flags & 2 ? sum / all : sum));
}
"""
)
CROSS_ENTROPY_WEIGHTS = (
    _WORDS
    + r"""
KERNEL void cross_entropy_weights(IN(I, target), IN(P, weight), OUT(C, total), const int targets, const int n,
    const int flags, const long ignore) {
    SCRATCH
    D sum = 0;
    for (int i = LANE; i < targets; i += LANES) sum += weight_of((long)AT(target)[i], AT(weight), n, flags, ignore);
    sum = SUM_OF_ITEMS(sum);
    if (LANE == 0) AT(total)[0] = (C)sum;
}
"""
)
CROSS_ENTROPY_BACKWARD = (
    _WORDS
    + r"""
KERNEL void cross_entropy_backward(IN(T, grad), IN(T, x), IN(I, target), IN(P, weight), IN(C, lse), IN(C, total),
    OUT(T, out), const int rows, const int n, const int inner, const int per, const int flags, const int targets,
    const long ignore) {
    C all = 1;
    if (flags & 8) {
        all = 0;
        for (int i = 0; i < targets; i++) all += weight_of((long)AT(target)[i], AT(weight), n, flags, ignore);
    } else if (flags & 2) all = AT(total)[0];
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, inner)
        R scale = (R)(0), sum = (R)(0);
        EACH_LANE(k) {
            int at = TARGET_OF(row, inner) + k;
            C share = weight_of((long)AT(target)[at], AT(weight), n, flags, ignore);
            OF_LANE(scale, k) = share == 0 ? 0 : share * (C)T_LD(AT(grad), flags & 16 ? at : 0) / all;
            OF_LANE(sum, k) = AT(lse)[at];
        }
        ACROSS(i, n) {
            V v = exp(GET(x, i, 0) - sum) * scale;
            PUT(out, i, (scale == 0 ? SPLAT(0) : v));
        }
        EACH_LANE(k) {
            long chosen = (long)AT(target)[TARGET_OF(row, inner) + k];
            if (OF_LANE(scale, k) == 0 || chosen < 0 || chosen >= n || chosen == ignore) continue;
            if (COLUMNS || chosen / W % LANES == LANE) T_ST(AT(out), PLACE_OF(chosen, k),
                (exp((C)T_LD(AT(x), PLACE_OF(chosen, k)) - OF_LANE(sum, k)) - 1) * OF_LANE(scale, k));
        }
    }
}
"""
)
