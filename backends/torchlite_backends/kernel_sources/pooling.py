"""Pooling over windows of up to three dimensions, im2col and col2im, and resampling.

Arrays are (planes, depth, height, width), row-major. A work-item computes `take` adjacent outputs. Sums have the type
ACC. Gradients are gathered: each input position sums over the windows that contain it.
"""

from __future__ import annotations

from .gather_scatter import COPY_RUN

WINDOW = r"""
typedef struct { int size[3]; int out[3]; int extent[3]; int stride[3]; int padding[3]; int dilation[3]; } Window;
#define VOLUME(n) ((n)[0] * (n)[1] * (n)[2])
#define SPLIT(i, n, plane, c0, c1, c2) \
    int row = (i) / (n)[2], c2 = (i) - row * (n)[2], slab = row / (n)[1], c1 = row - slab * (n)[1], \
        plane = slab / (n)[0], c0 = slab - plane * (n)[0];
"""

# Start of the window of output `o`, and how many of its elements, `step` apart, are inside the input.
REGULAR = (
    WINDOW
    + r"""
#define STEP(w, d) ((w).dilation[d])
FUNCTION int taps(const Window w, const int d, const int o, int* begin) {
    int at = o * w.stride[d] - w.padding[d], step = w.dilation[d];
    int first = at < 0 ? (step - 1 - at) / step : 0, last = min(w.extent[d], (w.size[d] - at + step - 1) / step);
    *begin = at + first * step;
    return last - first;
}
"""
)
ADAPTIVE = (
    WINDOW
    + r"""
#define STEP(w, d) 1
FUNCTION int taps(const Window w, const int d, const int o, int* begin) {
    *begin = (int)((long)o * w.size[d] / w.out[d]);
    return (int)(((long)(o + 1) * w.size[d] + w.out[d] - 1) / w.out[d]) - *begin;
}
"""
)

# The largest element of each window, or the last NaN; with INDICES its flat position in the plane. WIDE is the stride
# along the width (1 or 2) at which sixteen interior windows are vectorised.
MAXIMUM = r"""
#if WIDE == 1
#define LANES(p) T_LD16(p, 0)
#elif WIDE == 2
#define LANES(p) VEC2(T_C16, T_LD16(p, 0).even, T_LD16(p, 16).even)
#endif
KERNEL void maximum(IN(T, x), OUT(T, values), OUT(I, indices), const int n, const int take, const Window w) {
    int i = ITEM * take, end = min(i + take, n), W = w.size[2];
    while (i < end) {
        SPLIT(i, w.out, plane, o0, o1, o2)
        int run = min(w.out[2] - o2, end - i), b0, b1, b2, t0 = taps(w, 0, o0, &b0), t1 = taps(w, 1, o1, &b1);
        GLOBAL const T* a = AT(x) + plane * VOLUME(w.size);
        for (int k = 0; k < run; k++) {
#ifdef LANES
            int at = (o2 + k) * WIDE - w.padding[2];
            if (k + 16 <= run && at >= 0 && at + (w.extent[2] - 1) * STEP(w, 2) + 16 * WIDE <= W) {
                T_C16 best = LANES(a + (b0 * w.size[1] + b1) * W + at);
#ifdef INDICES
                int16 lanes = VEC16(int16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) * WIDE + at,
                    found = lanes + (b0 * w.size[1] + b1) * W;
#endif
                for (int k0 = 0; k0 < t0; k0++) for (int k1 = 0; k1 < t1; k1++) {
                    GLOBAL const T* line = a + ((b0 + k0 * STEP(w, 0)) * w.size[1] + b1 + k1 * STEP(w, 1)) * W + at;
                    for (int k2 = 0; k2 < w.extent[2]; k2++) {
                        T_C16 v = LANES(line + k2 * STEP(w, 2));
#ifdef INDICES
                        found = v > best || v != v ? lanes + (int)(line - a - at + k2 * STEP(w, 2)) : found;
#endif
                        best = v > best || v != v ? v : best;
                    }
                }
                T_ST16(AT(values), i + k, best);
#ifdef INDICES
                vstore16(convert_I16(found), 0, AT(indices) + i + k);
#endif
                k += 15;
                continue;
            }
#endif
            int t2 = taps(w, 2, o2 + k, &b2), found = (b0 * w.size[1] + b1) * W + b2;
            T_C best = T_LD(a, found);
            for (int k0 = 0; k0 < t0; k0++) for (int k1 = 0; k1 < t1; k1++) {
                int line = ((b0 + k0 * STEP(w, 0)) * w.size[1] + b1 + k1 * STEP(w, 1)) * W + b2;
                for (int k2 = 0; k2 < t2; k2++) {
                    T_C v = T_LD(a, line + k2 * STEP(w, 2));
                    if (v > best || v != v) { best = v; found = line + k2 * STEP(w, 2); }
                }
            }
            T_ST(AT(values), i + k, best);
#ifdef INDICES
            AT(indices)[i + k] = found;
#endif
        }
        i += run;
    }
}
"""

# Gradient from the positions of the maxima. A work-item has full planes.
MAXIMUM_BACKWARD = r"""
KERNEL void maximum_backward(IN(T, g), IN(int, indices), OUT(T, out), const int planes, const int take,
    const int volume, const int windows) {
    for (int plane = ITEM * take; plane < min(ITEM * take + take, planes); plane++) {
        GLOBAL const int* found = AT(indices) + plane * windows;
        GLOBAL const T* from = AT(g) + plane * windows;
        GLOBAL T* to = AT(out) + plane * volume;
        int i = 0;
        for (; i + 16 <= volume; i += 16) T_ST16(to, i, (T_C16)(0));
        for (; i < volume; i++) T_ST(to, i, (T_C)0);
        for (int o = 0; o < windows; o++) T_ST(to, found[o], T_LD(to, found[o]) + T_LD(from, o));
    }
}
"""

# The same with a work-item for each input position.
MAXIMUM_BACKWARD_GATHER = r"""
KERNEL void maximum_gathered(IN(T, g), IN(int, indices), OUT(T, out), const int n, const int take, const Window w) {
    for (int i = ITEM * take; i < min(ITEM * take + take, n); i++) {
        SPLIT(i, w.size, plane, c0, c1, c2)
        int first[3], last[3], c[3] = {c0, c1, c2};
        for (int d = 0; d < 3; d++) {
            int at = c[d] + w.padding[d], reach = (w.extent[d] - 1) * w.dilation[d];
            first[d] = at <= reach ? 0 : (at - reach + w.stride[d] - 1) / w.stride[d];
            last[d] = min(w.out[d] - 1, at / w.stride[d]);
        }
        int mine = (c0 * w.size[1] + c1) * w.size[2] + c2, base = plane * VOLUME(w.out);
        T_C sum = (T_C)0;
        for (int o0 = first[0]; o0 <= last[0]; o0++) for (int o1 = first[1]; o1 <= last[1]; o1++)
            for (int o2 = first[2]; o2 <= last[2]; o2++) {
            int o = base + (o0 * w.out[1] + o1) * w.out[2] + o2;
            if (AT(indices)[o] == mine) sum += T_LD(AT(g), o);
        }
        T_ST(AT(out), i, sum);
    }
}
"""

# Divisor of a window's sum.
AVERAGE = (
    REGULAR
    + r"""
FUNCTION int width_of(const Window w, const int d, const int o, const int padded) {
    int at = o * w.stride[d] - w.padding[d], end = min(at + w.extent[d], w.size[d] + w.padding[d]);
    return padded ? end - at : min(end, w.size[d]) - max(at, 0);
}
#define DIVISOR(w, o0, o1, o2) (how.fixed ? how.fixed : width_of(w, 0, o0, how.padded) * width_of(w, 1, o1, \
    how.padded) * width_of(w, 2, o2, how.padded))
typedef struct { int padded; int fixed; } How;
"""
)
ADAPTIVE_AVERAGE = (
    ADAPTIVE
    + r"""
typedef struct { int padded; int fixed; } How;
FUNCTION int width_of(const Window w, const int d, const int o) { int begin; return taps(w, d, o, &begin); }
#define DIVISOR(w, o0, o1, o2) (width_of(w, 0, o0) * width_of(w, 1, o1) * width_of(w, 2, o2))
"""
)
MEAN = r"""
#if WIDE == 1
#define LANES(p) T_LD16(p, 0)
#elif WIDE == 2
#define LANES(p) VEC2(T_C16, T_LD16(p, 0).even, T_LD16(p, 16).even)
#endif
KERNEL void mean_of_windows(IN(T, x), OUT(T, out), const int n, const int take, const Window w, const How how) {
    int i = ITEM * take, end = min(i + take, n), W = w.size[2];
    while (i < end) {
        SPLIT(i, w.out, plane, o0, o1, o2)
        int run = min(w.out[2] - o2, end - i), b0, b1, b2, t0 = taps(w, 0, o0, &b0), t1 = taps(w, 1, o1, &b1);
        GLOBAL const T* a = AT(x) + plane * VOLUME(w.size);
        for (int k = 0; k < run; k++) {
#ifdef LANES
            int at = (o2 + k) * WIDE - w.padding[2];
            if (k + 16 <= run && at >= 0 && at + w.extent[2] - 1 + 16 * WIDE <= W) {
                T_C16 sum = (T_C16)(0);
                for (int k0 = 0; k0 < t0; k0++) for (int k1 = 0; k1 < t1; k1++) {
                    GLOBAL const T* line = a + ((b0 + k0) * w.size[1] + b1 + k1) * W + at;
                    for (int k2 = 0; k2 < w.extent[2]; k2++) sum += LANES(line + k2);
                }
                T_ST16(AT(out), i + k, sum / (T_C)DIVISOR(w, o0, o1, o2 + k));
                k += 15;
                continue;
            }
#endif
            int t2 = taps(w, 2, o2 + k, &b2);
            ACC sum = (ACC)0;
            for (int k0 = 0; k0 < t0; k0++) for (int k1 = 0; k1 < t1; k1++) {
                GLOBAL const T* line = a + ((b0 + k0) * w.size[1] + b1 + k1) * W + b2;
                int k2 = 0;
#ifdef LONG_SUMS
                if (t2 >= 32) {
                    T_C16 part = (T_C16)(0);
                    for (; k2 + 16 <= t2; k2 += 16) part += T_LD16(line, k2);
                    T_C lanes[16];
                    vstore16(part, 0, lanes);
                    for (int k = 0; k < 16; k++) sum += lanes[k];
                }
#endif
                for (; k2 < t2; k2++) sum += T_LD(line, k2);
            }
            T_ST(AT(out), i + k, (T_C)(sum / (ACC)DIVISOR(w, o0, o1, o2 + k)));
        }
        i += run;
    }
}
"""
# The windows that contain a position: the transpose of `mean_of_windows`.
OUTPUT_RANGE_REGULAR = r"""
#define FIRST(w, d, c) ((c) + (w).padding[d] < (w).extent[d] ? 0 \
    : ((c) + (w).padding[d] - (w).extent[d]) / (w).stride[d] + 1)
#define LAST(w, d, c) min((w).out[d] - 1, ((c) + (w).padding[d]) / (w).stride[d])
"""
OUTPUT_RANGE_ADAPTIVE = r"""
#define FIRST(w, d, c) ((int)((long)(c) * (w).out[d] / (w).size[d]))
#define LAST(w, d, c) ((int)(((long)((c) + 1) * (w).out[d] + (w).size[d] - 1) / (w).size[d]) - 1)
"""
MEAN_BACKWARD = r"""
KERNEL void mean_backward(IN(T, g), OUT(T, out), const int n, const int take, const Window w, const How how) {
    int i = ITEM * take, end = min(i + take, n);
    while (i < end) {
        SPLIT(i, w.size, plane, c0, c1, c2)
        int run = min(w.size[2] - c2, end - i), f0 = FIRST(w, 0, c0), l0 = LAST(w, 0, c0), f1 = FIRST(w, 1, c1),
            l1 = LAST(w, 1, c1);
        GLOBAL const T* from = AT(g) + plane * VOLUME(w.out);
        for (int k = 0; k < run; k++, c2++) {
            int f2 = FIRST(w, 2, c2), l2 = LAST(w, 2, c2);
            ACC sum = (ACC)0;
            for (int o0 = f0; o0 <= l0; o0++) for (int o1 = f1; o1 <= l1; o1++) for (int o2 = f2; o2 <= l2; o2++)
                sum += T_LD(from, (o0 * w.out[1] + o1) * w.out[2] + o2) / (ACC)DIVISOR(w, o0, o1, o2);
            T_ST(AT(out), i + k, (T_C)sum);
        }
        i += run;
    }
}
"""

# Windows at positions chosen by `samples` (Graham, 2014, arXiv:1412.6071), in the precision R of the samples.
FRACTIONAL = (
    WINDOW
    + r"""
FUNCTION int start_of(const R sample, const Window w, const int d, const int o) {
    if (o == w.out[d] - 1) return w.size[d] - w.extent[d];
    R alpha = (R)(w.size[d] - w.extent[d]) / (R)(w.out[d] - 1);
    return (int)(((R)o + sample) * alpha) - (int)(sample * alpha);
}
KERNEL void fractional(IN(T, x), IN(R, samples), OUT(T, values), OUT(long, indices), const int n, const int take,
    const int channels, const int sn, const int sc, const int a0, const int a1, const int a2, const Window w) {
    for (int i = ITEM * take; i < min(ITEM * take + take, n); i++) {
        SPLIT(i, w.out, plane, o0, o1, o2)
        GLOBAL const R* s = AT(samples) + plane / channels * sn + (plane - plane / channels * channels) * sc;
        int b0 = a0 < 0 ? 0 : start_of(s[max(a0, 0)], w, 0, o0), b1 = start_of(s[a1], w, 1, o1),
            b2 = start_of(s[a2], w, 2, o2);
        GLOBAL const T* a = AT(x) + plane * VOLUME(w.size);
        int found = (b0 * w.size[1] + b1) * w.size[2] + b2;
        T_C best = T_LD(a, found);
        for (int k0 = 0; k0 < w.extent[0]; k0++) for (int k1 = 0; k1 < w.extent[1]; k1++)
            for (int k2 = 0; k2 < w.extent[2]; k2++) {
            int at = ((b0 + k0) * w.size[1] + b1 + k1) * w.size[2] + b2 + k2;
            T_C v = T_LD(a, at);
            if (v > best || v != v) { best = v; found = at; }
        }
        T_ST(AT(values), i, best);
        AT(indices)[i] = found;
    }
}
"""
)

# blocks[plane, k0, k1, k2, o0, o1, o2] = image[plane, o * stride - padding + k * dilation], zero outside.
IM2COL = (
    WINDOW
    + COPY_RUN
    + r"""
KERNEL void im2col(IN(T, image), OUT(T, blocks), const int n, const int take, const Window w) {
    int i = ITEM * take, end = min(i + take, n);
    T zero = (T)(0);
    while (i < end) {
        SPLIT(i, w.out, rest, o0, o1, o2)
        int middle = rest / w.extent[2], k2 = rest - middle * w.extent[2], upper = middle / w.extent[1],
            k1 = middle - upper * w.extent[1];
        int plane = upper / w.extent[0], k0 = upper - plane * w.extent[0];
        int c0 = o0 * w.stride[0] - w.padding[0] + k0 * w.dilation[0],
            c1 = o1 * w.stride[1] - w.padding[1] + k1 * w.dilation[1];
        int c2 = o2 * w.stride[2] - w.padding[2] + k2 * w.dilation[2], run = min(w.out[2] - o2, end - i);
        int inside = c0 >= 0 && c0 < w.size[0] && c1 >= 0 && c1 < w.size[1];
        GLOBAL const T* a = AT(image) + ((plane * w.size[0] + c0) * w.size[1] + c1) * w.size[2];
        if (w.stride[2] == 1) {
            int first = inside ? clamp(-c2, 0, run) : run, last = inside ? clamp(w.size[2] - c2, first, run) : run,
                k = 0;
            for (; k < first; k++) AT(blocks)[i + k] = zero;
            copy_run(AT(blocks) + i + first, a + c2 + first, last - first);
            for (k = last; k < run; k++) AT(blocks)[i + k] = zero;
        } else for (int k = 0; k < run; k++, c2 += w.stride[2])
            AT(blocks)[i + k] = inside && c2 >= 0 && c2 < w.size[2] ? a[c2] : zero;
        i += run;
    }
}
"""
)
COL2IM = (
    WINDOW
    + r"""
KERNEL void col2im(IN(T, blocks), OUT(T, image), const int n, const int take, const Window w) {
    for (int i = ITEM * take; i < min(ITEM * take + take, n); i++) {
        SPLIT(i, w.size, plane, c0, c1, c2)
        T_C sum = (T_C)(0);
        for (int k0 = 0; k0 < w.extent[0]; k0++) {
            int a0 = c0 + w.padding[0] - k0 * w.dilation[0], o0 = a0 / w.stride[0];
            if (a0 < 0 || o0 * w.stride[0] != a0 || o0 >= w.out[0]) continue;
            for (int k1 = 0; k1 < w.extent[1]; k1++) {
                int a1 = c1 + w.padding[1] - k1 * w.dilation[1], o1 = a1 / w.stride[1];
                if (a1 < 0 || o1 * w.stride[1] != a1 || o1 >= w.out[1]) continue;
                for (int k2 = 0; k2 < w.extent[2]; k2++) {
                    int a2 = c2 + w.padding[2] - k2 * w.dilation[2], o2 = a2 / w.stride[2];
                    if (a2 < 0 || o2 * w.stride[2] != a2 || o2 >= w.out[2]) continue;
                    int tap = ((plane * w.extent[0] + k0) * w.extent[1] + k1) * w.extent[2] + k2;
                    sum += T_LD(AT(blocks), tap * VOLUME(w.out) + (o0 * w.out[1] + o1) * w.out[2] + o2);
                }
            }
        }
        T_ST(AT(image), i, sum);
    }
}
"""
)

# out[p, o, q] = the sum over t of weights[o, t] * x[p, places[o, t], q]; a weight of zero contributes nothing, even for
# NaN.
RESAMPLE = r"""
KERNEL void resample(IN(T, x), IN(int, places), IN(W, weights), OUT(O, out), const int n, const int take, const int N,
    const int M, const int Q, const int count) {
    int i = ITEM * take, end = min(i + take, n);
#ifndef ROUNDED
    if (Q == 1 && count == 2) {
        while (i < end) {
            int p = i / M, o = i - p * M, run = min(M - o, end - i);
            GLOBAL const T* a = AT(x) + p * N;
            GLOBAL const int2* at = (GLOBAL const int2*)AT(places) + o;
            GLOBAL const W* weight = AT(weights) + 2 * o;
            for (int k = 0; k < run; k++) {
                W first = weight[2 * k], second = weight[2 * k + 1], sum = first != 0 ? first * (W)T_LD(a, at[k].x) : 0;
                O_ST(AT(out), i + k, (O_C)(second != 0 ? sum + second * (W)T_LD(a, at[k].y) : sum));
            }
            i += run;
        }
        return;
    }
#endif
    while (i < end) {
        int row = i / Q, q = i - row * Q, p = row / M, o = row - p * M, run = min(Q - q, end - i), k = 0;
        GLOBAL const int* at = AT(places) + o * count;
        GLOBAL const W* weight = AT(weights) + o * count;
#ifdef WIDE
        for (; k + 16 <= run; k += 16) {
            W16 sum = (W16)(0);
            for (int t = 0; t < count; t++) if (weight[t] != 0)
                sum += weight[t] * convert_W16(T_LD16(AT(x), (p * N + at[t]) * Q + q + k));
            O_ST16(AT(out), i + k, sum);
        }
#endif
        for (; k < run; k++) {
            W sum = (W)0;
            for (int t = 0; t < count; t++) if (weight[t] != 0)
                sum += weight[t] * (W)T_LD(AT(x), (p * N + at[t]) * Q + q + k);
#ifdef ROUNDED
            sum = clamp(rint(sum), (W)(LOWEST), (W)(HIGHEST));
#endif
            O_ST(AT(out), i + k, (O_C)sum);
        }
        i += run;
    }
}
"""

# The same for bytes, with weights in units of 2^-bits.
RESAMPLE_BYTES = r"""
KERNEL void resample_bytes(IN(T, x), IN(int, places), IN(int, weights), OUT(T, out), const int n, const int take,
    const int N, const int M, const int Q, const int count, const int bits) {
    int end = min((ITEM + 1) * take, n);
    for (int i = ITEM * take; i < end; i++) {
        int row = i / Q, p = row / M, o = row - p * M, q = i - row * Q, sum = 1 << (bits - 1);
        for (int t = 0; t < count; t++)
            sum += AT(weights)[o * count + t] * (int)T_LD(AT(x), (p * N + AT(places)[o * count + t]) * Q + q);
        T_ST(AT(out), i, (T_C)min(max(sum >> bits, 0), 255));
    }
}
"""
