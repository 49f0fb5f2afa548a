"""Normal deviates of PyTorch's float32 stream, and random permutations, over words of the twister.

The steps are those of `torchlite_backends.numpy.normal_deviates` and `random`, with fused multiply-adds of float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .native_kernel import TYPE_DEFINITIONS, NativeKernel

_NORMALS_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// Blocks of 16 words: eight for radii, eight for angles. The result is scaled if `scaled`.
struct Normals { const uint32_t* words; float* out; i64 scaled; double mean, std; };
enum { LANES = 64, PAIRS = 8 };
static inline float of_bits(int32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline int32_t bits_of(float x) { int32_t bits; memcpy(&bits, &x, 4); return bits; }
static inline float fma1(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
// sqrt(-2 log(1 - word / 2**24)).
static inline float radius(int32_t word) {
    int32_t bits = bits_of((float)((1 << 24) - word)) + (0x3f800000 - 0x3f3504f3);
    const float exponent = (float)((bits >> 23) - (127 + 24));
    bits = (bits & 0x007fffff) + 0x3f3504f3;
    const float x = of_bits(bits) - 1.0f, square = x * x;
    float y = 7.0376836292e-2f;
    y = fma1(y, x, -1.1514610310e-1f);
    y = fma1(y, x, 1.1676998740e-1f);
    y = fma1(y, x, -1.2420140846e-1f);
    y = fma1(y, x, 1.4249322787e-1f);
    y = fma1(y, x, -1.6668057665e-1f);
    y = fma1(y, x, 2.0000714765e-1f);
    y = fma1(y, x, -2.4999993993e-1f);
    y = fma1(y, x, 3.3333331174e-1f);
    y = fma1(y * x, square, exponent * -2.12194440e-4f);
    y = fma1(square, -0.5f, y);
    return __builtin_sqrtf(-2.0f * fma1(exponent, 0.693359375f, x + y));
}
static int normals(const Normals& of, i64 begin, i64 end) {
    int32_t first[LANES], second[LANES];
    float radii[LANES], cosines[LANES], sines[LANES];
    const float mean = (float)of.mean, std = (float)of.std;
    for (i64 block = begin; block < end; block += LANES / PAIRS) {
        const i64 blocks = least(LANES / PAIRS, end - block);
        for (i64 b = 0; b < blocks; b++)
            for (i64 k = 0; k < PAIRS; k++) {
                first[b * PAIRS + k] = (int32_t)(of.words[(block + b) * 16 + k] & 0xffffffu);
                second[b * PAIRS + k] = (int32_t)(of.words[(block + b) * 16 + 8 + k] & 0xffffffu);
            }
        const int lanes = (int)blocks * PAIRS;
        for (int k = 0; k < lanes; k++) radii[k] = radius(first[k]);
        for (int k = 0; k < lanes; k++) {
            float angle = (float)second[k] * ANGLE;
            const int32_t octant = ((int32_t)(angle * 1.27323954473516f) + 1) & ~1;
            const float turns = (float)octant;
            angle = fma1(turns, -0.78515625f, angle);
            angle = fma1(turns, -2.4187564849853515625e-4f, angle);
            angle = fma1(turns, -3.77489497744594108e-8f, angle);
            const float square = angle * angle;
            const float c = fma1(fma1(2.443315711809948e-5f, square, -1.388731625493765e-3f), square,
                4.166664568298827e-2f) * square;
            const float s = fma1(fma1(-1.9515295891e-4f, square, 8.3321608736e-3f), square, -1.6666654611e-1f) * square;
            const int32_t cosine = bits_of(fma1(c, square, -0.5f * square) + 1.0f);
            const int32_t sine = bits_of(fma1(s, angle, angle));
            const int32_t change = (cosine ^ sine) & -((octant >> 1) & 1);
            cosines[k] = of_bits(cosine ^ change ^ (int32_t)((uint32_t)((octant + 2) & 4) << 29));
            sines[k] = of_bits(sine ^ change ^ (int32_t)((uint32_t)(octant & 4) << 29));
        }
        for (int k = 0; k < lanes; k++) {
            cosines[k] *= radii[k];
            sines[k] *= radii[k];
        }
        if (of.scaled) for (int k = 0; k < lanes; k++) {
            cosines[k] = fma1(cosines[k], std, mean);
            sines[k] = fma1(sines[k], std, mean);
        }
        for (i64 b = 0; b < blocks; b++) {
            memcpy(of.out + (block + b) * 16, cosines + b * PAIRS, PAIRS * 4);
            memcpy(of.out + (block + b) * 16 + 8, sines + b * PAIRS, PAIRS * 4);
        }
    }
    return 0;
}
ENTRY(normals, Normals)
""".replace("ANGLE", f"{float(np.float32(2 * np.pi) * np.float32(2.0**-24))!r}f")
)
_PERMUTATION_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// Exchanges entry k with entry k + words[k] % (count - k). `wide`: with a number of two words, the upper one first.
struct Permutation { const uint32_t* words; i64* out; i64 wide, count; };
static int permutation(const Permutation& of, i64, i64) {
    const i64 n = of.count;
    for (i64 k = 0; k < n; k++) of.out[k] = k;
    for (i64 k = 0; k < n - 1; k++) {
        i64 distance;
        if (of.wide) distance = (((uint64_t)of.words[2 * k] << 32) | of.words[2 * k + 1]) % (uint64_t)(n - k);
        else distance = of.words[k] % (uint32_t)(n - k);
        const i64 other = of.out[k + distance];
        of.out[k + distance] = of.out[k];
        of.out[k] = other;
    }
    return 0;
}
ENTRY(permutation, Permutation)
"""
)
_normals_kernel = NativeKernel(_NORMALS_SOURCE, "normals", "QQqdd")
_permutation_kernel = NativeKernel(_PERMUTATION_SOURCE, "permutation", "QQqq")


def box_muller(device: Any, words: np.ndarray, out: np.ndarray, mean: float, std: float) -> bool:
    """Fill `out`, float32 of a multiple of 16 elements, with normals from as many words; True if done."""
    scaled = int(mean != 0.0 or std != 1.0)
    return _normals_kernel(device, out.size // 16, 6 * out.nbytes, words, out, scaled, mean, std)


def permute(device: Any, words: np.ndarray, out: np.ndarray) -> bool:
    """Fill `out`, int64, with the permutation that the words (one or two an exchange) say; True if done."""
    return _permutation_kernel(device, 1, 0, words, out, int(words.size > out.size), out.size)
