"""Random numbers by Philox4x32-10, a counter-based generator (Salmon et al., 2011).

It maps a 128-bit counter and a 64-bit key to four words. Block number i of a stream has the counter (low word of i,
high word of i, 0, 0). Sixteen blocks fill adjacent elements, the first words first, then the second ones, and so on.
Numbers depend on seed and offset alone, not on the device or its work-groups. `LANES` blocks are computed at a time: 1,
or 16 with wide vectors (only in OpenCL).
"""

from __future__ import annotations

import functools

ROUNDS = r"""
FUNCTION void philox(U* c, uint k0, uint k1) {
    U c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
    for (int i = 0; i < 10; i++) {
        U high0 = mul_hi((U)(0xD2511F53u), c0), low0 = c0 * (U)(0xD2511F53u);
        U high1 = mul_hi((U)(0xCD9E8D57u), c2), low1 = c2 * (U)(0xCD9E8D57u);
        c0 = high1 ^ c1 ^ (U)(k0);
        c1 = low1;
        c2 = high0 ^ c3 ^ (U)(k1);
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    c[0] = c0; c[1] = c1; c[2] = c2; c[3] = c3;
}
FUNCTION void words(U* c, const ulong first, const uint k0, const uint k1) {
    UL index = (UL)(first) + IOTA;
    c[0] = TO_U(index); c[1] = TO_U(index >> 32); c[2] = (U)(0); c[3] = (U)(0);
    philox(c, k0, k1);
}
"""

# `first` is the stream's first block, (k0, k1) the seed; the meaning of a, b, edge and limit depends on the
# distribution.
_DRAW = (
    ROUNDS
    + r"""
KERNEL void draw(OUT(T, out), const int n, const uint k0, const uint k1, const ulong first, const S a, const S b,
    const S edge, const uint limit) {
    const int block = ITEM * LANES;
    int at = block / 16 * (16 * PER) + block % 16;
    if (at >= n) return;
    U c[4];
    R value[PER];
    words(c, first + block, k0, k1);
BODY
    for (int k = 0; k < PER; k++, at += 16) {
#if LANES == 16
        if (at + 16 <= n) { T_ST16(AT(out), at, TO_T(value[k])); continue; }
#endif
        for (int lane = 0; lane < LANES && at + lane < n; lane++)
            T_ST(AT(out), at + lane, (T_C)(((S*)(value + k))[lane]));
    }
}
"""
)

# Integers a + word * b / 2**32, or of 64 bits; b = 0 means the full range.
_INTEGERS = (
    ROUNDS
    + r"""
KERNEL void draw(OUT(T, out), const int n, const uint k0, const uint k1, const ulong first, const long a,
    const ulong b) {
    const int block = ITEM * LANES;
    int at = block / 16 * (16 * PER) + block % 16;
    if (at >= n) return;
    U c[4];
    words(c, first + block, k0, k1);
    for (int k = 0; k < PER; k++, at += 16) {
#if PER == 4
        UL value = (TO_UL(c[k]) * (UL)(b)) >> 32;
#else
        UL value = TO_UL(c[2 * k]) << 32 | TO_UL(c[2 * k + 1]);
        if (b != 0) value = mul_hi(value, (UL)(b));
#endif
        value += (UL)(a);
        for (int lane = 0; lane < LANES && at + lane < n; lane++) {
            long one = (long)((ulong*)&value)[lane];
            T_ST(AT(out), at + lane, (T_C)(one));
        }
    }
}
"""
)

# The half-open and the open unit interval, from word k for float and from the words 2k and 2k + 1 for double.
_UNIT = {
    "float": "(TO_R(c[k] >> 8) * 5.9604644775390625e-8f)",
    "double": "(TO_R(TO_UL(c[2 * k]) << 21 ^ TO_UL(c[2 * k + 1]) >> 11) * 1.1102230246251565e-16)",
}
_OPEN = {
    "float": "fmin((TO_R(c[k]) + 0.5f) * 2.3283064365386963e-10f, (R)(0.99999994f))",
    "double": "((TO_R(TO_UL(c[2 * k]) << 20 ^ TO_UL(c[2 * k + 1]) >> 12) + 0.5) * 2.220446049250313e-16)",
}
_VALUES = {
    "uniform": "value[k] = fma(UNIT, (R)(b), (R)(a)); value[k] = value[k] < (R)(edge) ? value[k] : (R)(a);",
    "below": "value[k] = TO_R(c[k] <= (U)(limit) ? (U)(1) : (U)(0)) * (R)(a);",
    "exponential": "value[k] = log(OPEN) * (R)(a);",
    "cauchy": "value[k] = fma(tan((OPEN - (R)(0.5)) * (R)(PI)), (R)(b), (R)(a));",
    "geometric": "value[k] = ceil(log(OPEN) * (R)(a));",
}
# Normal numbers come in pairs from the polar form of Box and Muller (1958).
_PAIR = r"""
    for (int k = 0; k < PER; k += 2) value[k] = sqrt((R)(-2) * log(OPEN));
    for (int k = 1; k < PER; k += 2) {
        R angle = UNIT * (R)(2 * PI), radius = value[k - 1];
        value[k - 1] = FINISH(fma(radius * cos(angle), (R)(b), (R)(a)));
        value[k] = FINISH(fma(radius * sin(angle), (R)(b), (R)(a)));
    }
"""
_NORMALS = {"normal": "", "log_normal": "exp"}


def distribution_source(value: str, real: str) -> tuple[str, int]:
    """Return the kernel of a distribution in a real type, and the number of values per block."""
    per = 4 if real == "float" or value == "below" else 2
    if value in _NORMALS:
        body = _PAIR.replace("FINISH", _NORMALS[value])
    else:
        body = f"    for (int k = 0; k < PER; k++) {{ {_VALUES[value]} }}"
    body = body.replace("UNIT", _UNIT[real]).replace("OPEN", _OPEN[real]).replace("PI", "3.14159265358979323846")
    return _DRAW.replace("BODY", body).replace("PER", str(per)), per


_NUMBERS, _PLACE = "const uint k0, const uint k1, const ulong first", "IN(ulong, stream), const ulong ahead"
_READ = (
    "    const uint k0 = (uint)AT(stream)[0], k1 = (uint)(AT(stream)[0] >> 32);\n"
    "    const ulong first = AT(stream)[1] + ahead;\n"
)


@functools.cache
def read_seed_from_memory_source(text: str) -> str:
    """Return a kernel that reads seed and first block from memory, for graphs: each replay writes them there."""
    before, after = text.split(_NUMBERS)
    parameters, body = after.split(") {\n", 1)
    return f"{before}{_PLACE}{parameters}) {{\n{_READ}{body}"


def integer_source(bits: int) -> tuple[str, int]:
    """Return the kernel for integers of 32 or 64 random bits."""
    per = 128 // bits
    return _INTEGERS.replace("PER", str(per)), per


# Distributions that consume a random number of words: element e has a separate stream with the counters (first block, e
# + 1, 0), (first block, e + 1, 1) … Poisson and binomial numbers use transformed rejection for large means (W. Hörmann,
# 1993), else products of uniforms and sums of geometric numbers.
_STREAM = (
    ROUNDS
    + r"""
typedef struct { uint words[4]; uint used, k0, k1, low, high, element; } Stream;
FUNCTION S next(Stream* s) {
    if (s->used % 4 == 0) {
        s->words[0] = s->low; s->words[1] = s->high; s->words[2] = s->element; s->words[3] = s->used / 4;
        philox(s->words, s->k0, s->k1);
    }
    return ((S)s->words[s->used++ % 4] + (S)0.5) * (S)2.3283064365386963e-10;
}
FUNCTION Stream stream_of(const ulong first, const uint k0, const uint k1, const int element) {
    Stream s;
    s.used = 0; s.k0 = k0; s.k1 = k1; s.low = (uint)first; s.high = (uint)(first >> 32); s.element = (uint)element + 1;
    return s;
}
"""
)
POISSON = (
    _STREAM
    + r"""
FUNCTION S poisson(const S rate, Stream* s) {
    if (rate == 0) return 0;
    if (rate < 10) {
        S bound = exp(-rate), product = next(s), count = 0;
        for (; product > bound; count += 1) product *= next(s);
        return count;
    }
    S b = (S)0.931 + (S)2.53 * sqrt(rate), a = (S)-0.059 + (S)0.02483 * b;
    S log_alpha = log((S)1.1239 + (S)1.1328 / (b - (S)3.4)), sure = (S)0.9277 - (S)3.6224 / (b - 2),
        log_rate = log(rate);
    for (int tries = 0; tries < 10000; tries++) {
        S u = next(s) - (S)0.5, v = next(s), edge = (S)0.5 - fabs(u);
        if (edge <= 0) continue;
        S k = floor((2 * a / edge + b) * u + rate + (S)0.43);
        if (edge >= (S)0.07 && v <= sure) return k;
        if (k < 0 || (edge < (S)0.013 && v > edge)) continue;
        if (log(v) + log_alpha - log(a / (edge * edge) + b) <= k * log_rate - rate - lgamma(k + 1)) return k;
    }
    return NAN;
}
KERNEL void draw(IN(T, rate), OUT(T, out), const int n, const uint k0, const uint k1, const ulong first) {
    int i = ITEM;
    if (i >= n) return;
    Stream s = stream_of(first, k0, k1, i);
    T_ST(AT(out), i, (T_C)(poisson((S)(T_LD(AT(rate), i)), &s)));
}
"""
)
BINOMIAL = (
    _STREAM
    + r"""
FUNCTION S stirling_rest(const S k) {
    S square = (k + 1) * (k + 1);
    if (k <= 9) return lgamma(k + 1) - ((S)0.91893853320467274 + (k + (S)0.5) * log(k + 1) - (k + 1));
    return ((S)(1.0 / 12) - ((S)(1.0 / 360) - (S)(1.0 / 1260) / square) / square) / (k + 1);
}
FUNCTION S binomial_large(const S count, const S p, Stream* s) {
    S deviation = sqrt(count * p * (1 - p)), b = (S)1.15 + (S)2.53 * deviation,
        a = (S)-0.0873 + (S)0.0248 * b + (S)0.01 * p, centre = count * p + (S)0.5;
    S sure = (S)0.92 - (S)4.2 / b, odds = p / (1 - p), alpha = ((S)2.83 + (S)5.1 / b) * deviation,
        mode = floor((count + 1) * p);
    for (int tries = 0; tries < 10000; tries++) {
        S u = next(s) - (S)0.5, v = next(s), edge = (S)0.5 - fabs(u);
        if (edge <= 0) continue;
        S k = floor((2 * a / edge + b) * u + centre);
        if (k < 0 || k > count) continue;
        if (edge >= (S)0.07 && v <= sure) return k;
        S bound = (mode + (S)0.5) * log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * log((count - mode + 1) / (count - k + 1))
            + (k + (S)0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_rest(mode) + stirling_rest(count - mode)
                - stirling_rest(k) - stirling_rest(count - k);
        if (log(v * alpha / (a / (edge * edge) + b)) <= bound) return k;
    }
    return NAN;
}
FUNCTION S binomial_small(const S count, const S p, Stream* s) {
    S scale = log1p(-p), total = 0, found = 0;
    for (;; found += 1) {
        total += ceil(log(next(s)) / scale);
        if (!(total <= count)) return found;
    }
}
FUNCTION S binomial(const S count, const S p, Stream* s) {
    if (count <= 0 || p <= 0) return 0;
    if (p >= 1) return count;
    if (p != p || count != count) return NAN;
    S rare = p <= (S)0.5 ? p : 1 - p;
    S drawn = count * rare >= 10 ? binomial_large(count, rare, s) : binomial_small(count, rare, s);
    return p <= (S)0.5 ? drawn : count - drawn;
}
KERNEL void draw(IN(T, count), IN(T, prob), OUT(T, out), const int n, const uint k0, const uint k1, const ulong first) {
    int i = ITEM;
    if (i >= n) return;
    Stream s = stream_of(first, k0, k1, i);
    T_ST(AT(out), i, (T_C)(binomial((S)(T_LD(AT(count), i)), (S)(T_LD(AT(prob), i)), &s)));
}
"""
)
# First index in a row's cumulative sum that exceeds a uniform fraction of the total.
MULTINOMIAL = (
    _STREAM
    + r"""
KERNEL void draw(IN(T, sums), OUT(long, out), const int n, const uint k0, const uint k1, const ulong first,
    const int samples, const int length) {
    int i = ITEM;
    if (i >= n) return;
    Stream s = stream_of(first, k0, k1, i);
    GLOBAL const T* row = AT(sums) + i / samples * length;
    T_C goal = (T_C)(next(&s)) * T_LD(row, length - 1);
    int low = 0, high = length - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (T_LD(row, middle) < goal) low = middle + 1; else high = middle;
    }
    AT(out)[i] = low;
}
"""
)
