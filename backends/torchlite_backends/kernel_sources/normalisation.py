"""Layer, RMS and batch normalisation, forward and backward, and a scale and shift per channel.

P is the type of weights, biases and their gradients. The bits of `flags`: 1 weight, 2 bias, 4 centred (layer norm; RMS
norm does not subtract the mean); backward 1 weight, 4 centred, 8, 16 and 32 for the gradients of input, weight and
bias.
"""

from __future__ import annotations

from .row_macros import row_macros_source

# A row whose variance may overflow is divided by 2^96 (float64: 2^768), and the term for eps becomes one that is lost
# beside such a variance.
_HUGE = r"""
#define UNIT ldexp((C)1, sizeof(C) == 4 ? -96 : -768)
#define NO_EPS ldexp((C)1, sizeof(C) == 4 ? -120 : -1000)
#define LEAST_RSTD ldexp((C)1, sizeof(C) == 4 ? -60 : -500)
"""
LAYER_NORM = (
    row_macros_source("P")
    + _HUGE
    + r"""
KERNEL void layer_norm(IN(T, x), IN(P, weight), IN(P, bias), OUT(T, out), OUT(C, mean), OUT(C, rstd), const int rows,
    const int n, const int per, const int flags, const C eps) {
    SCRATCH
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, 1)
        C centre = 0, inverse = 0, unit = 1;
        for (int huge = 0; huge < 2 && !(inverse > LEAST_RSTD); huge++) {
            if (huge) unit = UNIT;
            SUM(total)
            SUM(squares)
            if (flags & 4) {
                ACROSS(i, n) ADD_TO(total, GET(x, i, 0) * unit)
                centre = (C)(TOTAL(total) / n);
            }
            ACROSS(i, n) {
                V d = GET(x, i, centre / unit) * unit - centre;
                ADD_TO(squares, d * d)
            }
            inverse = 1 / sqrt((C)(TOTAL(squares) / n) + (huge ? NO_EPS : eps));
        }
        if (LANE == 0) {
            if (flags & 4) AT(mean)[row] = centre / unit;
            AT(rstd)[row] = inverse * unit;
        }
        ACROSS(i, n) {
            V v = (GET(x, i, 0) * unit - centre) * inverse;
            if (flags & 1) v *= LOAD_P(AT(weight) + i, n - i, 0);
            if (flags & 2) v += LOAD_P(AT(bias) + i, n - i, 0);
            PUT(out, i, v);
        }
    }
}
"""
)
# Each worker sums the gradients of weight and bias over its rows into a row of partial sums; COLUMN_SUMS adds these.
LAYER_NORM_BACKWARD = (
    row_macros_source("P")
    + _HUGE
    + r"""
KERNEL void layer_norm_backward(IN(T, grad), IN(T, x), IN(P, weight), IN(C, mean), IN(C, rstd), OUT(T, out),
    OUT(C, weight_sums), OUT(C, bias_sums), const int rows, const int n, const int per, const int flags) {
    SCRATCH
    if (WORKER * per >= rows) return;
    GLOBAL C* of_weight = AT(weight_sums) + WORKER * n;
    GLOBAL C* of_bias = AT(bias_sums) + WORKER * n;
    if (flags & 16) ALONG(i, n) STORE_C(of_weight + i, n - i, SPLAT(0));
    if (flags & 32) ALONG(i, n) STORE_C(of_bias + i, n - i, SPLAT(0));
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, 1)
        C inverse = AT(rstd)[row], average = 0, slope = 0;
        // Differences of huge elements from their mean may overflow, and so are divided first.
        const C unit = inverse < UNIT ? (C)0.25 : (C)1, scale = inverse / unit;
        const C centre = flags & 4 ? AT(mean)[row] * unit : 0;
        if (flags & 8) {
            SUM(total)
            SUM(products)
            ACROSS(i, n) {
                V g = GET(grad, i, 0);
                if (flags & 1) g *= LOAD_P(AT(weight) + i, n - i, 0);
                ADD_TO(total, g)
                ADD_TO(products, g * ((GET(x, i, 0) * unit - centre) * scale))
            }
            if (flags & 4) average = (C)(TOTAL(total) / n);
            slope = (C)(TOTAL(products) / n);
        }
        ACROSS(i, n) {
            V g = GET(grad, i, 0), d = (GET(x, i, 0) * unit - centre) * scale;
            if (flags & 16) STORE_C(of_weight + i, n - i, LOAD_C(of_weight + i, n - i, 0) + g * d);
            if (flags & 32) STORE_C(of_bias + i, n - i, LOAD_C(of_bias + i, n - i, 0) + g);
            if (flags & 8) {
                if (flags & 1) g *= LOAD_P(AT(weight) + i, n - i, 0);
                PUT(out, i, (g - average - d * slope) * inverse);
            }
        }
    }
}
"""
)
COLUMN_SUMS = (
    row_macros_source("P")
    + r"""
KERNEL void column_sums(IN(C, first), IN(C, second), OUT(P, first_out), OUT(P, second_out), const int chunks,
    const int n, const int flags) {
    int pieces = (n + W - 1) / W, i = ITEM % pieces * W, of_second = ITEM >= pieces;
    if (ITEM >= 2 * pieces || !(flags & (of_second ? 32 : 16))) return;
    GLOBAL const C* sums = (of_second ? AT(second) : AT(first)) + i;
    SUM(total)
    for (int k = 0; k < chunks; k++) ADD_TO(total, LOAD_C(sums + k * n, n - i, 0))
    STORE_P((of_second ? AT(second_out) : AT(first_out)) + i, n - i, TO_V(total_all + TO_D(total)));
}
"""
)
# The elements of a channel in an array (samples, channels, length). COLUMNS: length is 1, and a worker takes W
# channels.
_CHANNELS = (
    row_macros_source("P")
    + _HUGE
    + r"""
#if COLUMNS
#define CHANNEL_OF(row) const int first = (row) * W, left = channels - first;
#define EACH_CELL for (int s = 0; s < samples; s++)
#define PLACE (s * channels + first)
#define LEFT left
#define FILL(v) 0
#define OF_CHANNEL(name, p) LOAD_##name(AT(p) + first, left, 0)
#define SET_CHANNEL(name, p, v) STORE_##name(AT(p) + first, left, v)
#else
#define CHANNEL_OF(row) const int first = row;
#if LANES > 1
#define EACH_CELL for (int k = LANE; k < samples * length; k += LANES)
#define PLACE (k / length * channels * length + first * length + k % length)
#define LEFT W
#else
#define EACH_CELL for (int s = 0; s < samples; s++) ALONG(i, length)
#define PLACE ((s * channels + first) * length + i)
#define LEFT (length - i)
#endif
#define FILL(v) (v)
#define OF_CHANNEL(name, p) name##_LD(AT(p), first)
#define SET_CHANNEL(name, p, v) do { if (LANE == 0) name##_ST(AT(p), first, v); } while (0)
#endif
#define CELL(x, fill) LOAD_T(AT(x) + PLACE, LEFT, FILL(fill))
#define SET_CELL(x, v) STORE_T(AT(x) + PLACE, LEFT, v)
#if COLUMNS && W > 1
FUNCTION int all_usual(V rstd) {
    int found = 1;
    for (int k = 0; k < W; k++) found &= LANE_OF(rstd, k) > LEAST_RSTD;
    return found;
}
#else
#define all_usual(rstd) ((rstd) > LEAST_RSTD)
#endif
// The mean, and the reciprocal of the deviation, of the elements of a channel times `unit`.
#define STATISTICS(x, count, unit, eps) { \
    SUM(total) \
    SUM(squares) \
    EACH_CELL ADD_TO(total, CELL(x, 0) * unit) \
    centre = TO_R(TOTAL(total) / (DR)(count)); \
    EACH_CELL { \
        V d = CELL(x, centre / unit) * unit - centre; \
        ADD_TO(squares, d * d) \
    } \
    spread = TO_R(TOTAL(squares) / (DR)(count)); \
    inverse = 1 / sqrt(spread + eps); \
}
"""
)
BATCH_NORM = (
    _CHANNELS
    + r"""
KERNEL void batch_norm(IN(T, x), IN(P, weight), IN(P, bias), OUT(T, out), OUT(T, mean), OUT(T, var), const int rows,
    const int samples, const int channels, const int length, const int per, const int flags, const C eps) {
    SCRATCH
    EACH_ROW(row, rows, per) {
        CHANNEL_OF(row)
        D count = (D)samples * length;
        R centre, spread, inverse, unit = (R)(1), shift = (R)(0);
        STATISTICS(x, count, unit, eps)
        if (!all_usual(inverse)) {
            R least = (R)(eps);
            unit = SELECT(inverse > (R)(LEAST_RSTD), (R)(1), (R)(UNIT));
            least = SELECT(inverse > (R)(LEAST_RSTD), least, (R)(NO_EPS));
            STATISTICS(x, count, unit, least)
        }
        SET_CHANNEL(T, mean, centre / unit);
        SET_CHANNEL(T, var, spread / unit / unit);
        if (flags & 1) inverse *= OF_CHANNEL(P, weight);
        if (flags & 2) shift = OF_CHANNEL(P, bias);
        EACH_CELL SET_CELL(out, (CELL(x, 0) * unit - centre) * inverse + shift);
    }
}
"""
)
BATCH_NORM_BACKWARD = (
    _CHANNELS
    + r"""
KERNEL void batch_norm_backward(IN(T, grad), IN(T, x), IN(P, weight), IN(T, mean), IN(T, var), OUT(T, out),
    OUT(P, of_weight), OUT(P, of_bias), const int rows, const int samples, const int channels, const int length,
    const int per, const int flags, const C eps) {
    SCRATCH
    EACH_ROW(row, rows, per) {
        CHANNEL_OF(row)
        C count = (C)samples * length;
        R centre = OF_CHANNEL(T, mean), inverse = 1 / sqrt(OF_CHANNEL(T, var) + eps), unit = (R)(1);
        if (!all_usual(inverse)) {
            R spread, least = SELECT(inverse > (R)(LEAST_RSTD), (R)(eps), (R)(NO_EPS));
            unit = SELECT(inverse > (R)(LEAST_RSTD), (R)(1), (R)(UNIT));
#ifdef NARROW_RANGE
            unit = (R)(1);  // float16 does not hold the variance, and C does
            least = (R)(eps);
#endif
            STATISTICS(x, (D)samples * length, unit, least)
        }
        SUM(total)
        SUM(products)
        EACH_CELL {
            V g = CELL(grad, 0);
            ADD_TO(total, g)
            ADD_TO(products, g * (CELL(x, centre / unit) * unit - centre))
        }
        R sum = TO_R(TOTAL(total)), product = TO_R(TOTAL(products)) * inverse;
        if (flags & 16) SET_CHANNEL(P, of_weight, product);
        if (flags & 32) SET_CHANNEL(P, of_bias, sum);
        if (flags & 8) {
            R average = sum / count, slope = product * inverse / count;
            inverse *= unit;
            if (flags & 1) inverse *= OF_CHANNEL(P, weight);
            EACH_CELL SET_CELL(out, (CELL(grad, 0) - average - (CELL(x, 0) * unit - centre) * slope) * inverse);
        }
    }
}
"""
)
CHANNEL_AFFINE = (
    _CHANNELS
    + r"""
KERNEL void channel_affine(IN(T, x), IN(P, scale), IN(P, shift), OUT(T, out), const int rows, const int samples,
    const int channels, const int length, const int per) {
    EACH_ROW(row, rows, per) {
        CHANNEL_OF(row)
        R slope = OF_CHANNEL(P, scale), rise = OF_CHANNEL(P, shift);
        EACH_CELL SET_CELL(out, CELL(x, 0) * slope + rise);
    }
}
"""
)
