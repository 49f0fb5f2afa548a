"""Softmax and log-softmax along any dimension, forward and backward."""

from __future__ import annotations

from .row_macros import row_macros_source

# RECOMPUTE: the exponentials do not survive in the output's precision and are computed twice.
SOFTMAX = (
    row_macros_source()
    + r"""
KERNEL void softmax(IN(T, x), OUT(T, out), const int rows, const int n, const int inner, const int per) {
    SCRATCH
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, inner)
        V highest = SPLAT(-INFINITY);
        SUM(total)
        ACROSS(i, n) {
            V v = GET(x, i, -INFINITY);
            highest = LARGER(highest, v);
        }
        R top = ROW_MAX(highest);
        ACROSS(i, n) {
            V e = exp(GET(x, i, -INFINITY) - top);
            ADD_TO(total, e)
#if !RECOMPUTE
            PUT(out, i, e);
#endif
        }
        R scale = TO_R((DR)(1) / TOTAL(total));
        ACROSS(i, n) {
#if RECOMPUTE
            PUT(out, i, exp(GET(x, i, 0) - top) * scale);
#else
            PUT(out, i, GET(out, i, 0) * scale);
#endif
        }
    }
}
"""
)
LOG_SOFTMAX = (
    row_macros_source()
    + r"""
KERNEL void log_softmax(IN(T, x), OUT(T, out), const int rows, const int n, const int inner, const int per) {
    SCRATCH
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
        R rest = log(TO_R(TOTAL(total)));
        ACROSS(i, n) PUT(out, i, GET(x, i, 0) - top - rest);
    }
}
"""
)
SOFTMAX_BACKWARD = (
    row_macros_source()
    + r"""
KERNEL void softmax_backward(IN(T, grad), IN(T, y), OUT(T, out), const int rows, const int n, const int inner,
    const int per) {
    SCRATCH
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, inner)
        SUM(total)
        ACROSS(i, n) ADD_TO(total, GET(grad, i, 0) * GET(y, i, 0))
        R sum = TO_R(TOTAL(total));
        ACROSS(i, n) PUT(out, i, (GET(grad, i, 0) - sum) * GET(y, i, 0));
    }
}
"""
)
LOG_SOFTMAX_BACKWARD = (
    row_macros_source()
    + r"""
KERNEL void log_softmax_backward(IN(T, grad), IN(T, y), OUT(T, out), const int rows, const int n, const int inner,
    const int per) {
    SCRATCH
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, inner)
        SUM(total)
        ACROSS(i, n) ADD_TO(total, GET(grad, i, 0))
        R sum = TO_R(TOTAL(total));
        ACROSS(i, n) PUT(out, i, GET(grad, i, 0) - exp(GET(y, i, 0)) * sum);
    }
}
"""
)
