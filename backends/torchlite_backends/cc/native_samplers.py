"""Gamma, binomial and Poisson samples by PyTorch's methods, over words of PyTorch's stream (see
`torchlite_backends.numpy.gamma_dirichlet` and `poisson_binomial`, which have the same steps in Python).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .native_kernel import TYPE_DEFINITIONS, NativeKernel
from .native_special import COSINE_AND_SINE

_STREAM = r"""
// Uniform doubles of the words; `state` is: whether a normal is kept, the normal, uniforms used, samples finished.
struct Stream {
    const uint32_t* words;
    i64 at, available;
    double uniform(i64 place) const {
        if (place >= available) return 0.5;  // the sample is dropped, and begun anew with more words
        const uint32_t* two = words + 2 * place;
        return (double)(((uint64_t)(two[0] & 0x1fffffu) << 32) | two[1]) * 0x1p-53;
    }
    double next() { return uniform(at++); }
    bool over() const { return at > available; }
};
static const double PI = 3.14159265358979323846;
"""

# Normals in double precision, for pairs of uniforms at once and for results that are rounded to single precision. Their
# errors are about a unit in the last place: the series of the logarithm about 1, and of the sine and cosine about 0.
_PAIRS_OF_NORMALS = r"""
enum { FEWEST = 8, MOST = 32 };
static inline double of_bits(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline uint64_t bits_of(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
static inline double logarithm(double t) {  // of a number from 2**-53 to 1
    const uint64_t root_of_half = 0x3fe6a09e667f3bcdull, one = 0x3ff0000000000000ull;
    const uint64_t bits = bits_of(t) + (one - root_of_half);
    const double exponent = of_bits((bits >> 52) | 0x4330000000000000ull) - (0x1p52 + 1023);
    const double f = of_bits((bits & 0xfffffffffffffull) + root_of_half) - 1, s = f / (2 + f), z = s * s;
    double y = 1.0 / 21;
    for (int k = 19; k > 1; k -= 2) y = y * z + 1.0 / k;
    return exponent * 0.6931471805599453 + (2 * s + (2 * s * (z * y) + exponent * 2.319046813846299e-17));
}
static inline void turn(double angle, double& cosine, double& sine) {  // of an angle from 0 to 2 pi
    const double n = floor(angle * (2 / PI) + 0.5);
    const double r = (angle - n * 0x1.921fb544p+0) - n * 0x1.0b4611a62633p-34;
    double c, s;
    cosine_and_sine(r, c, s);
    const bool odd = n == 1 || n == 3;
    const double x = odd ? s : c, y = odd ? c : s;
    cosine = n == 1 || n == 2 ? -x : x;
    sine = n == 2 || n == 3 ? -y : y;
}
// Pairs that are expected at regular distances. More are computed ahead as long as they are found there.
struct Pairs {
    double first[MOST], second[MOST];
    i64 expected, nth, count, ahead, stride;
    void compute(const Stream& s) {
        const int size = (int)ahead;
        double u[MOST], v[MOST];
        for (int k = 0; k < size; k++) {
            const i64 at = s.at + k * stride;
            u[k] = s.uniform(at);
            v[k] = s.uniform(at + 1);
        }
        for (int k = 0; k < size; k++) {
            double cosine, sine;
            turn(2.0 * PI * u[k], cosine, sine);
            const double radius = sqrt(-2.0 * logarithm(1.0 - v[k]));
            first[k] = radius * cosine;
            second[k] = radius * sine;
        }
    }
    void take(Stream& s, i64 distance, double& x, double& y) {
        if (s.at != expected || nth == count) {
            ahead = s.at != expected ? FEWEST : least(2 * ahead, MOST);
            stride = distance;
            compute(s);
            count = ahead;
            expected = s.at;
            nth = 0;
        }
        x = first[nth];
        y = second[nth++];
        expected += stride;
        s.at += 2;
    }
};
"""
_GAMMA_SOURCE = (
    TYPE_DEFINITIONS
    + _STREAM
    + COSINE_AND_SINE
    + _PAIRS_OF_NORMALS
    + r"""
// cubes[k] and before[k]: a sample's cube, and the uniform before it. kind: 0, 1 with that uniform, 2 without draws.
// exact: the normals are those of the C library.
struct Gammas {
    const uint32_t* words; const double* d; const i64* kind; i64 exact; double* cubes; double* before; double* state;
    i64 available, count;
};
enum { BLOCK = 64 };
static void exact_pair(const Stream& s, i64 at, double& x, double& y) {
    const double angle = 2.0 * PI * s.uniform(at), radius = sqrt(-2.0 * log1p(-s.uniform(at + 1)));
    x = radius * cos(angle);
    y = radius * sin(angle);
}
template <bool EXACT> static void sample(const Gammas& of) {
    Stream s = {of.words, 0, of.available};
    Pairs pairs = {};
    pairs.expected = -1;
    double slopes[BLOCK];
    bool kept = of.state[0] != 0;
    double normal = of.state[1];
    i64 k = (i64)of.state[3], slopes_from = -BLOCK;
    i64 used = 0, pair = -1;  // where the kept normal comes from; -1: a piece before
    bool was_kept = kept;
    i64 old_pair = pair;
    for (; k < of.count; k++) {
        double cube = 0, boost = 0;
        const i64 kind = of.kind[k];
        if (kind != 2) {
            if (k >= slopes_from + BLOCK) {
                slopes_from = k;
                const int size = (int)least(BLOCK, of.count - k);
                for (int i = 0; i < size; i++) slopes[i] = 1.0 / sqrt(9.0 * of.d[k + i]);
            }
            const double d = of.d[k], c = slopes[k - slopes_from];
            if (kind) boost = s.next();
            while (!s.over()) {
                double x;
                if (kept) {
                    x = normal;
                    kept = false;
                } else {
                    pair = s.at;
                    if (EXACT) {
                        exact_pair(s, s.at, x, normal);
                        s.at += 2;
                    } else {
                        pairs.take(s, 4 + 2 * kind, x, normal);
                    }
                    kept = true;
                }
                const double root = 1.0 + c * x;
                if (root <= 0.0) continue;
                const double u = 1.0 - s.next(), v = root * root * root, square = x * x;
                if (u < 1.0 - 0.0331 * square * square || log(u) < 0.5 * square + d * (1.0 - v + log(v))) {
                    cube = v;
                    break;
                }
            }
            if (s.over()) break;
        }
        of.cubes[k] = cube;
        of.before[k] = boost;
        used = s.at;
        was_kept = kept;
        old_pair = pair;
    }
    double other;
    if (was_kept && old_pair >= 0) exact_pair(s, old_pair, other, of.state[1]);  // other samplers take it
    of.state[0] = was_kept;
    of.state[2] = (double)used;
    of.state[3] = (double)k;
}
static int gammas(const Gammas& of, i64, i64) {
    if (of.exact) sample<true>(of);
    else sample<false>(of);
    return 0;
}
ENTRY(gammas, Gammas)
"""
)
_COUNTS_SOURCE = (
    TYPE_DEFINITIONS
    + _STREAM
    + r"""
// Poisson samples of the rates `first`, or binomial ones of counts `first` and probabilities `second`.
struct Counts {
    const uint32_t* words; const double* first; const double* second; i64 single; double* out; double* state;
    i64 available, count;
};
static inline double log_factorial(double k) {
    int sign;
    return lgamma_r(k + 1, &sign);
}
static double poisson(double rate, Stream& s) {
    if (rate == 0) return 0;
    if (rate < 10) {
        const double bound = exp(-rate);
        double product = s.next(), k = 0;
        for (; product > bound && !s.over(); k++) product *= s.next();
        return k;
    }
    const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, log_alpha = log(1.1239 + 1.1328 / (b - 3.4)),
        sure = 0.9277 - 3.6224 / (b - 2), log_rate = log(rate);
    while (!s.over()) {
        const double u = s.next() - 0.5, v = s.next(), edge = 0.5 - fabs(u);
        const double k = edge ? floor((2 * a / edge + b) * u + rate + 0.43) : -1;
        if (edge >= 0.07 && v <= sure) return k;
        if (k < 0 || (edge < 0.013 && v > edge)) continue;
        if (log(v) + log_alpha - log(a / (edge * edge) + b) <= -rate + k * log_rate - log_factorial(k)) return k;
    }
    return 0;
}
static double remainder_of_stirling(double k) {
    if (k <= 9) return log_factorial(k) - (0.5 * log(2 * PI) + (k + 0.5) * log(k + 1) - (k + 1));
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}
// Products of the arguments have their type, as in PyTorch.
template <class T> static double large_binomial(T n, T p, Stream& s) {
    const double count = n, deviation = (double)std::sqrt(n * p * (1 - p));
    const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double centre = (double)(T)(n * p) + 0.5, sure = 0.92 - 4.2 / b, odds = (T)(p / (1 - p));
    const double alpha = (2.83 + 5.1 / b) * deviation, mode = (double)std::floor((n + 1) * p);
    while (!s.over()) {
        const double u = s.next() - 0.5, v = s.next(), edge = 0.5 - fabs(u);
        const double k = edge ? floor((2 * a / edge + b) * u + centre) : -1;
        if (k < 0 || k > count) continue;
        if (edge >= 0.07 && v <= sure) return k;
        const double bound = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * log(odds * (count - k + 1) / (k + 1))
            + remainder_of_stirling(mode) + remainder_of_stirling(count - mode)
            - remainder_of_stirling(k) - remainder_of_stirling(count - k);
        if (log(v * alpha / (a / (edge * edge) + b)) <= bound) return k;
    }
    return 0;
}
static double small_binomial(double count, double p, Stream& s) {
    const double scale = log1p(-p);
    double total = 0;
    for (double found = 0; !s.over(); found++) {
        const double u = s.next();
        total += u > 0 ? ceil(log(u) / scale) : INFINITY;
        if (total > count) return found;
    }
    return 0;
}
template <class T> static double binomial(T count, T p, Stream& s) {
    if (count <= 0 || p <= 0) return 0;
    if (p >= 1) return count;
    if (p != p || count != count) return NAN;
    const T rare = p <= (T)0.5 ? p : 1 - p, mean = count * rare;
    const double drawn = mean >= 10 ? large_binomial<T>(count, rare, s) : small_binomial(count, rare, s);
    return p <= (T)0.5 ? drawn : count - drawn;
}
static int counts(const Counts& of, i64, i64) {
    Stream s = {of.words, 0, of.available};
    i64 k = (i64)of.state[3];
    i64 used = 0;
    for (; k < of.count; k++) {
        const double drawn = !of.second ? poisson(of.first[k], s)
            : of.single ? binomial<float>((float)of.first[k], (float)of.second[k], s)
            : binomial<double>(of.first[k], of.second[k], s);
        if (s.over()) break;
        of.out[k] = drawn;
        used = s.at;
    }
    of.state[2] = (double)used;
    of.state[3] = (double)k;
    return 0;
}
ENTRY(counts, Counts)
"""
)
_gamma_kernel = NativeKernel(_GAMMA_SOURCE, "gammas", "QQQqQQQqq")
_counts_kernel = NativeKernel(_COUNTS_SOURCE, "counts", "QQQqQQqq")


def consume_words(device: Any, words: np.ndarray, state: np.ndarray, arrays: tuple) -> bool:
    """Sample as many of `arrays` as the words last for; `state` says where they begin and end.

    The arrays are (means, kinds, whether normals are to be exact, cubes, before) of gamma samples, or (rates or
    counts, probabilities or 0, whether these were float32, out).
    """
    kernel = _gamma_kernel if len(arrays) == 5 else _counts_kernel
    return kernel(device, 1, 0, words, *arrays, state, words.size // 2, arrays[-1].size)
